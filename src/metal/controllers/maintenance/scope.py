"""One pass over one ServerMaintenance."""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.maintenance import MaintenanceState, ServerMaintenance, ServerMaintenanceStatus
from metal.api.server import Server
from metal.controllers.maintenance.queue_order import Obstacle
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.shared.indexes import BY_SERVER
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key


@dataclass
class MaintenanceDeps:
    """What the reconciler works with; made once."""

    context: Context
    settings: MaintenanceSettings
    maintenances: Informer[ServerMaintenance]
    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]

    def claim_of(self, server: Server) -> ServerClaim | None:
        """The claim that holds a server, unless it is going."""
        ref = server.spec.server_claim_ref
        claim = self.claims.get(Key(ref.name, ref.namespace)) if ref is not None else None
        return claim if claim is not None and claim.metadata.deletion_timestamp is None else None

    def of_server(self, name: str) -> list[ServerMaintenance]:
        """The maintenances of a server that are not being deleted."""
        found = self.maintenances.by_index(BY_SERVER, name)
        return [one for one in found if one.metadata.deletion_timestamp is None]


class MaintenanceScope(StatusScope[ServerMaintenance]):
    """Collects what a pass says of a maintenance, and writes it once."""

    status: ServerMaintenanceStatus

    def __init__(self, deps: MaintenanceDeps, maintenance: ServerMaintenance) -> None:
        kind = deps.context.kinds.maintenance
        super().__init__(deps.context, kind, deps.maintenances, maintenance, ServerMaintenanceStatus())
        self.deps = deps

    def pending(self, obstacle: Obstacle) -> None:
        """Pending, and for what."""
        self.state(MaintenanceState.PENDING, obstacle.awaited)
        self.say(False, obstacle.reason, f"waits for {obstacle.awaited}")

    def failed(self, reason: str, message: str) -> None:
        """Failed: the server stays in Maintenance, so that somebody looks at it."""
        self.state(MaintenanceState.FAILED, message)
        self.say(False, reason, message, warning=True)

    def say(self, status: bool, reason: str, message: str, *, warning: bool = False) -> None:
        """Set the condition InMaintenance; an Event tells of each change of its reason."""
        old = conditions.find(self.status.conditions, "InMaintenance")
        self.condition("InMaintenance", status, reason, message)
        if old is None or old.reason != reason:
            self.event("Warning" if warning else "Normal", reason, message)
