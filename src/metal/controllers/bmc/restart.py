"""Restarts a BMC over Redfish, or over SSH when Redfish fails.

`status.restart` and the condition Reset=True are written before the request is sent, so after a crash the request is
not sent a second time. While Reset is True the Servers of the BMC wait, and its errors do not count as failures. The
wait ends when the BMC answers (ResetComplete) or at `restart.until` (ResetTimeout). An administrator requests a
restart with the operation annotation; with `auto_reset` a BMC that failed for `reset_after` is restarted once in
`reset_again`.
"""

import asyncio
from datetime import timedelta

import msgspec

from metal.api.bmc import Restart
from metal.api.names import OPERATION
from metal.bmc.errors import BMCError, BMCNotSupported, BMCServerError, BMCTimeout, BMCUnreachable
from metal.bmc.pool import BMC
from metal.bmc.shell import ShellAccess
from metal.bmc.vendors import RESTARTABLE, restart_command
from metal.controllers.bmc import trust
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.condition_types import RESET
from metal.kube.controller.controller import Requeue, Result
from metal.kube.meta.conditions import find, is_true

USER, AUTO = "UserRequested", "AutoResetting"
_RESTART_MAY_HELP = (BMCServerError, BMCUnreachable, BMCTimeout)
"""Errors of a BMC that a restart may repair; when Redfish fails with one of them, SSH is tried."""
_RESTART_MAY_HELP_REASONS = frozenset({kind.reason for kind in _RESTART_MAY_HELP} | {"ServiceUnavailable"})


async def begin(scope: Scope, reason: str, why: str, *, ssh: bool = False) -> Result:
    """Request a restart. A request that cannot be sent is reported in Reset=False with the reason."""
    limit = scope.deps.settings.reset_timeout
    scope.set(restart=Restart(reason=reason, at=scope.now, until=scope.now + timedelta(seconds=limit)))
    scope.report(RESET, True, reason, why)
    _set_pending(scope)
    await scope.commit()  # before it is sent: after a crash it must not be sent again
    try:
        method = await _send(scope, ssh=ssh)
    except BMCError as exc:
        text = f"the BMC was not restarted: {trust.explain_error(scope, exc)}"
        scope.condition(RESET, False, exc.reason, text)
        scope.event("Warning", "ResetFailed", text)
        scope.state("Error", f"the BMC at {scope.address} to answer")
        return Requeue(scope.memo.backoff.next())
    scope.set(restart=msgspec.structs.replace(scope.status.restart, method=method))
    scope.condition(RESET, True, reason, f"{why}; requested over {method}")
    return Requeue(scope.deps.settings.reset_wait)


async def restart_if_failing(scope: Scope) -> Result | None:
    """Restart a BMC that has failed for a long time, if that is configured."""
    settings, ready = scope.deps.settings, find(scope.status.conditions, "Ready")
    if (
        not settings.auto_reset
        or ready is None
        or ready.status != "False"
        or ready.reason not in _RESTART_MAY_HELP_REASONS
    ):
        return None
    last = scope.status.restart
    failing = scope.seconds_left(ready.last_transition_time, settings.reset_after) == 0
    if not failing or is_in_progress(scope) or (last and scope.seconds_left(last.at, settings.reset_again)):
        return None
    return await begin(scope, AUTO, f"restarted because it has failed for {settings.reset_after:g} s ({ready.reason})")


async def check_deadline(scope: Scope) -> Result | None:
    """End the wait at its deadline: the BMC's errors count as failures from then on."""
    if not is_true(scope.status.conditions, RESET):
        return None
    last = scope.status.restart
    if last is None or last.until is None or scope.now >= last.until:
        again = f"{scope.context.kinds.key(OPERATION)}=force-ssh-reset-bmc"
        limit = scope.deps.settings.reset_timeout
        text = (
            f"the BMC did not answer within {limit:g} s after its restart: check it, or restart it over SSH with the "
            f"annotation {again}"
        )
        scope.report(RESET, False, "ResetTimeout", text)
    return None


def is_in_progress(scope: Scope) -> bool:
    """Whether the BMC is restarting."""
    return is_true(scope.status.conditions, RESET)


def complete(scope: Scope) -> None:
    """End the wait for a restart: the BMC answers."""
    if is_in_progress(scope):
        scope.report(RESET, False, "ResetComplete", "the BMC answers again after its restart")


def limit_requeue(scope: Scope, result: Result) -> Result:
    """Requeue at the deadline of a restart at the latest."""
    last = scope.status.restart
    if not is_in_progress(scope) or last is None or last.until is None:
        return result
    left = max(0.0, (last.until - scope.now).total_seconds()) + 1.0
    return Requeue(min(left, result.after)) if isinstance(result, Requeue) else Requeue(left)


def _set_pending(scope: Scope) -> None:
    scope.state("Pending", f"the BMC to restart, until {scope.status.restart.until:%H:%M:%S} UTC")


async def _send(scope: Scope, *, ssh: bool) -> str:
    """Send the request; returns Redfish or SSH, which is used when Redfish fails. Raises BMCError."""
    if not ssh:
        try:
            await scope.contact(_by_redfish)
        except _RESTART_MAY_HELP as exc:
            scope.event("Normal", "TryingSSH", f"Redfish could not restart the BMC: {exc}")
        else:
            return "Redfish"
    limit = scope.deps.settings.ssh_timeout
    try:
        async with asyncio.timeout(limit):
            await _by_ssh(scope)
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {scope.address} did not accept a restart over SSH within {limit:g} s") from None
    scope.set(last_reset_time=scope.now)
    return "SSH"


async def _by_redfish(scope: Scope, bmc: BMC) -> None:
    await bmc.reset_manager(scope.obj.spec.bmc_uuid)


async def _by_ssh(scope: Scope) -> None:
    manufacturer = _manufacturer(scope)
    command = restart_command(manufacturer)
    if not command:
        maker = f"of {manufacturer}" if manufacturer else "of unknown manufacturer"
        raise BMCNotSupported(f"restarting a BMC {maker} over SSH is not supported; supported are {RESTARTABLE}")
    endpoint, port = scope.require_bmc_endpoint(), scope.deps.settings.ssh_port
    key = await trust.host_key(scope, endpoint.address, port)
    shell = ShellAccess(endpoint.address, port, endpoint.username, endpoint.password, key)
    await scope.deps.shell.run(shell, command)
    trust.clear_refused_host_key(scope)


def _manufacturer(scope: Scope) -> str:
    """The manufacturer that the BMC reports, else that of one of its systems."""
    owned = (s for s in scope.deps.servers.items() if s.spec.bmc_ref and s.spec.bmc_ref.name == scope.name)
    return scope.status.manufacturer or next((s.status.manufacturer for s in owned if s.status.manufacturer), "")
