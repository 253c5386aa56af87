"""Brings the power of a machine to On or Off, and decides whether a reported Off can be trusted.

A power change takes seconds to minutes, and only the BMC can show it: a BMC may refuse a request, forget it, be busy,
or report an old state from a cache. Each reconcile calls `converge`, which makes one step and never waits.

In: the target, and the power state that the BMC reports (`Scope.observe`).

Remembered: `status.powerRequest` (target, reason, time, deadline, and when it was forced) is written before the request
is sent, so that a manager which takes over knows of it. `status.onRequestedAt` is the time of the last request for On
that no reading has confirmed yet. The memo holds when a request was last sent and when to read the power next; losing
it costs one more request.

Out: requests to the BMC. Off is graceful first; it is forced after `graceful_timeout`, at once when the BMC has no
graceful shutdown, or when the caller says that nothing on the machine needs one. A graceful shutdown is requested once;
On and a forced Off are requested again every 30 seconds.

End: the BMC reports the target, or the deadline passes and the server goes to Error with the reason `PowerOnTimeout` or
`PowerOffTimeout`. A deadline that passed while the BMC did not answer, or failed the request, starts again once: a BMC
that disappears after each request does not delay the end for ever.

A reported Off may predate the last power-on. Until On was read, or `power_settle` seconds have passed since On was
requested, an Off does not count as reached, so that no running machine is released; Off is requested again.
"""

import asyncio
import math
from datetime import datetime, timedelta

import msgspec

from metal.api.server import PowerRequest
from metal.bmc.errors import BMCBadRequest, BMCConflict, BMCError, BMCNotSupported
from metal.bmc.power import PowerState, ResetType
from metal.bmc.systems import SystemInfo
from metal.controllers.server.bmc import failing
from metal.controllers.server.bmc.failing import OperationPaused
from metal.controllers.server.reasons import Operation, Reason, WaitFor, of_bmc
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue

_REPEAT_INTERVAL = 30.0
"""Seconds after which a request that changed nothing is repeated; a BMC may have dropped it."""
_LONGEST_POLL = 10.0
"""Longest pause between two readings during a power change, in seconds."""


class _Refused(Exception):
    """The BMC refuses to switch off a machine that it reports as off; later readings show whether it is."""


async def converge(
    scope: Scope, target: PowerState, why: str, *, force: bool = False, first_poll: float | None = None
) -> Requeue | None:
    """One step towards `target` (On or Off); None when it is reached.

    The request is written to status before it is sent to the BMC, so that a manager that takes over knows of it.
    `force` cuts the power at once, when nothing on the machine needs a shutdown. `first_poll` is the pause before the
    first reading, in seconds. Past the deadline the server goes to Error. An Off that may predate the last power-on
    does not count. Raises BMCError.
    """
    request = _pending(scope, target)
    if request is not None and (left := seconds_until_poll(scope)) > 0:
        return Requeue(left)
    system = await scope.observe(max_age=0.0 if request is not None else None)
    if system.power_state is target and not is_outdated_off(scope, system):
        scope.set(power_request=None)
        return None
    if request is None:
        await _report_unexpected(scope, target, system, why)
        # a shutdown was requested in vain before the power could not be cut
        force = force or failing.find(scope, Operation.FORCE_POWER_OFF) is not None
        request = _request(scope, target, why, force=force)
        await _write_request(scope, request)
        return await _act(scope, request, first_poll)
    return await _continue_request(scope, request)


async def _report_unexpected(scope: Scope, target: PowerState, system: SystemInfo, why: str) -> None:
    """Record an Event when the power was as required and was changed outside the operator."""
    last, since = scope.server.status, asyncio.get_running_loop().time() - scope.memo.reset_at
    caused_by_operator = (
        last.power_request is not None or last.on_requested_at is not None or since < scope.settings.power_timeout
    )
    if last.power_state != target.value or caused_by_operator:
        return
    await scope.require_latest()  # a status from a backup does not say what the power was
    found = f"the machine is {system.power_state}, changed outside the operator"
    text = f"{found}; it is switched {target.lower()} again ({why})"
    scope.record_event("UnexpectedPower", text, warning=True)


