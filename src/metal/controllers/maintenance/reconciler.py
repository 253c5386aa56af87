"""One pass over one ServerMaintenance: waits for its server, holds it, and reports the progress.

All maintenances of a server form a queue (`queue_order`). The next one is assigned the server by
spec.serverMaintenanceRef; the Server controller then suspends the claim's power, applies LED, network boot and power as
the maintenance asks, and enters the state Maintenance. A claimed server needs the approval of the claim's owner, a
label, unless the policy is Enforced and `settings.enforced_namespaces` allows it. The maintenance holds the server
until it is deleted: its finalizer releases the server to the next in the queue. It also holds a server that failed,
until an administrator has looked at it. After `settings.overdue` the condition Overdue is set; nothing ends a
maintenance automatically, since only its creator knows whether the machine may be powered on again.
"""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration
from metal.api.kinds import Kinds
from metal.api.maintenance import MaintenanceState, ServerMaintenance
from metal.api.names import IGNORE, OPERATION
from metal.api.server import Server, State
from metal.controllers.maintenance import assignment, boot_config, claim_labels, queue_order
from metal.controllers.maintenance.queue_order import Obstacle
from metal.controllers.maintenance.scope import BY_MAINTENANCE, MaintenanceDeps, MaintenanceScope
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.shared.reconciled import refusals, reporting
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows


