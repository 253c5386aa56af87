"""Ends the event subscription and the session of a BMC that is being deleted; an unreachable BMC delays nothing."""

from metal.api.names import IGNORE
from metal.controllers.bmc.event_subscription import delete_subscription
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.access.sessions import log_out
from metal.kube.controller.controller import Done, Result
from metal.kube.controller.finalizers import add_finalizer, remove_finalizer
from metal.kube.meta.objects import key_of


async def finalize(scope: Scope) -> Result | None:
    """Add the finalizer; when the BMC is being deleted, unsubscribe, log out and remove the finalizer."""
    client, finalizer = scope.context.client, scope.context.kinds.key("bmc")
    if scope.obj.metadata.deletion_timestamp is None:
        if scope.operation != IGNORE:
            scope.adopt(await add_finalizer(client, scope.kind, scope.obj, finalizer))
        return None
    await delete_subscription(scope)
    await log_out(scope.deps.pool, scope.name, scope.deps.settings.logout_timeout)
    scope.deps.memos.pop(key_of(scope.obj), None)
    await remove_finalizer(client, scope.kind, scope.obj, finalizer)
    return Done()
