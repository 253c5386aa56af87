"""Ends the subscription and the session of a BMC that is being deleted. A dead BMC never holds its object up."""

from metal.controllers.bmc.event_subscription import withdraw
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.sessions import log_out
from metal.kube.controller.controller import Done, Result
from metal.kube.controller.finalizers import add_finalizer, remove_finalizer
from metal.kube.meta.objects import key_of


async def finalize(scope: Scope) -> Result | None:
    """Add the finalizer while the BMC lives; unsubscribe, log out and remove it when the BMC goes."""
    client, finalizer = scope.context.client, scope.context.kinds.key("bmc")
    if scope.obj.metadata.deletion_timestamp is None:
        if scope.operation != "ignore":
            scope.adopt(await add_finalizer(client, scope.kind, scope.obj, finalizer))
        return None
    await withdraw(scope)
    await log_out(scope.deps.pool, scope.name, scope.deps.settings.logout_timeout)
    scope.deps.memos.pop(key_of(scope.obj), None)
    await remove_finalizer(client, scope.kind, scope.obj, finalizer)
    return Done()
