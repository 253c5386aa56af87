"""Cleanup: switches the machine off, erases its tenant's data as the policy says, and removes the claim."""

import msgspec

from metal.api.sanitization import Policy
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.netboot import probe_boot
from metal.controllers.server.netboot.boot import clear_override
from metal.controllers.server.netboot.progress import is_unfinished
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import living_claims, owed_drives, sanitization_policy
from metal.controllers.server.tenancy import sanitization as sanitize
from metal.controllers.server.tenancy.adoption import lost_status, recreated
from metal.kube.controller.controller import Requeue
from metal.machine import lease_tenancy, tenancy

_ACCEPTED = "Accepted"


async def run(scope: Scope) -> Requeue:
    """Off, erased, off again, override cleared, claim removed; then Available (Released with Retain)."""
    if sanitize.current_window(scope) is None:
        busy = await living_claims.before_release(scope) or await living_claims.before_switch_off(scope)
        busy = busy or await _switch_off(scope)
        if busy is not None:
            return busy
    if not scope.tenancy.sanitization:
        busy = await _sanitize(scope)
        if busy is not None:
            return busy
    await clear_override(scope)
    return await _release(scope)


async def _switch_off(scope: Scope) -> Requeue | None:
    scope.close_window()
    return await power.converge(scope, PowerState.OFF, "cleanup", force=is_unfinished(scope))


async def _sanitize(scope: Scope) -> Requeue | None:
    """None once the result for the data is in the pending status."""
    if not scope.tenancy.policy:
        sanitization_policy.record_policy(scope, None)
    if scope.tenancy.policy == Policy.NONE:
        scope.set(tenancy=tenancy.accepted(scope.tenancy, "None", scope.now), boot_window=None)
        scope.condition(ConditionType.SANITIZED, False, "PolicyNone", sanitization_policy.left_data(scope))
        return None
    if not tenancy.holds_data(scope.tenancy) and await _has_begun(scope):
        scope.set(tenancy=tenancy.served(scope.tenancy, scope.now))
    if not tenancy.holds_data(scope.tenancy):
        scope.set(tenancy=tenancy.not_owed(scope.tenancy), boot_window=None)
        message = "nothing of the last tenant was served to the machine"
        scope.condition(ConditionType.SANITIZED, True, "NothingServed", message)
        return None
    return await sanitize.run(scope)


async def _has_begun(scope: Scope) -> bool:
    """Whether the claim was booted although the record does not know: a backup of the record was restored."""
    known = scope.tenancy
    is_recorded = lease_tenancy.is_booting(scope.status, known)
    return not is_recorded and await scope.deps.leases.has_begun(scope.server, known.uid)


async def _release(scope: Scope) -> Requeue:
    """A manager that continues after a crash in here finds the result, and does not erase again."""
    result = scope.tenancy.sanitization
    await scope.require_in_charge(again=True)  # the copy of the record is removed while it still names its claim
    changes: dict[str, object] = sanitization_policy.taints(scope)
    await recreated.close_records(scope)
    await owed_drives.settle(scope)
    known = scope.tenancy
    scope.set(tenancy=msgspec.structs.replace(known, boot=None, policy=""), boot_window=None, firmware_reset=None)
    if scope.server.spec.reclaim_policy == "Retain" and not recreated.is_undiscovered(scope):
        await scope.commit()
        await scope.patch({"metadata": lost_status.change(scope, scope.tenancy), "spec": changes})
        return scope.transition(
            State.RELEASED, "released; remove spec.serverClaimRef to make the server available again"
        )
    scope.set(tenancy=tenancy.released(scope.tenancy))
    await scope.commit()
    await probe_boot.drop(scope)
    spec = {"serverClaimRef": None, "bootConfigurationRef": None, **changes}
    await scope.patch({"metadata": lost_status.change(scope, scope.tenancy), "spec": spec})
    scope.deps.count_cleanup(result)
    if result == _ACCEPTED:
        return scope.transition(State.INITIAL, "sanitization failure accepted; rediscovering the server")
    if recreated.is_undiscovered(scope):
        return scope.transition(State.INITIAL, "erased before its discovery; discovery starts")
    how = "sanitization policy None" if result == Policy.NONE else f"sanitization {result}"
    return scope.transition(State.AVAILABLE, f"cleaned up with {how}; the server can be claimed")
