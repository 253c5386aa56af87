"""One network boot: window, override, power, and what became of it.

The window is written before anything reaches the BMC. A machine that boots from the network outside a window is served
nothing, so that a lost override or a crash here never re-images anybody.
"""

from dataclasses import dataclass
from datetime import timedelta

import msgspec

from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.common import ObjectRef
from metal.bmc.protocols import PowerState
from metal.controllers.server.netboot import boot_verification
from metal.controllers.server.netboot.override import clear_override
from metal.controllers.server.power import power
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import boot_window

_LOOK = 5.0
"""Seconds until the first look at a power-on; what the machine fetches tells of it anyway."""

_AWAITED: dict[str, str] = {
    Purpose.DISCOVERY: "ProbeReport",
    Purpose.MAINTENANCE: "MaintenanceBoot",
    Purpose.SANITIZATION: "Sanitization",
}
"""Names of the wait for a boot, by its purpose; any other is a claim's."""


@dataclass(frozen=True)
class Tenant:
    """For which claim a boot is, and which of its boots."""

    claim_uid: str = ""
    boot_generation: int = 0


NOBODY = Tenant()
"""A boot of the operator's own, or of a maintenance."""


def tenant_of(window: BootWindow) -> Tenant:
    """For whom a boot was begun."""
    return Tenant(window.claim_uid, window.boot_generation)


def belongs(window: BootWindow | None, config: ServerBootConfiguration, tenant: Tenant = NOBODY) -> bool:
    """True when the window is a boot of this configuration as it is now (for this claim)."""
    if window is None or window.config_uid != config.metadata.uid or tenant_of(window) != tenant:
        return False
    return window.config_generation in (0, config.metadata.generation)


def has_succeeded(scope: Scope, config: ServerBootConfiguration) -> bool:
    """True when the boot of this configuration is done."""
    window = scope.status.boot_window
    return window is not None and belongs(window, config) and window.phase == Phase.SUCCEEDED


def is_unfinished(scope: Scope) -> bool:
    """True when the last network boot began and never succeeded: the machine runs nothing worth a shutdown."""
    window = scope.status.boot_window
    if window is None or window.phase == Phase.SUCCEEDED:
        return False
    return scope.status.claim_boot is None or window.purpose == Purpose.SANITIZATION


async def network_boot(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, *, tenant: Tenant = NOBODY, timeout: float,
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
    if _resting(scope):
        return scope.wait("BootRetry", _wait_text(scope), deadline=_pause(scope))
    if window.phase == Phase.CONTESTED:
        return _contested(scope, window)
    if window.phase == Phase.CLOSED:
        return await _start(scope, config, purpose, tenant, timeout)
    window = _not_later(scope, window, timeout)
    if scope.now >= window.expires_at:
        return failed(scope, window, f"nothing arrived within {timeout:.0f} s (last step: {window.phase})")
    if begin_within is not None and _is_slow(scope, window, begin_within):
        return failed(scope, window, f"it did not begin within {begin_within:.0f} s (last step: {window.phase})")
    return await _drive(scope, window)


async def _stop_serving(scope: Scope) -> None:
    """What is to be booted has changed: the boot under way ends before anything of it goes out any more."""
    before = scope.status.boot_window
    scope.close_window()
    if scope.status.boot_window is not before:
        scope.set(boot_attempts=0)
        await scope.commit()


def _is_slow(scope: Scope, window: BootWindow, begin_within: float) -> bool:
    waiting = window.phase in (Phase.OPEN, Phase.SCRIPT_SERVED)
    return waiting and scope.now >= window.opened_at + timedelta(seconds=begin_within)


def _not_later(scope: Scope, window: BootWindow, timeout: float) -> BootWindow:
    """A clock that was set back must not keep a window open for longer than a boot may take."""
    latest = scope.now + timedelta(seconds=timeout)
    if window.expires_at > latest:
        window = msgspec.structs.replace(window, expires_at=latest)
        scope.set(boot_window=window)
    return window


async def _start(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, tenant: Tenant, timeout: float
) -> Requeue | None:
    why = f"a {purpose.value.lower()} boot starts from off"
    busy = await power.converge(scope, PowerState.OFF, why, force=is_unfinished(scope))
    if busy is not None:
        return busy
    _remember_served(scope)
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
        opened_at=scope.now,
        expires_at=scope.now + timedelta(seconds=timeout),
    )
    scope.set(boot_window=window)
    await scope.commit()
    return await _drive(scope, window)


def _remember_served(scope: Scope) -> None:
    """The window of a boot that failed is about to be replaced; what it handed out may have run all the same."""
    old = scope.status.boot_window
    if old is not None and old.purpose == Purpose.CLAIM and old.script_served_at is not None:
        scope.set(tenant_served=True)


