"""Initial: reads the BMC's inventory of the machine and prepares the discovery boot."""

from metal.api.server import State
from metal.controllers.server import duplicates, system_check
from metal.controllers.server.bmc import inventory_summary
from metal.controllers.server.netboot import ignition, probe_boot
from metal.controllers.server.reasons import ConditionType, Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import owed_drives
from metal.controllers.server.tenancy.adoption import adoption
from metal.kube.controller.controller import Requeue


async def run(scope: Scope) -> Requeue:
    """Write the inventory to the status, and the discovery boot configuration and its Ignition; then Discovery."""
    await scope.observe()  # a BMC that does not answer is not a failure of the inventory
    inventory = await scope.connected().inventory(scope.uri)
    system_check.require(scope.server, inventory.system)
    scope.set(**inventory_summary.of_inventory(inventory, scope.status))
    if inventory.problems:
        scope.condition(ConditionType.INVENTORY_COMPLETE, False, "PartlyRead", "; ".join(inventory.problems)[:1000])
    else:
        scope.condition(ConditionType.INVENTORY_COMPLETE, True, "Read", "the BMC's inventory was read")
    unclear = duplicates.before_discovery(scope)
    if unclear is not None:
        return unclear
    await scope.require_in_charge()
    if (former := await adoption.before_discovery(scope)) is not None:
        return former
    if (busy := await owed_drives.before_boot(scope)) is not None:
        return busy
    try:
        text = ignition.discovery(scope.settings.probe_bundle, scope.settings.registry_url, scope.server.uuid)
    except ValueError as exc:
        return scope.fail(Reason.INVALID_SPEC, str(exc))
    await probe_boot.write(scope, text)
    scope.set(boot_attempts=0, boot_window=None)  # a report of an earlier boot proves nothing now
    return scope.transition(State.DISCOVERY, "inventory read from the BMC; the discovery boot is being prepared")
