"""Lines ServerMaintenances up for their servers, one at a time, and says how far each is."""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration
from metal.api.kinds import Kinds
from metal.api.maintenance import MaintenanceState, ServerMaintenance
from metal.api.names import IGNORE, OPERATION
from metal.api.server import Server, State
from metal.controllers.maintenance import assignment, boot_config, claim_labels, queue_order
from metal.controllers.maintenance.queue_order import Obstacle
from metal.controllers.maintenance.scope import MaintenanceDeps, MaintenanceScope
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows

BY_MAINTENANCE = "maintenance"
"""Index of Servers by the maintenance that holds them, as namespace/name."""


@dataclass
class ServerMaintenanceReconciler:
    """Level-triggered; a server is taken by one patch that its resourceVersion guards, so never by two maintenances.

    LED, network boot and power are the Server's reconciler's affair: it reads them from the maintenance that holds it.
    """

    deps: MaintenanceDeps

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when somebody else changed an object meanwhile; the next pass sees it."""
        maintenance = self.deps.maintenances.get(key)
        if maintenance is None:
            await self._forget(key)
            return Done()
        if maintenance.metadata.deletion_timestamp is not None:
            await self._end(maintenance)
            return Done()
        kinds = self.deps.context.kinds
        if maintenance.metadata.annotations.get(kinds.key(OPERATION)) == IGNORE:
            return Done()
        scope, mine = MaintenanceScope(self.deps, maintenance), kinds.key("servermaintenance")
        finalizers = list(maintenance.metadata.finalizers)
        if mine not in finalizers:
            await scope.patch({"metadata": {"finalizers": [*finalizers, mine]}})
        result = await self._step(scope)
        await scope.commit()
        return result

    async def _step(self, scope: MaintenanceScope) -> Result:
        name = scope.obj.spec.server_ref.name
        server = self.deps.servers.get(Key(name))
        if server is None:
            scope.pending(Obstacle("ServerNotFound", f"server {name}, which does not exist"))
            return Done()
        await self._mark(scope, server)
        if not assignment.holds(key_of(scope.obj), server):
            return await self._queue(scope, server)
        return await self._held(scope, server)

    async def _mark(self, scope: MaintenanceScope, server: Server) -> None:
        claim, key = self.deps.claim_of(server), self.deps.context.kinds.key
        if claim is None:
            scope.condition("Approved", True, "Unclaimed", "nobody has claimed the server")
            return
        await claim_labels.follow(self.deps, claim, self.deps.of_server(server.metadata.name))
        if queue_order.needs_approval(scope.obj, claim, key):
            scope.condition(
                "Approved", False, "ApprovalMissing", f"the owner of the claim {key_of(claim)} has to agree"
            )
        elif queue_order.is_approved(claim, key):
            scope.condition("Approved", True, "Approved", f"the owner of the claim {key_of(claim)} has agreed")
        else:
            scope.condition("Approved", True, "Enforced", "the policy asks nobody")

    async def _queue(self, scope: MaintenanceScope, server: Server) -> Result:
        rivals = self.deps.of_server(server.metadata.name)
        key = self.deps.context.kinds.key
        found = queue_order.obstacle(scope.obj, server, self.deps.claim_of(server), rivals, key)
        if found is not None:
            scope.pending(found)
            return Done()
        await assignment.take(self.deps, scope.obj, server.metadata.name)
        return Requeue(0)

    async def _held(self, scope: MaintenanceScope, server: Server) -> Result:
        """What the server makes of it; it stays held while it fails, so that somebody looks at it."""
        try:
            config = await boot_config.follow(scope, server)
        except boot_config.NameTaken as exc:
            scope.failed("BootConfigurationNameTaken", str(exc))
            return self._overdue(scope)
        failure = server.status.failure
        if failure is not None and failure.state == State.MAINTENANCE and server.status.state == State.ERROR:
            scope.failed(failure.reason, failure.message)
        elif server.status.state != State.MAINTENANCE:
            awaited = f"server {server.metadata.name} to enter Maintenance; it is in {server.status.state or 'Initial'}"
            scope.pending(Obstacle("Entering", awaited))
            return Done()
        elif config is not None and config.status.state == "Error":
            scope.failed("BootConfigurationError", f"the boot configuration {key_of(config)}: {_why(config)}")
        else:
            _in_maintenance(scope, server)
        return self._overdue(scope)

    def _overdue(self, scope: MaintenanceScope) -> Result:
        """An alert, and no end: nobody here knows whether the machine may be switched on again."""
        if scope.status.started_at is None:
            scope.set(started_at=scope.now)
        started = scope.status.started_at or scope.now
        allowed = self.deps.settings.overdue
        left = allowed - (scope.now - started).total_seconds()
        if left > 0:
            return Requeue(left + 1)
        hours = allowed / 3600
        message = f"it has lasted for more than {hours:g} h; delete it when its work is done"
        if scope.condition("Overdue", True, "Overdue", message):
            scope.event("Warning", "Overdue", message)
        return Done()

    async def _end(self, maintenance: ServerMaintenance) -> None:
        mine = self.deps.context.kinds.key("servermaintenance")
        if mine not in maintenance.metadata.finalizers:
            return
        await assignment.release(self.deps, key_of(maintenance), maintenance.spec.server_ref.name)
        await boot_config.drop(self.deps, maintenance)
        kinds = self.deps.context.kinds
        await remove_finalizer(self.deps.context.client, kinds.maintenance, maintenance, mine)

    async def _forget(self, key: Key) -> None:
        """A maintenance that went without its finalizer must not hold its server for ever."""
        for server in self.deps.servers.by_index(BY_MAINTENANCE, str(key)):
            try:
                await self.deps.context.client.get(self.deps.context.kinds.maintenance, key.name, key.namespace)
            except NotFound:
                await assignment.release(self.deps, key, server.metadata.name)


def _in_maintenance(scope: MaintenanceScope, server: Server) -> None:
    awaited = server.status.wait
    hindered = any(
        c.type in (ConditionType.BMC_REACHABLE, ConditionType.TAKEN_OVER) and c.status == "False"
        for c in server.status.conditions
    )
    busy = hindered or (awaited is not None and awaited.for_ != WaitFor.MAINTENANCE)
    waiting_for = server.status.waiting_for if busy else ""
    scope.state(MaintenanceState.IN_MAINTENANCE, waiting_for)
    scope.say(True, "InMaintenance", f"server {server.metadata.name} is in Maintenance for it")


def _why(config: ServerBootConfiguration) -> str:
    found = [c.message for c in config.status.conditions if c.status == "False" and c.message]
    return "; ".join(found) or "state Error"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API, but for what its modules declare."""
    seen = (kinds.maintenance, kinds.server, kinds.claim, kinds.boot_config)
    return (
        *follows(*seen, why="maintenances line up for their servers"),
        Permission(
            kinds.maintenance, ("get", "patch"), "keeps its finalizer, and makes sure that a maintenance is gone"
        ),
        Permission(kinds.maintenance, ("patch",), "says how far the maintenance is", "status"),
    )
