"""Deletion: possible in every state, without touching the machine's power."""

from metal.controllers.server.scope import Scope
from metal.kube.controller import Done, Requeue
from metal.kube.errors import NotFound


async def run(scope: Scope) -> Done | Requeue | None:
    """Keep the finalizer on a live Server; on a deleted one, remove the discovery boot configuration and let it go."""
    mine = scope.context.kinds.key("server")
    finalizers = list(scope.server.metadata.finalizers)
    if scope.server.metadata.deletion_timestamp is None:
        if mine not in finalizers:
            await scope.patch({"metadata": {"finalizers": [*finalizers, mine]}})
        return None
    if mine in finalizers:
        await _drop_discovery(scope)
        await scope.patch({"metadata": {"finalizers": [f for f in finalizers if f != mine]}})
    return Done()


async def _drop_discovery(scope: Scope) -> None:
    config = scope.boot_config()
    if config is None or config.metadata.annotations.get(scope.context.kinds.key("type")) != "Internal":
        return
    try:
        await scope.context.client.delete(
            scope.context.kinds.boot_config, config.metadata.name, config.metadata.namespace, uid=config.metadata.uid
        )
    except NotFound:
        return
