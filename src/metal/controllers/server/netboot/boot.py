"""One network boot of a Server, from a machine that is off to a boot that has succeeded and is verified.

In: a boot configuration that can be served, the purpose of the boot, and for a claim its UID and boot generation. Each
pass calls `network_boot`, which makes one step and returns None once the boot counts.

1. A boot that cannot reach the minimum trust does not start (`trust`). The machine is switched off, at once when
   nothing on it needs a shutdown.
2. A boot window is written to `status.bootWindow`. The boot server serves scripts, images and Ignition only in an open
   window, and advances the window's phase. A machine that boots from the network at any other time is served nothing,
   so that neither a boot override that a BMC kept nor a manager that was killed here images a machine again.
3. The boot override is set to network, once, and read back; then the machine is switched on.
4. As soon as the machine has fetched something, the override is read back and cleared: some BMCs ignore `Once`.
5. The window succeeds, is contested by a second client, expires, or the machine goes off.

Remembered: the window, and `status.bootAttempts`, the number of failed boots in a row. After a failure the window is
closed, and the next boot starts after a pause (`BootRetry`) that doubles; after `boot_attempts` the server goes to
Error. A window that belongs to another configuration, generation or claim is closed before the new boot starts.

Outside of a network boot there must be no override: `clear_override` removes it, and reports a BMC that keeps it in a
condition; `await_override` keeps a tenant's machine off that would boot from the network instead of from its disk.
"""

from datetime import timedelta

import msgspec

from metal.api.boot_window import BootWindow, Method, Phase, Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.common import ObjectRef
from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from metal.bmc.power import PowerState
from metal.bmc.systems import SystemInfo
from metal.controllers.server import power
from metal.controllers.server.bmc import failing
from metal.controllers.server.netboot import trust
from metal.controllers.server.netboot.progress import (
    OPERATOR,
    Tenant,
    await_proof,
    belongs,
    described,
    is_unfinished,
)
from metal.controllers.server.reasons import Operation, Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import boot_window

_FIRST_POLL = 5.0
"""Seconds until the first reading after a power-on; a request of the machine shows it earlier."""

_AWAITED: dict[str, WaitFor] = {
    Purpose.DISCOVERY: WaitFor.PROBE_REPORT,
    Purpose.MAINTENANCE: WaitFor.MAINTENANCE_BOOT,
    Purpose.SANITIZATION: WaitFor.SANITIZATION,
}
"""Name of the wait for a boot, by its purpose; any other is the boot of a claim."""
_OVERRIDE_CLEARED = "BootOverrideCleared"
"""Condition: whether the BMC has cleared its network boot override."""


async def network_boot(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, *, tenant: Tenant = OPERATOR, timeout: float,
    begin_within: float | None = None,
) -> Requeue | None:  # fmt: skip
    """One step of a network boot of `config`; None once the window has succeeded. Raises BMCError.

    `timeout` is how long one boot may take, in seconds, `begin_within` how long until the machine has its Ignition.
    After too many failures the server goes to Error.
    """
    window = scope.status.boot_window
    if window is None or not belongs(window, config, tenant):
        await _stop_serving(scope)
        return await _start(scope, config, purpose, tenant, timeout)
    if window.phase == Phase.SUCCEEDED:
        return await _succeeded(scope, window)
    if _is_pausing(scope):
        return scope.wait(WaitFor.BOOT_RETRY, _wait_text(scope), deadline=_pause(scope))
    if window.phase == Phase.CONTESTED:
        return _contested(scope, window)
    if window.phase == Phase.CLOSED:
        return await _start(scope, config, purpose, tenant, timeout)
    window = _cap_expiry(scope, window, timeout)
    if scope.now >= window.expires_at:
        obstacle = _obstacle(scope, window)
        return failed(
            scope, window, f"it did not complete within {timeout:.0f} s (last step: {window.phase}){obstacle}"
        )
    if begin_within is not None and _is_slow(scope, window, begin_within):
        late = f"it did not begin within {begin_within:.0f} s (last step: {window.phase})"
        return failed(scope, window, late + trust.missing(scope, window))
    return await _follow_boot(scope, window)


def _obstacle(scope: Scope, window: BootWindow) -> str:
    """What kept the boot from starting, for messages: an operation on the BMC, or the trust that it did not reach."""
    found = (failing.find(scope, name) for name in (Operation.SET_BOOT_OVERRIDE, Operation.POWER_ON))
    failed = (f"; {one.operation} failed: {one.message.rstrip('.')}" for one in found if one is not None)
    return next(failed, trust.missing(scope, window))


async def _stop_serving(scope: Scope) -> None:
    """The configuration has changed: end the boot in progress before anything more of it is served."""
    before = scope.status.boot_window
    scope.close_window()
    if scope.status.boot_window is not before:
        scope.set(boot_attempts=0)
        await scope.commit()


