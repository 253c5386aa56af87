"""Moves a Server through its states: Initial, Discovery, Available, Reserved, Cleanup,
Released, Maintenance, Parked, Error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType

from metal.api.kinds import Kinds
from metal.api.server import State
from metal.bmc.errors import BMCError, BMCNotFound
from metal.controllers.server import duplicates, finalize, operations
from metal.controllers.server.bmc import bmc_errors, connect, host_key
from metal.controllers.server.scope import Deps, Scope
from metal.controllers.server.states import (
    available,
    cleanup,
    discovery,
    error,
    initial,
    maintenance,
    parked,
    released,
    reserved,
)
from metal.controllers.server.system_check import WrongSystem
from metal.controllers.server.tenancy.adoption import adoption, outdated_status, takeover
from metal.controllers.shared.reconciled import reporting
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows
from metal.machine.lease_tenancy import RecordOutdated
from metal.machine.system_lease import NotInCharge, Unidentified

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


async def _remove_power(scope: Scope) -> None:
    """Remove the deprecated spec.power, unless a maintenance holds the server, which may have set it."""
    if scope.server.spec.power and scope.server.spec.server_maintenance_ref is None:
        await scope.patch({"spec": {"power": None}})


_BEFORE_THE_BMC: tuple[Callable[[Scope], Awaitable[Requeue | None]], ...] = (
    outdated_status.run,
    adoption.read_status,
    duplicates.hold,
    _remove_power,
    adoption.enter,
    operations.run,
    host_key.report,
    operations.expire_reset,
    parked.hold,
    maintenance.enter,
    connect.pause,
)
"""Steps that need no BMC, so they work while the BMC does not answer. The first that returns a result ends the pass.

The order matters:
- `outdated_status.run` is first: the next step copies the record, and must not copy one that a backup brought back.
- `adoption.read_status` comes next: it writes the record of tenancy, which the next steps read and change.
- `duplicates.hold` comes after these two, because the record decides which of several Servers acts on a machine, and
  before every step that changes the machine.
- `adoption.enter` is the first of the others that reads the state, because every later step relies on there being one.
  It comes before operations, so that operation=retry finds the condition that it resolves.
- `operations.run` comes before `parked.hold` and `connect.pause`, so that a parked server can be unparked, and a server
  whose BMC restarts can be retried, parked or ignored.
- `operations.expire_reset` comes before the steps that end the pass early: a reset that could not be sent in time is
  dropped also while the server is parked or its BMC restarts.
- `parked.hold` comes before `maintenance.enter`: a maintenance does not take a parked server.
- `connect.pause` is last: it ends the pass, and all later steps send requests to the BMC.
"""

_WITH_THE_BMC = (operations.perform_reset, takeover.hold, parked.park)
"""Steps that come before the step of the state and need the BMC. The first that returns a result ends the pass.

A reset that was accepted is sent before any other step can switch the machine. An undecided server of another operator
is held before any step, including parking, can switch it off.
"""


@dataclass
class ServerReconciler:
    """Level-triggered: one step for one Server, one status patch at the end (more only where the order matters)."""

    deps: Deps

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when another client changed the Server meanwhile; the next pass sees it."""
        server = self.deps.servers.get(key)
        if server is None:
            self.deps.memos.pop(key, None)
            return Done()
        scope = Scope(self.deps, server)
        try:
            async with reporting(scope):
                result = await self._decide(scope)
                scope.generation_observed = not scope.is_blocked
        except NotFound:
            if self.deps.servers.get(key) is None:  # deleted during this pass
                return Done()
            raise
        return result

    async def _decide(self, scope: Scope) -> Result:
        try:
            return await self._walk(scope)
        except NotInCharge as exc:
            return duplicates.not_in_charge(scope, exc)
        except Unidentified:
            return duplicates.unidentified(scope)
        except RecordOutdated as exc:
            return await outdated_status.correct(scope, exc.kept)

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
            return await connect.find_moved_system(scope, exc)
        except BMCError as exc:
            return bmc_errors.bmc_failed(scope, exc)

    async def _step(self, scope: Scope) -> Requeue:
        result = None
        for phase in _WITH_THE_BMC:
            if (result := await phase(scope)) is not None:
                break
        if result is None:
            step: Step = STATES[State(scope.status.state)].run
            result = await step(scope)
        if scope.status.state == State.AVAILABLE and scope.server.status.state != State.AVAILABLE:
            await scope.require_in_charge()
        bmc_errors.bmc_answered(scope)
        return result


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler, beside those that its modules declare."""
    seen = (
        kinds.server, kinds.claim, kinds.boot_config, kinds.maintenance, kinds.bmc, kinds.bmc_secret, kinds.endpoint,
    )  # fmt: skip
    return (
        *follows(*seen, why="a Server follows its BMC, its claim, its boot configuration and its maintenance"),
        Permission(
            kinds.server, ("patch",), "writes finalizer, claim and boot references, and removes executed operations"
        ),
        Permission(kinds.server, ("patch",), "reports the state of the server and what is awaited", "status"),
    )
