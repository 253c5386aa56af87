"""Maintenance: applies what the ServerMaintenance that holds the server requests, then returns to the former state."""

import msgspec

from metal.api.boot_window import Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.interruption import Interruption
from metal.api.maintenance import ServerMaintenance
from metal.api.names import OPERATION
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.bmc.systems import SystemInfo
from metal.controllers.server import power
from metal.controllers.server.bmc import led_and_boot_order
from metal.controllers.server.bmc.bmc_errors import REFUSED
from metal.controllers.server.netboot import boot
from metal.controllers.server.netboot.progress import has_succeeded, record_success
from metal.controllers.server.netboot.readiness import await_config, await_config_change
from metal.controllers.server.reasons import Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.adoption import takeover
from metal.controllers.server.tenancy.tenancy import find_claim
from metal.controllers.server.traits import traits_of
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import Key
from metal.kube.meta.ownership import is_controlled_by

_LEAVE_FAILURES = (Reason.POWER_OFF_TIMEOUT, *REFUSED)
"""Failures that switching a machine off may cause."""


async def enter(scope: Scope) -> Requeue | None:
    """Enter Maintenance, if one holds the server and the state is interruptible."""
    if scope.server.spec.server_maintenance_ref is None or not _is_interruptible(scope):
        return None
    failure, state = scope.status.failure, scope.status.state
    if state == State.ERROR and failure is not None and failure.state == State.MAINTENANCE:
        return None  # the failure is one of this state
    failed = state == State.ERROR
    known = failure.state if failed and failure is not None else state
    scope.set(interruption=Interruption(state=known, touched=failed))
    return scope.transition(State.MAINTENANCE, "a maintenance holds the server")


def _is_interruptible(scope: Scope) -> bool:
    return bool(scope.status.state) and traits_of(scope.status.state).interruptible


def is_over(scope: Scope, reason: str, system: SystemInfo) -> bool:
    """True when the maintenance in which the server failed for `reason` has ended, and leaving it cannot fail again.

    A machine that cannot be switched off stays here, so that the maintenance's system never counts as the claim's.
    """
    ref, visit = scope.server.spec.server_maintenance_ref, scope.status.interruption
    if ref is None:
        stuck = reason in _LEAVE_FAILURES and _is_claimed(scope) and _has_own_window(scope)
        return not stuck or system.power_state is PowerState.OFF
    found = scope.deps.maintenances.get(Key(ref.name, ref.namespace))
    return found is not None and visit is not None and found.metadata.uid != visit.maintenance_uid


async def run(scope: Scope) -> Requeue:
    """One step of what the maintenance requests; what it leaves empty is not changed. Raises BMCError."""
    ref = scope.server.spec.server_maintenance_ref
    if ref is None:
        return await _leave(scope)
    system = await scope.observe()
    asked = scope.deps.maintenances.get(Key(ref.name, ref.namespace))
    to_end = f"the maintenance {ref.namespace}/{ref.name} to end"
    if takeover.is_undecided(scope):
        retry = f"kubectl annotate servers {scope.name} {scope.context.kinds.key(OPERATION)}=retry"
        return scope.wait(
            WaitFor.MAINTENANCE, f"{to_end}; another operator started it, so nothing is changed; to continue: {retry}"
        )
    if asked is not None and asked.metadata.deletion_timestamp is None:
        _record_visit(scope, asked, on=system.power_state is not PowerState.OFF)
        busy = await _apply(scope, asked)
        if busy is not None:
            return busy
    return scope.wait(WaitFor.MAINTENANCE, to_end)


def _record_visit(scope: Scope, asked: ServerMaintenance, *, on: bool) -> None:
    visit = scope.status.interruption or Interruption(touched=True)
    led = visit.locator_led or _is_set(asked.spec.locator_led)
    moves = on or bool(asked.spec.server_power == PowerState.ON or asked.spec.server_boot_configuration_template)
    fresh = msgspec.structs.replace(
        visit, maintenance_uid=asked.metadata.uid, touched=visit.touched or moves, locator_led=led
    )
    if fresh != scope.status.interruption:
        scope.set(interruption=fresh)


