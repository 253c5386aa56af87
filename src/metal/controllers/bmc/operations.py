"""Operations on the BMC: restarts over Redfish or SSH. Those that accept a key are in `trust`, retry is in `reach`."""

from metal.controllers.bmc import restart
from metal.controllers.bmc.scope import Scope
from metal.kube.controller.controller import Result

GRACEFUL = "graceful-restart-bmc"
SSH = "force-ssh-reset-bmc"


async def operate(scope: Scope) -> Result | None:
    """Restart the BMC once for each annotation; one that comes while it restarts is said to be in vain."""
    operation = scope.operation
    if operation not in (GRACEFUL, SSH):
        return await restart.heal(scope)
    if restart.is_awaited(scope):
        await scope.consume_operation()
        scope.event("Warning", "ResetInProgress", f"{operation}: the BMC is restarting already")
        return None
    why = f"restarted because the operation annotation says {operation}"
    result = await restart.begin(scope, restart.USER, why, ssh=operation == SSH)
    await (
        scope.commit()
    )  # a crash before the next write leaves an annotation of a restart that is known to be under way
    await scope.consume_operation()
    return result
