"""Operation annotations that restart the BMC. `trust` handles those that accept a key, `connect` handles retry."""

from metal.controllers.bmc import restart
from metal.controllers.bmc.scope import Scope
from metal.kube.controller.controller import Result

GRACEFUL = "graceful-restart-bmc"
SSH = "force-ssh-reset-bmc"


async def run(scope: Scope) -> Result | None:
    """Restart the BMC once for each annotation; an annotation during a restart is removed with a warning."""
    operation = scope.operation
    if operation not in (GRACEFUL, SSH):
        return await restart.restart_if_failing(scope)
    if restart.is_in_progress(scope):
        await scope.consume_operation()
        scope.event("Warning", "ResetInProgress", f"{operation}: the BMC is restarting already")
        return None
    why = f"restarted because the operation annotation is {operation}"
    result = await restart.begin(scope, restart.USER, why, ssh=operation == SSH)
    # Before the annotation is removed: after a crash in between, status.restart shows that the restart was requested.
    await scope.commit()
    await scope.consume_operation()
    return result
