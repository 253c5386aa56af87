"""Decides which ServerMaintenance gets a server next, and why others wait. Pure functions.

Maintenances of one server are ordered by priority, Enforced before OwnerApproval, age, namespace and name. The policy
Enforced counts as OwnerApproval in a namespace that the configuration does not name: otherwise the right to create
maintenances in any namespace would suffice to boot an image on another tenant's machine. A maintenance that still needs
the approval of the claim's owner does not block those behind it. A maintenance that holds the server
keeps it until it is deleted, at any rank. A server in Cleanup or Parked is given to none. A server that waits for the
decision whose data is on its drives is given to an Enforced one only: a claim that does not hold it may own the data.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from metal.api.claim import ServerClaim
from metal.api.maintenance import Policy, ServerMaintenance
from metal.api.server import Server
from metal.controllers.server.reasons import Reason, WaitFor
from metal.controllers.server.traits import traits_of
from metal.kube.meta.objects import key_of

_UNDECIDED = (WaitFor.DRIVE_OWED, WaitFor.FORMER_TENANT)
"""Waits of a server with data of which it is not decided whose it is."""
_LAST = datetime.max.replace(tzinfo=UTC)
NEEDED, APPROVED, REASON = "maintenance-needed", "maintenance-approved", "maintenance-reason"
"""Two labels of a claim and the annotation with the reason, each without its prefix, the API group."""


@dataclass(frozen=True)
class Obstacle:
    """Why a maintenance waits: a CamelCase reason, and what is awaited."""

    reason: str
    awaited: str


@dataclass(frozen=True)
class ApprovalRules:
    """Which maintenances need no approval, and how approvals are spelled."""

    key: Callable[[str], str]
    """Adds the API group to a label."""
    enforcing: Collection[str]
    """Namespaces in which the policy Enforced is allowed."""

    def enforces(self, maintenance: ServerMaintenance) -> bool:
        """True when the policy is Enforced and allowed in the maintenance's namespace."""
        return maintenance.spec.policy == Policy.ENFORCED and maintenance.metadata.namespace in self.enforcing

    def is_downgraded(self, maintenance: ServerMaintenance) -> bool:
        """True when the policy Enforced counts as OwnerApproval."""
        return maintenance.spec.policy == Policy.ENFORCED and not self.enforces(maintenance)

    def rank(self, maintenance: ServerMaintenance) -> tuple[int, bool, datetime, str, str]:
        """Sort key: higher priority, Enforced before OwnerApproval, older, then namespace and name."""
        meta = maintenance.metadata
        created = meta.creation_timestamp or _LAST
        return -maintenance.spec.priority, not self.enforces(maintenance), created, meta.namespace, meta.name

    def needs_approval(self, maintenance: ServerMaintenance, claim: ServerClaim | None) -> bool:
        """True while the approval of the claim's owner is missing."""
        return claim is not None and not self.enforces(maintenance) and not is_approved(claim, self.key)


def is_approved(claim: ServerClaim, key: Callable[[str], str]) -> bool:
    """True once the claim's owner has approved a maintenance; `key` adds the API group to a label."""
    return claim.metadata.labels.get(key(APPROVED), "false") != "false"


def first(
    waiting: Iterable[ServerMaintenance], claim: ServerClaim | None, rules: ApprovalRules
) -> ServerMaintenance | None:
    """The next maintenance that may have the server; those that lack approval are skipped."""
    ready = [one for one in waiting if one.metadata.deletion_timestamp is None]
    return min((one for one in ready if not rules.needs_approval(one, claim)), key=rules.rank, default=None)


def obstacle(
    maintenance: ServerMaintenance,
    server: Server,
    claim: ServerClaim | None,
    rivals: Iterable[ServerMaintenance],
    rules: ApprovalRules,
) -> Obstacle | None:
    """Why the maintenance cannot have the server now; None when it is next."""
    held = server.spec.server_maintenance_ref
    if held is not None:
        return Obstacle("Queued", f"maintenance {held.namespace}/{held.name}, which holds the server, to end")
    if (found := _server_unavailable(server)) is not None:
        return found
    undecided = _is_owner_undecided(server)
    if undecided and not rules.enforces(maintenance):
        return Obstacle(
            "DataOwnerUndecided",
            f"the decision for which server {server.metadata.name} waits (metalctl why server/{server.metadata.name}): "
            "a claim may own data on its drives. Only an Enforced maintenance does not wait for it",
        )
    if (missing := missing_approval(maintenance, claim, rules)) is not None:
        return missing
    ahead = first((one for one in rivals if not undecided or rules.enforces(one)), claim, rules)
    if ahead is not None and ahead.metadata.uid != maintenance.metadata.uid:
        return Obstacle("Queued", f"maintenance {key_of(ahead)}, which is ahead in the queue")
    return None


def missing_approval(
    maintenance: ServerMaintenance, claim: ServerClaim | None, rules: ApprovalRules
) -> Obstacle | None:
    """The approval that is awaited from the claim's owner; None when it was given or is not needed."""
    if claim is None or not rules.needs_approval(maintenance, claim):
        return None
    return Obstacle(
        "EnforcedNotAllowed" if rules.is_downgraded(maintenance) else "ApprovalMissing",
        f"approval by the owner of claim {key_of(claim)}: kubectl label serverclaims -n "
        f"{claim.metadata.namespace} {claim.metadata.name} {rules.key(APPROVED)}=true"
        f"{_alternative(maintenance, rules)}",
    )


def _alternative(maintenance: ServerMaintenance, rules: ApprovalRules) -> str:
    """What else helps where the policy Enforced counts as OwnerApproval."""
    if not rules.is_downgraded(maintenance):
        return ""
    namespace = maintenance.metadata.namespace
    return (
        f" (policy Enforced counts as OwnerApproval in namespace {namespace}: create the maintenance in namespace "
        f"{sorted(rules.enforcing)[0]}, or add {namespace} to maintenance.enforcedNamespaces of the configuration)"
    )


def _is_owner_undecided(server: Server) -> bool:
    status = server.status
    waits = status.wait is not None and status.wait.for_ in _UNDECIDED
    return waits or (status.failure is not None and status.failure.reason == Reason.FORMER_TENANT)


def _server_unavailable(server: Server) -> Obstacle | None:
    """States of the server in which no maintenance gets it."""
    name = server.metadata.name
    if server.metadata.deletion_timestamp is not None:
        return Obstacle("ServerNotFound", f"server {name} to be created again; it is being deleted")
    blocked = traits_of(server.status.state).blocks_maintenance
    return Obstacle(blocked.reason, blocked.awaited.format(name=name)) if blocked is not None else None
