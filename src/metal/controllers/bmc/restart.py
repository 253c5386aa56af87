"""Restarts a BMC: over Redfish, else by SSH. Sent at most once, waited for until a deadline, not again for a while."""

import asyncio
from datetime import timedelta

import msgspec

from metal.api.bmc import Restart
from metal.bmc.errors import BMCError, BMCNotSupported, BMCServerError, BMCTimeout, BMCUnreachable
from metal.bmc.protocols import BMC, ShellAccess
from metal.bmc.ssh import KNOWN, restart_command
from metal.controllers.bmc import trust
from metal.controllers.bmc.contact import bounded
from metal.controllers.bmc.scope import Scope
from metal.kube.controller.controller import Requeue, Result
from metal.kube.meta.conditions import find, is_true

USER, AUTO = "UserRequested", "AutoResetting"
_ILL = (BMCServerError, BMCUnreachable, BMCTimeout)
"""What a restart may mend, and what makes SSH worth a try."""
_ILL_REASONS = frozenset({kind.reason for kind in _ILL} | {"ServiceUnavailable"})


async def begin(scope: Scope, reason: str, why: str, *, ssh: bool = False) -> Result:
    """Ask the BMC to restart. What cannot be sent ends with Reset=False and the reason."""
    limit = scope.deps.settings.reset_timeout
    scope.set(restart=Restart(reason=reason, at=scope.now, until=scope.now + timedelta(seconds=limit)))
    scope.report("Reset", True, reason, why)
    _await(scope)
    await scope.commit()  # before it is sent: whoever continues after a crash must not send it again
    try:
        method = await _send(scope, ssh=ssh)
    except BMCError as exc:
        text = f"the BMC was not restarted: {trust.explained(scope, exc)}"
        scope.condition("Reset", False, exc.reason, text)
        scope.event("Warning", "ResetFailed", text)
        scope.state("Error", f"the BMC at {scope.address} to answer")
        return Requeue(scope.memo.backoff.next())
    scope.set(restart=msgspec.structs.replace(scope.status.restart, method=method))
    scope.condition("Reset", True, reason, f"{why}; it was sent over {method}")
    return Requeue(scope.deps.settings.reset_wait)


async def heal(scope: Scope) -> Result | None:
    """Restart a BMC that has failed for long, where that is wanted."""
    settings, ready = scope.deps.settings, find(scope.status.conditions, "Ready")
    if not settings.auto_reset or ready is None or ready.status != "False" or ready.reason not in _ILL_REASONS:
        return None
    last = scope.status.restart
    failing = scope.seconds_left(ready.last_transition_time, settings.reset_after) == 0
    if not failing or is_awaited(scope) or (last and scope.seconds_left(last.at, settings.reset_again)):
        return None
    return await begin(scope, AUTO, f"restarted because it has failed for {settings.reset_after:g} s ({ready.reason})")


async def expire(scope: Scope) -> Result | None:
    """Wait no longer than until the deadline: then the failure is an ordinary one again."""
    if not is_true(scope.status.conditions, "Reset"):
        return None
    last = scope.status.restart
    if last is None or last.until is None or scope.now >= last.until:
        again = f"{scope.context.kinds.key('operation')}=force-ssh-reset-bmc"
        limit = scope.deps.settings.reset_timeout
        text = (
            f"the BMC was not back within {limit:g} s of its restart; look at it, or try SSH: annotate it with {again}"
        )
        scope.report("Reset", False, "ResetTimeout", text)
    return None


def is_awaited(scope: Scope) -> bool:
    """Whether the BMC is on its way back from a restart."""
    return is_true(scope.status.conditions, "Reset")


def complete(scope: Scope) -> None:
    """The BMC answers."""
    if is_awaited(scope):
        scope.report("Reset", False, "ResetComplete", "the BMC answers again after its restart")


def bound(scope: Scope, result: Result) -> Result:
    """Come back at the deadline of a restart at the latest."""
    last = scope.status.restart
    if not is_awaited(scope) or last is None or last.until is None:
        return result
    left = max(0.0, (last.until - scope.now).total_seconds()) + 1.0
    return Requeue(min(left, result.after)) if isinstance(result, Requeue) else Requeue(left)


def _await(scope: Scope) -> None:
    scope.state("Pending", f"the BMC to restart, until {scope.status.restart.until:%H:%M:%S} UTC")


async def _send(scope: Scope, *, ssh: bool) -> str:
    """How it was sent. SSH where Redfish fails in a way that a restart may mend. Raises BMCError."""
    if not ssh:
        try:
            await bounded(scope, _by_redfish)
        except _ILL as exc:
            scope.event("Normal", "TryingSSH", f"Redfish could not restart the BMC: {exc}")
        else:
            return "Redfish"
    limit = scope.deps.settings.ssh_timeout
    try:
        async with asyncio.timeout(limit):
            await _by_ssh(scope)
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {scope.address} did not take a restart over SSH within {limit:g} s") from None
    scope.set(last_reset_time=scope.now)
    return "SSH"


async def _by_redfish(scope: Scope, bmc: BMC) -> None:
    await bmc.reset_manager(scope.obj.spec.bmc_uuid)


async def _by_ssh(scope: Scope) -> None:
    manufacturer = _manufacturer(scope)
    command = restart_command(manufacturer)
    if not command:
        maker = f"of {manufacturer}" if manufacturer else "whose manufacturer is not known"
        raise BMCNotSupported(f"how to restart a BMC {maker} over SSH is not known; it is for {KNOWN}")
    access, port = scope.connected(), scope.deps.settings.ssh_port
    key = await trust.host_key(scope, access.address, port)
    shell = ShellAccess(access.address, port, access.username, access.password, key)
    await scope.deps.shell.run(shell, command)
    trust.host_key_shown(scope)


def _manufacturer(scope: Scope) -> str:
    """The BMC's own word, else that of one of its systems."""
    owned = (s for s in scope.deps.servers.items() if s.spec.bmc_ref and s.spec.bmc_ref.name == scope.name)
    return scope.status.manufacturer or next((s.status.manufacturer for s in owned if s.status.manufacturer), "")