async def _drive(scope: Scope, window: BootWindow) -> Requeue | None:
    begun, asked = window.phase != Phase.OPEN, scope.status.power_request is not None
    if asked and not begun and (early := power.too_early(scope)) > 0:
        return Requeue(early)
    if begun:
        await _check_override(scope, window)
    system = await scope.observe(max_age=_fresh_enough(scope))
    if system.power_state is PowerState.ON:
        scope.set(power_request=None)
        return _await_success(scope, window)
    if begun and asked:  # it has fetched something, so it is on, whatever the BMC says yet
        return _await_success(scope, window, poll=scope.settings.bmc_retry)
    if begun and system.power_state is PowerState.OFF:
        return failed(scope, window, "the machine went off before its boot was done")
    if not asked:
        await scope.require_latest()
        override = await scope.connected().set_network_boot(scope.uri)
        scope.note_override(override)
        if not override.is_network:
            return failed(scope, window, "the BMC did not take the network boot override")
    busy = await power.converge(scope, PowerState.ON, f"{window.purpose.lower()} boot", look=_LOOK)
    return busy if busy is not None else _await_success(scope, window)


def _fresh_enough(scope: Scope) -> float:
    """While the machine is known to be on, a late reading only delays noticing that it went off."""
    if scope.status.power_request is not None:
        return scope.settings.power_poll / 2
    return scope.settings.resync if scope.status.power_state == PowerState.ON.value else 0.0


def _await_success(scope: Scope, window: BootWindow, poll: float | None = None) -> Requeue:
    awaited = {
        Phase.OPEN: "the machine to fetch its boot script",
        Phase.SCRIPT_SERVED: "the machine to fetch its Ignition",
        Phase.IGNITION_SERVED: "the probe's report",
    }[Phase(window.phase)]
    if window.purpose == Purpose.SANITIZATION and window.phase == Phase.IGNITION_SERVED:
        awaited, poll = _erasure(scope), poll or scope.settings.sanitization_poll
    return scope.wait(_AWAITED.get(window.purpose, "ClaimBoot"), awaited, until=window.expires_at, poll=poll)


def _erasure(scope: Scope) -> str:
    seen = scope.status.sanitization_progress
    return "the drives to be erased" + (f": {seen.percent} %, {seen.message}" if seen is not None else "")


async def _check_override(scope: Scope, window: BootWindow) -> None:
    """Read the override back once the machine has begun: some BMCs ignore `Once` and keep it."""
    if scope.memo.checked_window != window.id:
        await clear_override(scope, max_age=0.0)
        scope.memo.checked_window = window.id


async def _succeeded(scope: Scope, window: BootWindow) -> Requeue | None:
    await _check_override(scope, window)
    doubt = boot_verification.await_proof(scope, window)
    if doubt is None:
        scope.set(boot_attempts=0)
    return doubt


def _contested(scope: Scope, window: BootWindow) -> Requeue:
    if _give_up(scope, window):
        return scope.fail(
            "BootContested",
            f"{scope.status.boot_attempts} network boots in a row were asked for by more than one party. Find the "
            "other one on the boot network, or let the DHCP server report its leases",
        )
    scope.no_wait()
    scope.record_event(
        "BootContested",
        "another party asked for this server's boot script; the boot is stopped and starts again with a new token",
        warning=True,
    )
    return Requeue(0)


def failed(scope: Scope, window: BootWindow, why: str) -> Requeue:
    """One attempt is over: a pause before the next one, or Error after the last."""
    if _give_up(scope, window):
        return scope.fail(
            "NetworkBootFailed",
            f"{scope.status.boot_attempts} network boots failed, the last because {why}. Look at the machine's console "
            "and DHCP",
        )
    scope.record_event("NetworkBootFailed", f"network boot {scope.status.boot_attempts} failed: {why}", warning=True)
    scope.set(wait=None)
    return scope.wait("BootRetry", _wait_text(scope), deadline=_pause(scope))


def _give_up(scope: Scope, window: BootWindow) -> bool:
    """Close the window of a boot that failed; True when it was the last attempt."""
    attempts = scope.status.boot_attempts + 1
    scope.set(boot_window=boot_window.close(window), boot_attempts=attempts, power_request=None)
    return attempts >= scope.settings.boot_attempts


def _wait_text(scope: Scope) -> str:
    return f"a pause before network boot {scope.status.boot_attempts + 1} of {scope.settings.boot_attempts}"


def _pause(scope: Scope) -> float:
    return scope.settings.boot_retry * 2.0 ** max(0, scope.status.boot_attempts - 1)


def _resting(scope: Scope) -> bool:
    wait = scope.status.wait
    return wait is not None and wait.for_ == "BootRetry" and not scope.overdue("BootRetry")
