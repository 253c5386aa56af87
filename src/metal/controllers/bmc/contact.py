"""Talks with a BMC within one deadline."""

import asyncio
from collections.abc import Awaitable, Callable

from metal.bmc.errors import BMCTimeout
from metal.bmc.protocols import BMC
from metal.controllers.bmc.scope import Scope


async def bounded(scope: Scope, talk: Callable[[Scope, BMC], Awaitable[None]]) -> None:
    """Talk to the BMC within the deadline of one check. Raises BMCError."""
    limit = scope.deps.settings.contact_timeout
    try:
        async with asyncio.timeout(limit):
            await talk(scope, scope.deps.pool.get(scope.connected()))
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {scope.address} did not finish within {limit:g} s") from None
