"""One pass over one ServerClaim."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from metal.api.claim import ServerBootConfiguration, ServerClaim, ServerClaimStatus
from metal.api.kinds import Kinds
from metal.api.meta import Condition
from metal.api.server import Server
from metal.controllers.settings import ClaimSettings
from metal.kube import conditions
from metal.kube.client import Client
from metal.kube.clock import Clock
from metal.kube.events import Recorder
from metal.kube.informer import Informer
from metal.kube.mergepatch import diff


@dataclass
class ClaimDeps:
    """What the reconciler works with; made once."""

    client: Client
    kinds: Kinds
    settings: ClaimSettings
    clock: Clock
    recorder: Recorder
    claims: Informer[ServerClaim]
    servers: Informer[Server]
    configs: Informer[ServerBootConfiguration]


class ClaimScope:
    """Collects what a pass says of a claim, and writes it once."""

    def __init__(self, deps: ClaimDeps, claim: ServerClaim) -> None:
        self.deps = deps
        self.claim = claim
        self.status: ServerClaimStatus = claim.status
        now = deps.clock()
        self.now: datetime = now.replace(microsecond=now.microsecond // 1000 * 1000)

    def phase(self, phase: str, waiting_for: str) -> None:
        """Bound or Unbound, and what is awaited."""
        since = self.status.since if self.status.phase == phase else self.now
        self.status = msgspec.structs.replace(self.status, phase=phase, since=since, waiting_for=waiting_for)

    def condition(self, type: str, status: bool, reason: str, message: str) -> None:
        """Set a condition; an Event tells of each change of its reason."""
        old = conditions.find(self.status.conditions, type)
        new = Condition(
            type=type, status="True" if status else "False", reason=reason, message=message,
            observed_generation=self.claim.metadata.generation,
        )  # fmt: skip
        updated = conditions.set_condition(self.status.conditions, new, self.now)
        self.status = msgspec.structs.replace(self.status, conditions=updated)
        if old is None or old.reason != reason:
            self.event(reason, message, warning=not status and reason == "ServerLost")

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Tell people."""
        self.deps.recorder.event(self.claim, self.deps.kinds.claim, "Warning" if warning else "Normal", reason, message)

    async def commit(self) -> None:
        """Write what changed, guarded by resourceVersion. Raises Conflict and other ApiErrors."""
        generation = self.claim.metadata.generation
        self.status = msgspec.structs.replace(self.status, observed_generation=generation)
        changes = diff(msgspec.to_builtins(self.claim.status), msgspec.to_builtins(self.status))
        if not changes:
            return
        meta = self.claim.metadata
        body = {"metadata": {"resourceVersion": meta.resource_version}, "status": changes}
        self.claim = await self.deps.client.patch_status(self.deps.kinds.claim, meta.name, body, meta.namespace)
        self.deps.claims.observe(self.claim)
