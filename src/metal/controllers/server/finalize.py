"""Deletion: possible in every state, without touching the machine's power."""

from metal.api import names
from metal.controllers.server.netboot import probe_boot
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import sanitization
from metal.controllers.server.tenancy.adoption import lost_status, recreated
from metal.controllers.shared.access.sessions import log_out
from metal.kube.controller.controller import Done, Requeue
from metal.machine.identity import identity_of

_LOGOUT = 5.0
"""Seconds that closing the session may take; a BMC that does not answer must not delay the deletion."""


async def run(scope: Scope) -> Done | Requeue | None:
    """Keep the finalizer on a live Server; on a deleted one, clean up and remove the finalizer."""
    finalizer = scope.context.kinds.key("server")
    finalizers = list(scope.server.metadata.finalizers)
    if scope.server.metadata.deletion_timestamp is None:
        if finalizer not in finalizers and not is_ignored(scope):
            await scope.patch({"metadata": {"finalizers": [*finalizers, finalizer], **lost_status.mark(scope)}})
        return None
    if finalizer in finalizers:
        await sanitization.abandon(scope)
        await recreated.record_outstanding(scope)
        await probe_boot.drop(scope)
        key = identity_of(scope.server, scope.context.kinds).key
        await scope.deps.leases.release(key, scope.name)
        if scope.server.spec.bmc_ref is None:  # only this server uses the session of an inline BMC
            await log_out(scope.deps.pool, f"server/{scope.name}", _LOGOUT)
        await scope.patch({"metadata": {"finalizers": [f for f in finalizers if f != finalizer]}})
    return Done()


IGNORE = names.IGNORING
"""Operations that make the operator ignore a server."""


def is_ignored(scope: Scope) -> bool:
    """True while the annotation makes the operator ignore the server."""
    return scope.server.metadata.annotations.get(scope.context.kinds.key(names.OPERATION)) in IGNORE
