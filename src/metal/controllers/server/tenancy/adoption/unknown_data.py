"""Decides about the unknown data of servers that another operator left Available: trusted, or erased in waves.

A wave is at most `adoption.wave` servers that are erased at the same time. Those in Cleanup are counted in the cache,
and before another one joins, in the API: the cache of a new leader may lack what the former one wrote last. Two leaders
never act at the same moment (`metal.kube.controller.election`), and the passes of one process take turns.
"""

from collections.abc import Iterable

from metal.api.server import Server, State
from metal.api.tenancy import Data
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy

TRUST = "Trust"
"""Value of `adoption.unknownData`: servers that another operator left Available are given away as they are."""
_WAVE_POLL = 30.0
"""Seconds until a server that waits for its wave looks again."""


async def settle_data(scope: Scope) -> Requeue | None:
    """Decide about the unknown data of an unclaimed server; None when it is not unknown, or is trusted."""
    known = scope.tenancy
    if known.data != Data.UNKNOWN or known.claim_ref is not None:
        return None
    if scope.settings.unknown_data == TRUST:
        scope.set(tenancy=tenancy.accepted(known, "Accepted", scope.now))
        message = "adoption.unknownData is Trust: what another operator left on the drives was not erased"
        scope.condition(ConditionType.SANITIZED, False, "Trusted", message)
        return None
    async with scope.deps.erasure_wave:
        return await _join_wave(scope)


async def _join_wave(scope: Scope) -> Requeue:
    """Count the wave and write the state that joins it, before another pass counts. Raises Conflict and ApiError."""
    wave = scope.settings.adoption_wave
    full = _size(scope, scope.deps.servers.items()) >= wave
    if full or _size(scope, (await scope.context.client.list(scope.context.kinds.server)).items) >= wave:
        return scope.wait(
            WaitFor.ERASURE_WAVE,
            f"the erasure of {wave} other servers (adoption.wave): what another operator left on the drives is "
            "unknown, so they are erased before a claim gets the server",
            poll=_WAVE_POLL,
        )
    joined = scope.transition(State.CLEANUP, "what another operator left on the drives is unknown; it is erased first")
    await scope.commit()
    return joined


def _size(scope: Scope, servers: Iterable[Server]) -> int:
    return sum(one.metadata.name != scope.name and _is_in_wave(one) for one in servers)


def _is_in_wave(server: Server) -> bool:
    found = tenancy.of(server)
    return server.status.state == State.CLEANUP and found.claim_ref is None and tenancy.holds_data(found)
