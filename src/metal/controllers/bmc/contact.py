"""Contacts a BMC within the deadline of one check."""

import asyncio
from collections.abc import Awaitable, Callable

from metal.bmc.errors import BMCTimeout
from metal.bmc.pool import BMC
from metal.controllers.bmc.scope import Scope


async def contact(scope: Scope, action: Callable[[Scope, BMC], Awaitable[None]]) -> None:
    """Run `action` with the BMC's client, within the deadline of one check. Raises BMCError."""
    limit = scope.deps.settings.contact_timeout
    try:
        async with asyncio.timeout(limit):
            await action(scope, scope.deps.pool.get(scope.require_bmc_endpoint()))
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {scope.address} did not finish within {limit:g} s") from None