def _is_slow(scope: Scope, window: BootWindow, begin_within: float) -> bool:
    waiting = window.phase in (Phase.OPEN, Phase.SCRIPT_SERVED)
    return waiting and scope.now >= window.opened_at + timedelta(seconds=begin_within)


def _cap_expiry(scope: Scope, window: BootWindow, timeout: float) -> BootWindow:
    """A clock that was set back must not keep a window open for longer than a boot may take."""
    latest = scope.now + timedelta(seconds=timeout)
    if window.expires_at > latest:
        window = msgspec.structs.replace(window, expires_at=latest)
        scope.set(boot_window=window)
    return window


async def _start(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, tenant: Tenant, timeout: float
) -> Requeue | None:
    minimum = trust.required(scope, tenant.minimum_trust)
    if (unreachable := await trust.before_power_on(scope, minimum)) is not None:
        return unreachable
    why = f"before a {purpose.value.lower()} boot"
    busy = await power.converge(scope, PowerState.OFF, why, force=is_unfinished(scope))
    if busy is not None:
        return busy
    ignition = config.spec.ignition_secret_ref
    window = BootWindow(
        id=f"{scope.context.rng.getrandbits(64):016x}",
        purpose=purpose.value,
        config_ref=ObjectRef(namespace=config.metadata.namespace, name=config.metadata.name),
        config_uid=config.metadata.uid,
        config_generation=config.metadata.generation,
        image=config.spec.image,
        ignition_secret=ignition.name if ignition is not None else "",
        claim_uid=tenant.claim_uid,
        boot_generation=tenant.boot_generation,
        method=Method.IPXE.value,
        minimum_trust=minimum,
        opened_at=scope.now,
        expires_at=scope.now + timedelta(seconds=timeout),
    )
    scope.set(tenancy=scope.tenancy, boot_window=window)  # what the former window served is in the record
    await scope.commit()
    return await _follow_boot(scope, window)


async def _follow_boot(scope: Scope, window: BootWindow) -> Requeue | None:
    begun, asked = window.phase != Phase.OPEN, scope.status.power_request is not None
    if asked and not begun and (left := power.seconds_until_poll(scope)) > 0:
        return Requeue(left)
    if begun:
        await _check_override(scope, window)
    system = await scope.observe(max_age=_max_reading_age(scope))
    if system.power_state is PowerState.ON:
        scope.set(power_request=None)
        return _await_success(scope, window)
    if begun and asked:  # it has fetched something, so it is on, although the BMC does not report On yet
        return _await_success(scope, window, poll=scope.settings.bmc_retry)
    if begun and system.power_state is PowerState.OFF:
        return failed(scope, window, "the machine powered off before its boot was complete")
    if not asked:
        failing.require_due(scope, Operation.SET_BOOT_OVERRIDE)
        await scope.require_latest()
        override = await scope.connected().set_network_boot(scope.uri)
        scope.record_override(override)
        if not override.is_network:
            return failed(scope, window, "the BMC did not set the network boot override")
    busy = await power.converge(scope, PowerState.ON, f"{window.purpose.lower()} boot", first_poll=_FIRST_POLL)
    return busy if busy is not None else _await_success(scope, window)


def _max_reading_age(scope: Scope) -> float:
    """While the machine is known to be on, an old reading only delays the detection of a power-off."""
    if scope.status.power_request is not None:
        return scope.settings.power_poll / 2
    return scope.settings.resync if scope.status.power_state == PowerState.ON.value else 0.0


def _await_success(scope: Scope, window: BootWindow, poll: float | None = None) -> Requeue:
    awaited = {
        Phase.OPEN: "the machine to fetch its boot script",
        Phase.SCRIPT_SERVED: "the machine to fetch its Ignition",
        Phase.IGNITION_SERVED: "the probe to send its report",
    }[Phase(window.phase)] + trust.missing(scope, window)
    if window.purpose == Purpose.SANITIZATION and window.phase == Phase.IGNITION_SERVED:
        awaited, poll = _erasure_text(scope), poll or scope.settings.sanitization_poll
    return scope.wait(_AWAITED.get(window.purpose, WaitFor.CLAIM_BOOT), awaited, until=window.expires_at, poll=poll)


def _erasure_text(scope: Scope) -> str:
    seen = scope.status.sanitization_progress
    return "the drives to be erased" + (f": {seen.percent} %, {seen.message}" if seen is not None else "")


async def _check_override(scope: Scope, window: BootWindow) -> None:
    """Read the override back once the machine has begun: some BMCs ignore `Once` and keep it."""
    if scope.memo.checked_window != window.id:
        await clear_override(scope, max_age=0.0)
        scope.memo.checked_window = window.id


