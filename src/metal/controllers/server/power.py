"""Brings a machine's power to where it should be: asks once, watches, insists, and gives up at a deadline."""

import asyncio
import math
from datetime import timedelta

import msgspec

from metal.api.server import PowerRequest
from metal.bmc.errors import BMCConflict
from metal.bmc.protocols import PowerState
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

_INSIST = 30.0
"""Seconds after which a request that changed nothing is made again; a BMC may have dropped it."""


async def converge(scope: Scope, target: PowerState, why: str) -> Requeue | None:
    """One step towards `target` (On or Off); None when it is reached.

    The request is written to status before it goes to the BMC, so that whoever continues after a crash knows of it.
    Past the deadline the server goes to Error. Raises BMCError.
    """
    request = scope.status.power_request
    pending = request is not None and request.target == target.value
    system = await scope.observe(max_age=0.0 if pending else None)
    if system.power_state is target:
        scope.set(power_request=None)
        return None
    if request is None or request.target != target.value:
        scope.set(power_request=_request(scope, target, why))
        _name_wait(scope, target, why)
        await scope.commit()
        return await _act(scope, target, force=False)
    return await _insist(scope, request, target, why)


def _request(scope: Scope, target: PowerState, why: str) -> PowerRequest:
    deadline = scope.now + timedelta(seconds=scope.settings.power_timeout)
    return PowerRequest(target=target.value, reason=why, requested_at=scope.now, deadline=deadline)


async def _insist(scope: Scope, request: PowerRequest, target: PowerState, why: str) -> Requeue:
    if request.deadline is not None and scope.now >= request.deadline:
        return scope.fail(
            f"Power{target.value}Timeout",
            f"power did not reach {target.value} within {scope.settings.power_timeout:.0f} s ({why}); the BMC reports "
            f"{scope.status.power_state}. Check the machine, then annotate it with operation=retry",
        )
    begun = request.requested_at or scope.now
    patience = timedelta(seconds=scope.settings.graceful_timeout)
    if target is PowerState.OFF and request.forced_at is None and scope.now >= begun + patience:
        scope.set(power_request=msgspec.structs.replace(request, forced_at=scope.now))
        scope.tell("ForcedOff", f"the operating system did not shut down in time ({why}); power is cut", warning=True)
        _name_wait(scope, target, why)
        await scope.commit()
        return await _act(scope, target, force=True)
    _name_wait(scope, target, why)
    graceful = target is PowerState.OFF and request.forced_at is None
    patience_left = math.inf if graceful else _INSIST  # an operating system is asked once, unless nobody knows whether
    idle = asyncio.get_running_loop().time() - scope.memo.acted_at
    if (idle == math.inf or idle >= patience_left) and not _moving(scope, target):
        return await _act(scope, target, force=request.forced_at is not None)
    return _poll(scope, request)


def _moving(scope: Scope, target: PowerState) -> bool:
    moving = PowerState.POWERING_ON if target is PowerState.ON else PowerState.POWERING_OFF
    return scope.status.power_state == moving.value


async def _act(scope: Scope, target: PowerState, *, force: bool) -> Requeue:
    scope.memo.acted_at = asyncio.get_running_loop().time()
    scope.stale()
    bmc = scope.connected()
    try:
        if target is PowerState.ON:
            await bmc.power_on(scope.uri)
        else:
            await bmc.power_off(scope.uri, force=force)
    except BMCConflict:
        scope.memo.acted_at = float("-inf")  # another change is under way; ask again at the next look
    return Requeue(scope.context.jitter(scope.settings.power_poll))


def _poll(scope: Scope, request: PowerRequest) -> Requeue:
    elapsed = (scope.now - (request.requested_at or scope.now)).total_seconds()
    return Requeue(scope.context.jitter(min(10.0, max(scope.settings.power_poll, elapsed * 0.4))))


def _name_wait(scope: Scope, target: PowerState, why: str) -> None:
    scope.wait(f"Power{target.value}", f"power {target.value} ({why})", deadline=scope.settings.power_timeout)
