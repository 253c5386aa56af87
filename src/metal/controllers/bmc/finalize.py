"""Closes the session of a BMC that is being deleted. A dead BMC never holds its object up."""

import asyncio

import structlog

from metal.bmc.errors import BMCError
from metal.controllers.bmc.scope import Scope
from metal.kube.controller import Done, Result
from metal.kube.finalizers import add_finalizer, remove_finalizer
from metal.kube.objects import key_of

_log = structlog.get_logger(__name__)


async def finalize(scope: Scope) -> Result | None:
    """Add the finalizer while the BMC lives; log out and remove it when the BMC goes."""
    client, finalizer = scope.context.client, scope.context.kinds.key("bmc")
    if scope.obj.metadata.deletion_timestamp is None:
        if scope.operation != "ignore":
            scope.adopt(await add_finalizer(client, scope.kind, scope.obj, finalizer))
        return None
    await _log_out(scope)
    scope.deps.memos.pop(key_of(scope.obj), None)
    await remove_finalizer(client, scope.kind, scope.obj, finalizer)
    return Done()


async def _log_out(scope: Scope) -> None:
    try:
        async with asyncio.timeout(scope.deps.settings.logout_timeout):
            await scope.deps.pool.drop(scope.name)
    except (TimeoutError, BMCError) as exc:
        _log.warning("session of a deleted BMC was not closed; it expires by itself", bmc=scope.name, error=str(exc))
