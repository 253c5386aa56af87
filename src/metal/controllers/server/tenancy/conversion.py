"""Writes the record of tenancy of a Server whose status an earlier version wrote, once, and removes its old fields.

The record is written and read back before the old fields are removed: with the CRDs of the earlier version the API
drops the record. A record that was lost is rebuilt (`lost_status`). Readers do not depend on this step, because
`metal.machine.tenancy.of` converts what it reads.
"""

from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import lost_status
from metal.controllers.server.tenancy.crds import await_crds
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy


async def run(scope: Scope) -> Requeue | None:
    """Convert or restore the status; None once it has the record. Raises ApiError."""
    if (lost := await _convert(scope)) is not None:
        return lost
    await lost_status.keep(scope)
    return None


async def _convert(scope: Scope) -> Requeue | None:
    if await lost_status.restore(scope):
        await scope.commit()
        return None if scope.status.tenancy.data else await_crds(scope)
    known = scope.tenancy
    if tenancy.is_outdated(scope.status):
        scope.set(tenancy=known)
        await scope.commit()
        if not scope.status.tenancy.data:
            return await_crds(scope)
        scope.status = tenancy.without_old_fields(scope.status, known)
    elif known is not scope.status.tenancy:
        scope.set(tenancy=known)
    return None
