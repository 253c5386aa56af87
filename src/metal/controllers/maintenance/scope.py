"""The state of one pass over one ServerMaintenance, and the dependencies that all passes share."""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.maintenance import MaintenanceState, ServerMaintenance, ServerMaintenanceStatus
from metal.api.server import Server
from metal.controllers.maintenance.queue_order import ApprovalRules, Obstacle
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.shared.clock_jump import Moments
from metal.controllers.shared.indexes import BY_SERVER
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.meta.objects import Key

BY_MAINTENANCE = "maintenance"
"""Index of Servers by the maintenance that holds them, as namespace/name."""


@dataclass
class MaintenanceDeps:
    """What all passes share; created once."""

    context: Context
    settings: MaintenanceSettings
    maintenances: Informer[ServerMaintenance]
    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]

    @property
    def rules(self) -> ApprovalRules:
        """Which maintenances need no approval."""
        return ApprovalRules(self.context.kinds.key, self.settings.enforced_namespaces)

    def claim_of(self, server: Server) -> ServerClaim | None:
        """The claim that holds a server, unless it is being deleted."""
        ref = server.spec.server_claim_ref
        claim = self.claims.get(Key(ref.name, ref.namespace)) if ref is not None else None
        return claim if claim is not None and claim.metadata.deletion_timestamp is None else None

    def of_server(self, name: str) -> list[ServerMaintenance]:
        """The maintenances of a server that are not being deleted."""
        found = self.maintenances.by_index(BY_SERVER, name)
        return [one for one in found if one.metadata.deletion_timestamp is None]


class MaintenanceScope(StatusScope[ServerMaintenance]):
    """Collects the status of a maintenance during one pass, and writes it once."""

    status: ServerMaintenanceStatus
    moments = Moments(fields=("since", "started_at"))

    def __init__(self, deps: MaintenanceDeps, maintenance: ServerMaintenance) -> None:
        kind = deps.context.kinds.maintenance
        super().__init__(deps.context, kind, deps.maintenances, maintenance, ServerMaintenanceStatus())
        self.deps = deps

    def pending(self, obstacle: Obstacle) -> None:
        """Set the state Pending with what is awaited."""
        self.state(MaintenanceState.PENDING, obstacle.awaited)
        self.report_progress(False, obstacle.reason, f"waiting for {obstacle.awaited}")

    def failed(self, reason: str, message: str) -> None:
        """Set the state Failed; the server stays in Maintenance until an administrator acts."""
        self.state(MaintenanceState.FAILED, message)
        self.report_progress(False, reason, message, warning=True)

    def report_progress(self, status: bool, reason: str, message: str, *, warning: bool = False) -> None:
        """Set the condition InMaintenance, and record an Event when it changed."""
        if self.condition("InMaintenance", status, reason, message):
            self.event("Warning" if warning else "Normal", reason, message)
