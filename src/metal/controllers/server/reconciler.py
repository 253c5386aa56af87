"""Walks a Server through its life: Initial, Discovery, Available, Reserved, Cleanup, Maintenance, Parked, Error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType

from metal.api.kinds import Kinds
from metal.api.server import State
from metal.bmc.errors import BMCError, BMCNotFound
from metal.controllers.server import annotations, finalize, operations
from metal.controllers.server.bmc import bmc_errors, connect, host_key
from metal.controllers.server.identity import WrongSystem
from metal.controllers.server.scope import Deps, Scope
from metal.controllers.server.states import (
    available,
    cleanup,
    discovery,
    error,
    initial,
    maintenance,
    parked,
    parking,
    released,
    reserved,
)
from metal.controllers.server.tenancy import adoption
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows

Step = Callable[[Scope], Awaitable[Requeue]]

STATES: dict[State, ModuleType] = {
    State.INITIAL: initial,
    State.DISCOVERY: discovery,
    State.AVAILABLE: available,
    State.RESERVED: reserved,
    State.CLEANUP: cleanup,
    State.RELEASED: released,
    State.MAINTENANCE: maintenance,
    State.ERROR: error,
    State.PARKED: parked,
}

_BEFORE_THE_BMC = (
    annotations.adopt, adoption.adopt, annotations.obey, host_key.judge, operations.expire, parked.stand_down,
    maintenance.enter, connect.pause,
)  # fmt: skip


@dataclass
class ServerReconciler:
    """Level-triggered: one step for one Server, one status patch on the way out (more only where order matters)."""

    deps: Deps

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when somebody else changed the Server meanwhile; the next pass sees it."""
        server = self.deps.servers.get(key)
        if server is None:
            self.deps.memos.pop(key, None)
            return Done()
        scope = Scope(self.deps, server)
        try:
            result = await self._walk(scope)
            await scope.commit()
        except NotFound:
            if self.deps.servers.get(key) is None:  # deleted while we were at it
                return Done()
            raise
        return result

    async def _walk(self, scope: Scope) -> Result:
        result: Result | None = await finalize.run(scope)
        if result is not None or finalize.is_ignored(scope):
            return result or Done()
        for phase in _BEFORE_THE_BMC:
            if (result := await phase(scope)) is not None:
                return result
        try:
            await connect.run(scope)
            return await self._step(scope)
        except (BMCNotFound, WrongSystem) as exc:
            return await self._search(scope, exc)
        except BMCError as exc:
            return bmc_errors.bmc_failed(scope, exc)

    async def _step(self, scope: Scope) -> Requeue:
        result = None
        for phase in (operations.perform, adoption.hold, parking.park):
            if (result := await phase(scope)) is not None:
                break
        if result is None:
            step: Step = STATES[State(scope.status.state)].run
            result = await step(scope)
        bmc_errors.bmc_answered(scope)
        return result

    async def _search(self, scope: Scope, exc: BMCError) -> Requeue:
        """The system is not where it was; perhaps its BMC has numbered its systems anew."""
        before = scope.uri
        try:
            if before:
                await connect.find_system(scope)
        except BMCError as error:
            return bmc_errors.bmc_failed(scope, exc if isinstance(error, BMCNotFound) else error)
        if scope.uri == before:
            return bmc_errors.bmc_failed(scope, exc)
        scope.record_event("SystemMoved", f"the BMC shows this system at {scope.uri} now, formerly {before}")
        return Requeue(0)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API, but for what its modules declare."""
    seen = (
        kinds.server, kinds.claim, kinds.boot_config, kinds.maintenance, kinds.bmc, kinds.bmc_secret, kinds.endpoint,
    )  # fmt: skip
    return (
        *follows(*seen, why="a Server follows its BMC, its claim, its boot configuration and its maintenance"),
        Permission(
            kinds.server, ("patch",), "writes finalizer, claim and boot references, and removes obeyed operations"
        ),
        Permission(kinds.server, ("patch",), "says what state the server is in and what is awaited", "status"),
    )
