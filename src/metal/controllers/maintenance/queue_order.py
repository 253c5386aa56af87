"""Decides which ServerMaintenance gets a server next, and why others wait. Pure functions.

Maintenances of one server are ordered by priority, Enforced before OwnerApproval, age, namespace and name. One that
still needs the approval of the claim's owner does not block those behind it. A maintenance that holds the server
keeps it until it is deleted, at any rank. A server in Cleanup or Parked is given to none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from metal.api.claim import ServerClaim
from metal.api.maintenance import Policy, ServerMaintenance
from metal.api.server import Server
from metal.controllers.server.traits import traits_of
from metal.kube.meta.objects import key_of

_LAST = datetime.max.replace(tzinfo=UTC)
NEEDED, APPROVED, REASON = "maintenance-needed", "maintenance-approved", "maintenance-reason"
"""Two labels of a claim and the annotation with the reason, each without its prefix, the API group."""


@dataclass(frozen=True)
class Obstacle:
    """Why a maintenance waits: a CamelCase reason, and what is awaited."""

    reason: str
    awaited: str


def rank(maintenance: ServerMaintenance) -> tuple[int, bool, datetime, str, str]:
    """Sort key: higher priority, Enforced before OwnerApproval, older, then namespace and name."""
    meta, spec = maintenance.metadata, maintenance.spec
    created = meta.creation_timestamp or _LAST
    return -spec.priority, spec.policy != Policy.ENFORCED, created, meta.namespace, meta.name


def is_approved(claim: ServerClaim, key: Callable[[str], str]) -> bool:
    """True once the claim's owner has approved a maintenance; `key` adds the API group to a label."""
    return claim.metadata.labels.get(key(APPROVED), "false") != "false"


def needs_approval(maintenance: ServerMaintenance, claim: ServerClaim | None, key: Callable[[str], str]) -> bool:
    """True while the approval of the claim's owner is missing."""
    return claim is not None and maintenance.spec.policy != Policy.ENFORCED and not is_approved(claim, key)


def first(
    waiting: Iterable[ServerMaintenance], claim: ServerClaim | None, key: Callable[[str], str]
) -> ServerMaintenance | None:
    """The next maintenance that may have the server; those that lack approval are skipped."""
    ready = [one for one in waiting if one.metadata.deletion_timestamp is None]
    return min((one for one in ready if not needs_approval(one, claim, key)), key=rank, default=None)


def obstacle(
    maintenance: ServerMaintenance,
    server: Server,
    claim: ServerClaim | None,
    rivals: Iterable[ServerMaintenance],
    key: Callable[[str], str],
) -> Obstacle | None:
    """Why the maintenance cannot have the server now; None when it is next."""
    held = server.spec.server_maintenance_ref
    if held is not None:
        return Obstacle("Queued", f"maintenance {held.namespace}/{held.name}, which holds the server, to end")
    if (found := _server_unavailable(server)) is not None:
        return found
    if needs_approval(maintenance, claim, key) and claim is not None:
        return Obstacle(
            "ApprovalMissing",
            f"approval by the owner of claim {key_of(claim)}: kubectl label serverclaims -n "
            f"{claim.metadata.namespace} {claim.metadata.name} {key(APPROVED)}=true",
        )
    ahead = first(rivals, claim, key)
    if ahead is not None and ahead.metadata.uid != maintenance.metadata.uid:
        return Obstacle("Queued", f"maintenance {key_of(ahead)}, which is ahead in the queue")
    return None


def _server_unavailable(server: Server) -> Obstacle | None:
    """States of the server in which no maintenance gets it."""
    name = server.metadata.name
    if server.metadata.deletion_timestamp is not None:
        return Obstacle("ServerNotFound", f"server {name} to be created again; it is being deleted")
    blocked = traits_of(server.status.state).blocks_maintenance
    return Obstacle(blocked.reason, blocked.awaited.format(name=name)) if blocked is not None else None
