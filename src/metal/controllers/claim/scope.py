"""The state of one pass over one ServerClaim, and the dependencies that all passes share."""

from dataclasses import dataclass, field

from metal.api.claim import ServerBootConfiguration, ServerClaim, ServerClaimStatus
from metal.api.server import Server
from metal.controllers.claim.reasons import ClaimReason
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.claim.waiting import WaitingClaims
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.machine.system_lease import SystemLeases


@dataclass
class ClaimDeps:
    """What all passes share; created once."""

    context: Context
    settings: ClaimSettings
    claims: Informer[ServerClaim]
    servers: Informer[Server]
    configs: Informer[ServerBootConfiguration]
    waiting: WaitingClaims
    leases: SystemLeases = field(init=False)

    def __post_init__(self) -> None:
        context = self.context
        self.leases = SystemLeases(context.client, context.kinds, self.settings.namespace, context.clock)


class ClaimScope(StatusScope[ServerClaim]):
    """Collects the status of a claim during one pass, and writes it once."""

    status: ServerClaimStatus

    def __init__(self, deps: ClaimDeps, claim: ServerClaim) -> None:
        super().__init__(deps.context, deps.context.kinds.claim, deps.claims, claim, ServerClaimStatus())
        self.deps = deps

    @property
    def claim(self) -> ServerClaim:
        """The claim as it was last read or written."""
        return self.obj

    def phase(self, phase: str, waiting_for: str) -> None:
        """Set the phase, Bound or Unbound, and what is awaited."""
        since = self.status.since if self.status.phase == phase else self.now
        self.set(phase=phase, since=since, waiting_for=waiting_for)

    def report(self, type: str, status: bool, reason: str, message: str) -> None:
        """Set a condition, and record an Event when it changed: a Warning only for a lost server, the rest is usual."""
        if self.condition(type, status, reason, message):
            self.event("Warning" if reason == ClaimReason.SERVER_LOST else "Normal", reason, message)
