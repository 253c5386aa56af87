"""Available: discovered, without data of a tenant, kept off, until a claim or a maintenance takes it."""

from typing import Any

from metal.api.boot_window import Phase
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.bmc import inventory, led_and_boot_order
from metal.controllers.server.netboot import probe_boot
from metal.controllers.server.netboot.boot import clear_override
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.adoption import lost_status, unknown_data
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy


async def run(scope: Scope) -> Requeue:
    """Keep the machine off and its settings as declared; Reserved when a claim holds the server."""
    if scope.memo.record_compared != scope.tenancy.since:
        await scope.require_in_charge()
    if (unsettled := await unknown_data.settle_data(scope)) is not None:
        return unsettled
    if scope.tenancy.claim_ref is not None or tenancy.holds_data(scope.tenancy):
        return scope.transition(State.CLEANUP, "data of a tenant may be on the drives; the server is being cleaned up")
    if _was_contested(scope):
        message = (
            "another client requested the boot script of the discovery; its report is not trusted, discovery restarts"
        )
        return scope.transition(State.INITIAL, message, warning=True)
    if scope.server.spec.server_claim_ref is not None:
        return scope.transition(State.RESERVED, "claimed")
    await _settle(scope)
    busy = await power.converge(scope, PowerState.OFF, "an available server is kept off")
    if busy is not None:
        return busy
    await clear_override(scope)
    await led_and_boot_order.apply(scope)
    scope.clear_wait()
    scope.condition(ConditionType.READY, True, "Available", "the server can be claimed")
    return Requeue(scope.context.jitter(scope.settings.resync))


def _was_contested(scope: Scope) -> bool:
    window = scope.status.boot_window
    return window is not None and window.phase == Phase.CONTESTED


async def _settle(scope: Scope) -> None:
    """Remove the discovery boot configuration, and label the server with its inventory."""
    changes: dict[str, Any] = {}
    if labels := inventory.label_changes(scope):
        changes["metadata"] = {"labels": labels}
    if kept := lost_status.change(scope, scope.tenancy):
        changes["metadata"] = {**changes.get("metadata", {}), **kept}
    if scope.server.spec.boot_configuration_ref is not None:
        await probe_boot.drop(scope)
        changes["spec"] = {"bootConfigurationRef": None}
    if changes:
        await scope.patch(changes)
