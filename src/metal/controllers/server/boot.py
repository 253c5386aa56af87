"""One network boot: window, override, power, and what became of it.

The window is written before anything reaches the BMC. A machine that boots from the network outside a window is served
nothing, so that a lost override or a crash here never re-images anybody.
"""

from datetime import timedelta

from metal.api import boot_window
from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.common import ObjectRef
from metal.bmc.protocols import PowerState, SystemInfo
from metal.controllers.server import power
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue


def belongs(window: BootWindow | None, config: ServerBootConfiguration, claim_uid: str) -> bool:
    """True when the window is a boot of this configuration (for this claim)."""
    return window is not None and window.config_uid == config.metadata.uid and window.claim_uid == claim_uid


async def network_boot(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, *, claim_uid: str = "", timeout: float
) -> Requeue | None:
    """One step of a network boot of `config`; None once the window has succeeded. Raises BMCError.

    `timeout` is how long one boot may take, in seconds. After too many failures the server goes to Error.
    """
    window = scope.status.boot_window
    if window is None or not belongs(window, config, claim_uid):
        return await _start(scope, config, purpose, claim_uid, timeout)
    if window.phase == Phase.SUCCEEDED:
        return await _succeeded(scope)
    if _resting(scope):
        return scope.wait("BootRetry", _wait_text(scope), deadline=_pause(scope))
    if window.phase == Phase.CONTESTED:
        return _contested(scope, window)
    if window.phase == Phase.CLOSED:
        return await _start(scope, config, purpose, claim_uid, timeout)
    if scope.now >= window.expires_at:
        return await _failed(scope, window, f"nothing arrived within {timeout:.0f} s (last step: {window.phase})")
    return await _drive(scope, window)


async def _start(
    scope: Scope, config: ServerBootConfiguration, purpose: Purpose, claim_uid: str, timeout: float
) -> Requeue | None:
    busy = await power.converge(scope, PowerState.OFF, f"{purpose.value.lower()} boot starts from off")
    if busy is not None:
        return busy
    window = BootWindow(
        id=f"{scope.context.rng.getrandbits(64):016x}",
        purpose=purpose.value,
        config_ref=ObjectRef(namespace=config.metadata.namespace, name=config.metadata.name),
        config_uid=config.metadata.uid,
        claim_uid=claim_uid,
        opened_at=scope.now,
        expires_at=scope.now + timedelta(seconds=timeout),
    )
    scope.set(boot_window=window)
    await scope.commit()
    scope.memo.checked_window = ""
    return await _drive(scope, window)


async def _drive(scope: Scope, window: BootWindow) -> Requeue | None:
    begun = window.phase != Phase.OPEN
    if begun:
        system = await _check_override(scope, window)
    else:
        system = await scope.observe(max_age=_fresh_enough(scope))
    if system.power_state is PowerState.ON:
        scope.set(power_request=None)
        return _await_success(scope, window)
    if begun and system.power_state is PowerState.OFF:
        return await _failed(scope, window, "the machine went off before its boot was done")
    if not system.boot.is_network and scope.status.power_request is None:
        override = await scope.connected().set_network_boot(scope.uri)
        scope.stale()
        if not override.is_network:
            return await _failed(scope, window, "the BMC did not take the network boot override")
    busy = await power.converge(scope, PowerState.ON, f"{window.purpose.lower()} boot")
    return busy if busy is not None else _await_success(scope, window)


def _fresh_enough(scope: Scope) -> float:
    """While the machine is known to be on, a late reading only delays noticing that it went off."""
    return scope.settings.resync if scope.status.power_state == PowerState.ON.value else 0.0


def _await_success(scope: Scope, window: BootWindow) -> Requeue:
    left = (window.expires_at - scope.now).total_seconds()
    awaited = {
        Phase.OPEN: "the machine to fetch its boot script",
        Phase.SCRIPT_SERVED: "the machine to fetch its Ignition",
        Phase.IGNITION_SERVED: "the probe's report",
    }[Phase(window.phase)]
    name = "ProbeReport" if window.purpose == Purpose.DISCOVERY else "ClaimBoot"
    total = (window.expires_at - window.opened_at).total_seconds()
    again = scope.wait(name, awaited, deadline=total)
    return Requeue(max(0.05, min(left, again.after)))


async def _check_override(scope: Scope, window: BootWindow) -> SystemInfo:
    """Read the override back once the machine has begun: some BMCs ignore `Once` and keep it."""
    if scope.memo.checked_window == window.id:
        return await scope.observe(max_age=scope.settings.resync)
    system = await clear_override(scope)
    scope.memo.checked_window = window.id
    return system


async def clear_override(scope: Scope) -> SystemInfo:
    """Make sure that the next boot goes to the disk. Raises BMCError; a BMC that keeps the override is a condition."""
    system = await scope.observe(max_age=0.0)
    if not system.boot.is_network:
        return system
    override = await scope.connected().clear_boot_override(scope.uri)
    scope.stale()
    if override.is_network:
        scope.condition("BootOverrideCleared", False, "OverrideKept", "the BMC keeps the network boot override")
        scope.tell("OverrideKept", "the BMC keeps the network boot override; nothing is served to it", warning=True)
    else:
        scope.condition("BootOverrideCleared", True, "Cleared", "the BMC had kept the network boot override")
    return system


async def _succeeded(scope: Scope) -> Requeue | None:
    window = scope.status.boot_window
    if window is not None and scope.memo.checked_window != window.id:
        await _check_override(scope, window)
    scope.set(boot_attempts=0)
    return None


def _contested(scope: Scope, window: BootWindow) -> Requeue:
    attempts = scope.status.boot_attempts + 1
    scope.set(boot_window=boot_window.close(window), boot_attempts=attempts, power_request=None)
    if attempts >= scope.settings.boot_attempts:
        return scope.fail(
            "BootContested",
            f"{attempts} network boots in a row were asked for by more than one party. Find the other one on the boot "
            "network, or let the DHCP server report its leases, then annotate the server with operation=retry",
        )
    scope.tell(
        "BootContested",
        "another party asked for this server's boot script; the boot is stopped and starts again with a new token",
        warning=True,
    )
    return Requeue(0)


async def _failed(scope: Scope, window: BootWindow, why: str) -> Requeue:
    attempts = scope.status.boot_attempts + 1
    scope.set(boot_window=boot_window.close(window), boot_attempts=attempts, power_request=None)
    if attempts >= scope.settings.boot_attempts:
        return scope.fail(
            "NetworkBootFailed",
            f"{attempts} network boots failed, the last because {why}. Look at the machine's console and DHCP, "
            "then annotate it with operation=retry",
        )
    scope.tell("NetworkBootFailed", f"network boot {attempts} failed: {why}", warning=True)
    scope.set(wait=None)
    return scope.wait("BootRetry", _wait_text(scope), deadline=_pause(scope))


def _wait_text(scope: Scope) -> str:
    return f"a pause before network boot {scope.status.boot_attempts + 1} of {scope.settings.boot_attempts}"


def _pause(scope: Scope) -> float:
    return scope.settings.boot_retry * 2.0 ** max(0, scope.status.boot_attempts - 1)


def _resting(scope: Scope) -> bool:
    wait = scope.status.wait
    return wait is not None and wait.for_ == "BootRetry" and not scope.overdue("BootRetry")


def close_window(scope: Scope) -> None:
    """Nothing more is served to the machine."""
    window = scope.status.boot_window
    if window is not None and window.phase not in (Phase.SUCCEEDED, Phase.CLOSED):
        scope.set(boot_window=boot_window.close(window))