@dataclass
class ServerMaintenanceReconciler:
    """Assigns servers to maintenances. Level-triggered; two maintenances never hold the same server."""

    deps: MaintenanceDeps

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when an object changed in between; the next pass reads it again."""
        maintenance = self.deps.maintenances.get(key)
        if maintenance is None:
            await self._release_all(key)
            return Done()
        scope = MaintenanceScope(self.deps, maintenance)
        if maintenance.metadata.deletion_timestamp is not None:
            async with refusals(scope):
                await self._finalize(maintenance)
            return Done()
        kinds = self.deps.context.kinds
        if maintenance.metadata.annotations.get(kinds.key(OPERATION)) == IGNORE:
            return Done()
        finalizer = kinds.key("servermaintenance")
        finalizers = list(maintenance.metadata.finalizers)
        async with reporting(scope):
            if finalizer not in finalizers:
                await scope.patch({"metadata": {"finalizers": [*finalizers, finalizer]}})
            return await self._step(scope)

    async def _step(self, scope: MaintenanceScope) -> Result:
        name = scope.obj.spec.server_ref.name
        server = self.deps.servers.get(Key(name))
        if server is None:
            scope.pending(Obstacle("ServerNotFound", f"server {name} to be created"))
            return Done()
        await self._report_approval(scope, server)
        if not assignment.is_assigned(key_of(scope.obj), server):
            return await self._wait_in_queue(scope, server)
        return await self._report_assigned(scope, server)

    async def _report_approval(self, scope: MaintenanceScope, server: Server) -> None:
        claim, key = self.deps.claim_of(server), self.deps.context.kinds.key
        if claim is None:
            scope.condition("Approved", True, "Unclaimed", "no claim holds the server")
            return
        await claim_labels.update(self.deps, claim, self.deps.of_server(server.metadata.name))
        if found := queue_order.missing_approval(scope.obj, claim, self.deps.rules):
            scope.condition("Approved", False, found.reason, f"waiting for {found.awaited}")
        elif queue_order.is_approved(claim, key):
            scope.condition("Approved", True, "Approved", f"the owner of claim {key_of(claim)} has approved")
        else:
            scope.condition("Approved", True, "Enforced", "policy Enforced needs no approval")

    async def _wait_in_queue(self, scope: MaintenanceScope, server: Server) -> Result:
        rivals = self.deps.of_server(server.metadata.name)
        found = queue_order.obstacle(scope.obj, server, self.deps.claim_of(server), rivals, self.deps.rules)
        if found is not None:
            scope.pending(found)
            return Done()
        await assignment.assign(self.deps, scope.obj, server.metadata.name)
        return Requeue(0)

    async def _report_assigned(self, scope: MaintenanceScope, server: Server) -> Result:
        """Report the progress of an assigned server; a server that fails stays assigned."""
        try:
            config = await boot_config.reconcile(scope, server)
        except boot_config.NameTaken as exc:
            scope.failed("BootConfigurationNameTaken", str(exc))
            return self._check_overdue(scope)
        failure = server.status.failure
        if failure is not None and failure.state == State.MAINTENANCE and server.status.state == State.ERROR:
            scope.failed(failure.reason, failure.message)
        elif server.status.state != State.MAINTENANCE:
            awaited = f"server {server.metadata.name} to enter Maintenance; it is in {server.status.state or 'Initial'}"
            scope.pending(Obstacle("Entering", awaited))
            return Done()
        elif config is not None and config.status.state == "Error":
            scope.failed("BootConfigurationError", f"boot configuration {key_of(config)}: {_failure_of(config)}")
        else:
            _in_maintenance(scope, server)
        return self._check_overdue(scope)

    def _check_overdue(self, scope: MaintenanceScope) -> Result:
        """Report a maintenance that takes too long; it is not ended."""
        if scope.status.started_at is None:
            scope.set(started_at=scope.now)
        started = scope.status.started_at or scope.now
        allowed = self.deps.settings.overdue
        left = allowed - (scope.now - started).total_seconds()
        if left > 0:
            return Requeue(left + 1)
        hours = allowed / 3600
        message = f"in progress for more than {hours:g} h: delete it when its work is done"
        if scope.condition("Overdue", True, "Overdue", message):
            scope.event("Warning", "Overdue", message)
        return Done()

    async def _finalize(self, maintenance: ServerMaintenance) -> None:
        finalizer = self.deps.context.kinds.key("servermaintenance")
        if finalizer not in maintenance.metadata.finalizers:
            return
        await assignment.release(self.deps, key_of(maintenance), maintenance.spec.server_ref.name)
        await boot_config.drop(self.deps, maintenance)
        kinds = self.deps.context.kinds
        await remove_finalizer(self.deps.context.client, kinds.maintenance, maintenance, finalizer)

    async def _release_all(self, key: Key) -> None:
        """Release the servers of a maintenance that was deleted without its finalizer."""
        for server in self.deps.servers.by_index(BY_MAINTENANCE, str(key)):
            try:
                await self.deps.context.client.get(self.deps.context.kinds.maintenance, key.name, key.namespace)
            except NotFound:
                await assignment.release(self.deps, key, server.metadata.name)


def _in_maintenance(scope: MaintenanceScope, server: Server) -> None:
    awaited = server.status.wait
    blocked = any(
        c.type in (ConditionType.BMC_REACHABLE, ConditionType.TAKEN_OVER) and c.status == "False"
        for c in server.status.conditions
    )
    busy = blocked or (awaited is not None and awaited.for_ != WaitFor.MAINTENANCE)
    waiting_for = server.status.waiting_for if busy else ""
    scope.state(MaintenanceState.IN_MAINTENANCE, waiting_for)
    scope.report_progress(True, "InMaintenance", f"server {server.metadata.name} is in Maintenance")


def _failure_of(config: ServerBootConfiguration) -> str:
    found = [c.message for c in config.status.conditions if c.status == "False" and c.message]
    return "; ".join(found) or "state Error"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler, except those that its modules declare."""
    seen = (kinds.maintenance, kinds.server, kinds.claim, kinds.boot_config)
    return (
        *follows(*seen, why="assigns servers to maintenances"),
        Permission(
            kinds.maintenance, ("get", "patch"), "keeps its finalizer, and checks that a maintenance no longer exists"
        ),
        Permission(kinds.maintenance, ("patch",), "reports the progress of the maintenance", "status"),
    )
