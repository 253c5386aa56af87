"""Deletion: possible in every state, without touching the machine's power."""

import asyncio

import structlog

from metal.api.names import OPERATION
from metal.bmc.errors import BMCError
from metal.controllers.server.netboot import probe_boot
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import recreated, sanitization
from metal.kube.controller.controller import Done, Requeue

_log = structlog.get_logger(__name__)
_LOGOUT = 5.0
"""Seconds that closing the session may take; a dead BMC must not hold the object up."""


async def run(scope: Scope) -> Done | Requeue | None:
    """Keep the finalizer on a live Server; on a deleted one, remove the discovery boot configuration and let it go."""
    mine = scope.context.kinds.key("server")
    finalizers = list(scope.server.metadata.finalizers)
    if scope.server.metadata.deletion_timestamp is None:
        if mine not in finalizers and not is_ignored(scope):
            await scope.patch({"metadata": {"finalizers": [*finalizers, mine]}})
        return None
    if mine in finalizers:
        await sanitization.abandon(scope)
        await recreated.record_owed(scope)
        await probe_boot.drop(scope)
        await _log_out(scope)
        await scope.patch({"metadata": {"finalizers": [f for f in finalizers if f != mine]}})
    return Done()


IGNORE = ("ignore", "ignore-propagated", "ignore-child-and-self")
"""Operations that leave a server alone; the last two are spellings of the Go operator, v0.7."""


def is_ignored(scope: Scope) -> bool:
    """True while somebody wants this server left alone."""
    return scope.server.metadata.annotations.get(scope.context.kinds.key(OPERATION)) in IGNORE


async def _log_out(scope: Scope) -> None:
    """The session of an inline BMC is this server's alone."""
    if scope.server.spec.bmc_ref is not None:
        return
    try:
        async with asyncio.timeout(_LOGOUT):
            await scope.deps.pool.drop(f"server/{scope.name}")
    except (TimeoutError, BMCError) as exc:
        _log.warning("session of a deleted server was not closed", server=scope.name, error=str(exc))