def seconds_until_poll(scope: Scope) -> float:
    """Seconds until the power is read next; 0 when it is time."""
    left = scope.memo.poll_at - asyncio.get_running_loop().time()
    return left if left > 0.01 else 0.0


def _pending(scope: Scope, target: PowerState) -> PowerRequest | None:
    request = scope.status.power_request
    if request is None or request.target != target.value:
        return None
    if request.requested_at is None or request.requested_at > scope.now:  # the clock was set back
        return None
    return request


def _request(scope: Scope, target: PowerState, why: str, *, force: bool) -> PowerRequest:
    forced_at = scope.now if force and target is PowerState.OFF else None
    return PowerRequest(
        target=target.value, reason=why, requested_at=scope.now, forced_at=forced_at, deadline=_deadline(scope)
    )


async def _write_request(scope: Scope, request: PowerRequest) -> None:
    # If this write's answer is lost, the request is recorded but not sent: the time of an earlier one does not apply.
    scope.memo.acted_at = -math.inf
    scope.set(power_request=request)
    if request.target == PowerState.ON:
        record_power_on(scope)
    _set_wait(scope, request)
    await scope.commit()


async def _continue_request(scope: Scope, request: PowerRequest) -> Requeue:
    if request.deadline is None or scope.now >= request.deadline:
        if _is_extended(scope, request) or not (scope.bmc_was_unreachable() or _is_failing(scope, request)):
            return _give_up(scope, request)
        request = msgspec.structs.replace(request, deadline=_deadline(scope))
        scope.set(power_request=request)
    graceful = request.target == PowerState.OFF and request.forced_at is None
    begun = request.requested_at or scope.now
    if graceful and scope.now >= begun + timedelta(seconds=scope.settings.graceful_timeout):
        return await _force(scope, request, "the operating system did not shut down in time")
    repeat_after = (
        math.inf if graceful else _REPEAT_INTERVAL
    )  # an operating system is asked once, unless that is unknown
    idle = asyncio.get_running_loop().time() - scope.memo.acted_at
    if (idle == math.inf or idle >= repeat_after) and not _is_changing(scope, request):
        if request.target == PowerState.ON:
            record_power_on(scope)
        return await _act(scope, request)
    elapsed = (scope.now - begun).total_seconds()
    return _poll_again(scope, request, min(_LONGEST_POLL, max(scope.settings.power_poll, elapsed * 0.4)))


def _is_extended(scope: Scope, request: PowerRequest) -> bool:
    """True when the deadline has started again before."""
    if request.deadline is None or request.requested_at is None:
        return False
    return (request.deadline - request.requested_at).total_seconds() > scope.settings.power_timeout + 1.0


def _operation(request: PowerRequest) -> Operation:
    if request.target == PowerState.ON:
        return Operation.POWER_ON
    return Operation.POWER_OFF if request.forced_at is None else Operation.FORCE_POWER_OFF


def _is_failing(scope: Scope, request: PowerRequest) -> bool:
    """True while the BMC fails the request itself, which has a deadline of its own (`bmc.failing`)."""
    known = failing.find(scope, _operation(request))
    return known is not None and known.reason != BMCConflict.reason


def _give_up(scope: Scope, request: PowerRequest) -> Requeue:
    on, operation = request.target == PowerState.ON, _operation(request)
    known = failing.find(scope, operation)
    failure = f"; {operation} failed: {known.message.rstrip('.')}" if known is not None else ""
    text = (
        f"power did not reach {request.target} within {scope.settings.power_timeout:.0f} s ({request.reason}); the BMC "
        f"reports {scope.status.power_state}{failure}. Check the machine"
    )
    if known is not None:
        failing.postpone(scope, known)
        return scope.fail(of_bmc(known.reason), text, operation)
    return scope.fail(Reason.POWER_ON_TIMEOUT if on else Reason.POWER_OFF_TIMEOUT, text, operation)


