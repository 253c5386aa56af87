"""Obeys the operation annotation: graceful-restart-bmc restarts the BMC itself."""

from metal.bmc.errors import BMCError
from metal.bmc.protocols import BMC
from metal.controllers.bmc.observe import bounded, failed
from metal.controllers.bmc.scope import Scope
from metal.controllers.sessions import explain
from metal.kube.controller import Requeue, Result

RESTART = "graceful-restart-bmc"


async def operate(scope: Scope) -> Result | None:
    """Restart the BMC once, then remove the annotation. A request that can never work is removed with an Event."""
    if scope.operation != RESTART:
        return None
    try:
        await bounded(scope, _restart)
    except BMCError as exc:
        if not exc.permanent:
            return failed(scope, exc)
        await scope.consume_operation()
        scope.event("Warning", "ResetFailed", f"the BMC was not restarted: {explain(exc)}")
        return None
    await scope.consume_operation()
    scope.report("Reset", True, "UserRequested", f"restarted because the operation annotation says {RESTART}")
    scope.state("Pending", "the BMC to restart")
    return Requeue(scope.deps.settings.reset_wait)


async def _restart(scope: Scope, bmc: BMC) -> None:
    await bmc.reset_manager(scope.obj.spec.bmc_uuid)
