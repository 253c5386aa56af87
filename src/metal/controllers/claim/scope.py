"""One pass over one ServerClaim."""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration, ServerClaim, ServerClaimStatus
from metal.api.server import Server
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.meta import conditions


@dataclass
class ClaimDeps:
    """What the reconciler works with; made once."""

    context: Context
    settings: ClaimSettings
    claims: Informer[ServerClaim]
    servers: Informer[Server]
    configs: Informer[ServerBootConfiguration]


class ClaimScope(StatusScope[ServerClaim]):
    """Collects what a pass says of a claim, and writes it once."""

    status: ServerClaimStatus

    def __init__(self, deps: ClaimDeps, claim: ServerClaim) -> None:
        super().__init__(deps.context, deps.context.kinds.claim, deps.claims, claim, ServerClaimStatus())
        self.deps = deps

    @property
    def claim(self) -> ServerClaim:
        """The claim as it was last read or written."""
        return self.obj

    def phase(self, phase: str, waiting_for: str) -> None:
        """Bound or Unbound, and what is awaited."""
        since = self.status.since if self.status.phase == phase else self.now
        self.set(phase=phase, since=since, waiting_for=waiting_for)

    def say(self, type: str, status: bool, reason: str, message: str) -> None:
        """Set a condition; an Event tells of each change of its reason."""
        old = conditions.find(self.status.conditions, type)
        self.condition(type, status, reason, message)
        if old is None or old.reason != reason:
            self.event("Warning" if reason == "ServerLost" else "Normal", reason, message)