def _is_set(led: str) -> bool:
    return led not in ("", "Unknown")


async def _apply(scope: Scope, asked: ServerMaintenance) -> Requeue | None:
    """LED, network boot and power, in this order; None once all are as requested."""
    if _is_set(asked.spec.locator_led):
        await led_and_boot_order.set_location_led(scope, asked.spec.locator_led)
    else:
        await _restore_led(scope)
    boots = asked.spec.server_boot_configuration_template is not None and asked.spec.server_power != PowerState.OFF
    if boots:
        busy = await _boot(scope, asked)
        if busy is not None:
            return busy
    elif _has_own_window(scope):
        scope.close_window()
    return await _power(scope, asked)


async def _boot(scope: Scope, asked: ServerMaintenance) -> Requeue | None:
    config = _config(scope, asked)
    if config is None:
        return await_config_change(scope, "the maintenance's boot configuration to be created")
    if not has_succeeded(scope, config):
        unready = await_config(scope, config)
        if unready is None:
            claim = await find_claim(scope)  # a boot of the claim is recorded before this one starts
            unready = await record_success(scope, claim) if claim is not None else None
        if unready is not None:
            return unready
    return await boot.network_boot(scope, config, Purpose.MAINTENANCE, timeout=scope.settings.claim_boot_timeout)


def _config(scope: Scope, asked: ServerMaintenance) -> ServerBootConfiguration | None:
    config = scope.maintenance_config()
    return config if config is not None and is_controlled_by(config, asked) else None


async def _power(scope: Scope, asked: ServerMaintenance) -> Requeue | None:
    if not asked.spec.server_power:
        return None
    target = PowerState(asked.spec.server_power)
    if target is PowerState.ON and scope.tenancy.uid and scope.status.power_request is None:
        system = await boot.clear_override(scope)
        if system.power_state is not PowerState.ON and boot.is_override_kept(scope):
            return boot.await_override(scope)
    return await power.converge(scope, target, "the maintenance's power")


def _has_own_window(scope: Scope) -> bool:
    window = scope.status.boot_window
    return window is not None and window.purpose == Purpose.MAINTENANCE


async def _restore_led(scope: Scope) -> None:
    visit, declared = scope.status.interruption, scope.server.spec.indicator_led
    if visit is None or not visit.locator_led:
        return
    await led_and_boot_order.set_location_led(scope, declared if _is_set(declared) else "Off")
    scope.set(interruption=msgspec.structs.replace(visit, locator_led=False))


async def _leave(scope: Scope) -> Requeue:
    """Return to the former state; a claimed machine is switched off first if the maintenance booted it."""
    scope.close_window()
    await _restore_led(scope)
    claimed = _is_claimed(scope)
    if _has_own_window(scope):
        busy = await _end_own_system(scope) if claimed else None
        if busy is not None:
            return busy
        scope.set(boot_window=None)
    visit = scope.status.interruption
    scope.set(boot_attempts=0, interruption=None)
    if visit is not None and visit.state == State.RELEASED and not visit.touched:
        return scope.transition(State.RELEASED, "the maintenance ended without switching the machine on")
    if claimed:
        return scope.transition(State.RESERVED, "the maintenance ended; the server returns to its claim")
    if visit is not None and visit.state == State.AVAILABLE and not visit.touched:
        return scope.transition(
            State.AVAILABLE, "the maintenance ended without switching the machine on; the server can be claimed"
        )
    return scope.transition(
        State.INITIAL, "the maintenance ended; the hardware may have changed, so discovery runs again"
    )


def _is_claimed(scope: Scope) -> bool:
    return scope.server.spec.server_claim_ref is not None or bool(scope.tenancy.uid)


async def _end_own_system(scope: Scope) -> Requeue | None:
    return await power.converge(scope, PowerState.OFF, "the maintenance's system ends before the claim's starts")
