"""Walks a Server through its life: Initial, Discovery, Available, Reserved, Cleanup, Maintenance, Error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType

from metal.api.server import State
from metal.bmc.errors import BMCError
from metal.controllers.server import (
    available,
    cleanup,
    connect,
    discovery,
    error,
    finalize,
    initial,
    maintenance,
    operation,
    released,
    reserved,
    trouble,
)
from metal.controllers.server.scope import Deps, Scope
from metal.kube.controller import Done, Requeue, Result
from metal.kube.errors import NotFound
from metal.kube.objects import Key

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
}


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
        if server.metadata.annotations.get(self.deps.context.kinds.key("operation")) == "ignore":
            return Done()
        scope = Scope(self.deps, server)
        try:
            result = await self._walk(scope)
            await scope.commit()
        except NotFound as exc:
            if self._is_gone(exc, scope):
                return Done()
            raise
        return result

    async def _walk(self, scope: Scope) -> Result:
        for phase in (finalize.run, operation.adopt, operation.obey):
            if (result := await phase(scope)) is not None:
                return result
        try:
            await connect.run(scope)
            return await self._step(scope)
        except BMCError as exc:
            return trouble.bmc_failed(scope, exc)

    async def _step(self, scope: Scope) -> Requeue:
        before = scope.status.state
        step: Step = STATES[State(before)].run
        result = await step(scope)
        trouble.bmc_answered(scope)
        scope.set(observed_generation=scope.server.metadata.generation)
        return result

    @staticmethod
    def _is_gone(exc: NotFound, scope: Scope) -> bool:
        return exc.details.get("name") in (None, scope.name)
