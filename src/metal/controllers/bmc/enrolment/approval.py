"""Waits for the approval of a BMC that was contacted to read its serial number (`shared.access.enrolment_policy`)."""

from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.access.enrolment_policy import APPROVED, PENDING_APPROVAL, SERIAL_NUMBER, approval_text
from metal.kube.controller.controller import Requeue, Result


async def confirm(scope: Scope) -> Result | None:
    """End the pass before Servers are created, unless the serial number is expected or the BMC was approved."""
    policy = scope.deps.defaults.policy
    if policy.value(scope.obj.metadata.annotations) != SERIAL_NUMBER:
        return None
    serials = sorted({scope.status.serial_number, *(system.serial_number for system in scope.systems)} - {""})
    if policy.expects(serials):
        await scope.patch({"metadata": {"annotations": {policy.annotation: APPROVED}}})
        scope.event("Normal", "Approved", f"the serial numbers {', '.join(serials)} are in enrolment.expected")
        return None
    before, awaited = scope.obj.status, approval_text(scope.name)
    scope.state(PENDING_APPROVAL, awaited)
    if before.state == PENDING_APPROVAL and before.since is not None:
        scope.set(since=before.since)
    shown = ", ".join(serials) or "none"
    text = f"waiting for {awaited}; its serial numbers ({shown}) are not in enrolment.expected of the configuration"
    scope.report("Enrolled", False, PENDING_APPROVAL, text)
    return Requeue(scope.context.jitter(scope.deps.settings.interval))