async def _succeeded(scope: Scope, window: BootWindow) -> Requeue | None:
    await _check_override(scope, window)
    busy = await_proof(scope, window)
    if busy is None:
        scope.set(boot_attempts=0)
    return busy


def _contested(scope: Scope, window: BootWindow) -> Requeue:
    if _give_up(scope, window):
        return scope.fail(
            Reason.BOOT_CONTESTED,
            f"in {scope.status.boot_attempts} consecutive network boots, several clients requested the boot script. "
            "Find the other client on the boot network, or let the DHCP server report its leases",
        )
    scope.clear_wait()
    scope.record_event(
        "BootContested",
        "another client requested this server's boot script; the boot is restarted with a new token",
        warning=True,
    )
    return Requeue(0)


def failed(scope: Scope, window: BootWindow, why: str) -> Requeue:
    """End one attempt: a pause before the next one, or Error after the last."""
    if _give_up(scope, window):
        return scope.fail(
            Reason.NETWORK_BOOT_FAILED,
            f"{scope.status.boot_attempts} network boots failed, the last because {why}. Check the machine's console "
            "and DHCP",
        )
    text = f"network boot {scope.status.boot_attempts} ({described(window)}) failed: {why}"
    scope.record_event("NetworkBootFailed", text, warning=True)
    scope.set(wait=None)
    return scope.wait(WaitFor.BOOT_RETRY, _wait_text(scope), deadline=_pause(scope))


def _give_up(scope: Scope, window: BootWindow) -> bool:
    """Close the window of a boot that failed; True when it was the last attempt."""
    attempts = scope.status.boot_attempts + 1
    scope.set(boot_window=boot_window.close(window), boot_attempts=attempts, power_request=None)
    return attempts >= scope.settings.boot_attempts


def _wait_text(scope: Scope) -> str:
    return f"the pause before network boot {scope.status.boot_attempts + 1} of {scope.settings.boot_attempts} to end"


def _pause(scope: Scope) -> float:
    return scope.settings.boot_retry * 2.0 ** max(0, scope.status.boot_attempts - 1)


def _is_pausing(scope: Scope) -> bool:
    wait = scope.status.wait
    return wait is not None and wait.for_ == WaitFor.BOOT_RETRY and not scope.overdue(WaitFor.BOOT_RETRY)


async def clear_override(scope: Scope, *, max_age: float | None = None) -> SystemInfo:
    """Remove the override, so that the next boot is from the disk; returns the system as read before.

    A BMC that keeps the override is reported in a condition. Raises BMCError.
    """
    system = await scope.observe(max_age=max_age)
    if not system.boot.is_network:
        _record_override_cleared(scope)
        return system
    failing.require_due(scope, Operation.CLEAR_BOOT_OVERRIDE)
    await scope.require_latest()
    scope.invalidate()
    if await _clear(scope):
        scope.condition(_OVERRIDE_CLEARED, True, "Cleared", "the BMC had kept the network boot override; it is cleared")
        return system
    message = "the BMC keeps the network boot override; nothing is served to it"
    known = scope.find_condition(_OVERRIDE_CLEARED)
    if known is None or known.status != "False":
        scope.record_event("OverrideKept", message, warning=True)
    scope.condition(_OVERRIDE_CLEARED, False, "OverrideKept", message)
    return system


async def _clear(scope: Scope) -> bool:
    try:
        return not (await scope.connected().clear_boot_override(scope.uri)).is_network
    except (BMCNotSupported, BMCBadRequest):  # it rejects every supported request
        return False


def _record_override_cleared(scope: Scope) -> None:
    known = scope.find_condition(_OVERRIDE_CLEARED)
    if known is not None and known.status != "True":
        scope.condition(_OVERRIDE_CLEARED, True, "Cleared", "the BMC has cleared the network boot override")


def is_override_kept(scope: Scope) -> bool:
    """True when the last reading showed the override although the BMC was asked to clear it."""
    known = scope.find_condition(_OVERRIDE_CLEARED)
    return known is not None and known.status == "False"


def await_override(scope: Scope) -> Requeue:
    """Wait before switching the machine on, which would boot from the network instead of from its tenant's disk."""
    if scope.overdue(WaitFor.BOOT_OVERRIDE):
        return scope.fail(
            Reason.BOOT_OVERRIDE_KEPT,
            "the BMC keeps the network boot override; if it were switched on, the claim's machine would boot from the "
            "network instead of from its disk. Clear the override at the BMC; the server then continues",
        )
    return scope.wait(WaitFor.BOOT_OVERRIDE, "the BMC to clear the network boot override", poll=30)
