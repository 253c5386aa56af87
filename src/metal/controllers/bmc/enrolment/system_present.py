"""Reports on a Server whether its BMC still lists the system."""

import msgspec

from metal.api.kinds import Kinds
from metal.api.meta import Condition
from metal.api.server import Server
from metal.controllers.bmc.scope import Scope
from metal.kube.meta.conditions import find, set_condition
from metal.kube.meta.permissions import Permission

CONDITION = "SystemPresent"


async def report_present(scope: Scope, server: Server, present: bool, reason: str, message: str) -> None:
    """Set the condition and record an Event when it changes; a Server whose system never vanished has no condition.

    Only this condition is changed, guarded by resourceVersion, since the Server controller writes the others.
    Raises Conflict when the Server changed in between.
    """
    old = find(server.status.conditions, CONDITION)
    status = "True" if present else "False"
    if (old is None and present) or (old is not None and old.status == status):
        return
    new = Condition(type=CONDITION, status=status, reason=reason, message=message)
    conditions = set_condition(server.status.conditions, new, scope.now)
    body = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "status": {"conditions": msgspec.to_builtins(conditions)},
    }
    kind = scope.context.kinds.server
    scope.deps.servers.observe(await scope.context.client.patch_status(kind, server.metadata.name, body))
    scope.context.recorder.event(server, kind, "Normal" if present else "Warning", reason, message)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.server, ("patch",), "reports whether the BMC still lists the system", "status"),)