async def _force(scope: Scope, request: PowerRequest, why: str) -> Requeue:
    scope.record_event("ForcedOff", f"{why} ({request.reason}); power is cut", warning=True)
    forced = msgspec.structs.replace(request, forced_at=scope.now)
    await _write_request(scope, forced)
    return await _act(scope, forced)


def _is_changing(scope: Scope, request: PowerRequest) -> bool:
    changing = PowerState.POWERING_ON if request.target == PowerState.ON else PowerState.POWERING_OFF
    return scope.status.power_state == changing.value and request.forced_at is None


async def _act(scope: Scope, request: PowerRequest, first_poll: float | None = None) -> Requeue:
    try:
        failing.require_due(scope, _operation(request))
        await scope.require_latest()
        scope.memo.acted_at = asyncio.get_running_loop().time()
        scope.invalidate()
        if request.target == PowerState.ON:
            await scope.connected().power_on(scope.uri)
        else:
            await _power_off(scope, force=request.forced_at is not None)
    except (BMCConflict, _Refused):
        scope.memo.acted_at = -math.inf  # another change is in progress: repeat the request after the next reading
    except OperationPaused as exc:
        scope.memo.acted_at = -math.inf
        if exc.why != BMCConflict.reason:
            raise
        return _poll_again(scope, request, min(exc.retry_after or 0.0, _LONGEST_POLL))
    except (BMCNotSupported, BMCBadRequest):
        if request.target == PowerState.ON or request.forced_at is not None:
            raise
        return await _force(scope, request, "the BMC supports no graceful shutdown")
    except BMCError:
        scope.memo.acted_at = -math.inf
        raise
    return _poll_again(scope, request, first_poll or scope.settings.power_poll)


def _poll_again(scope: Scope, request: PowerRequest, seconds: float) -> Requeue:
    """Read the power no earlier, even if another cause starts the next pass: a power change takes time."""
    _set_wait(scope, request)
    pause = scope.context.jitter(seconds)
    scope.memo.poll_at = asyncio.get_running_loop().time() + pause
    return Requeue(pause)


def _set_wait(scope: Scope, request: PowerRequest) -> None:
    outdated = "; the Off that the BMC reports may predate the last power-on" if is_unconfirmed_off(scope) else ""
    text = f"power {request.target} ({request.reason})"
    if request.target == PowerState.ON:
        scope.wait(WaitFor.POWER_ON, text, until=request.deadline)
    else:
        scope.wait(WaitFor.POWER_OFF, text + outdated, until=request.deadline)


def _deadline(scope: Scope) -> datetime:
    return scope.now + timedelta(seconds=scope.settings.power_timeout)


def record_power_on(scope: Scope) -> None:
    """Record that On is requested; a request shortly before counts as the same."""
    asked, half = scope.status.on_requested_at, timedelta(seconds=scope.settings.power_settle / 2)
    if asked is None or not asked <= scope.now < asked + half:
        scope.set(on_requested_at=scope.now)


def is_outdated_off(scope: Scope, system: SystemInfo) -> bool:
    """True when the reading is Off and may predate the last power-on; clears a power-on that is long past."""
    asked = scope.status.on_requested_at
    if asked is None or system.power_state is not PowerState.OFF:
        return False
    if asked > scope.now:  # the clock was set back: how long ago that was is unknown
        scope.set(on_requested_at=scope.now)
        return True
    if (scope.now - asked).total_seconds() < scope.settings.power_settle:
        return True
    scope.set(on_requested_at=None)
    return False


def is_unconfirmed_off(scope: Scope) -> bool:
    """True when the last reading is Off although On was requested and has not been read since."""
    return scope.status.on_requested_at is not None and scope.status.power_state == PowerState.OFF


async def _power_off(scope: Scope, *, force: bool) -> None:
    """Request Off, also when the BMC still reports an old Off. Raises _Refused and BMCError."""
    if not is_unconfirmed_off(scope):
        await scope.connected().power_off(scope.uri, force=force)
        return
    how = ResetType.FORCE_OFF if force else ResetType.GRACEFUL_SHUTDOWN
    try:
        await scope.connected().reset(scope.uri, how)
    except (BMCNotSupported, BMCBadRequest) as exc:
        raise _Refused from exc
