"""Which ServerMaintenance comes next for a server, and why another one has to wait. Pure functions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from metal.api.claim import ServerClaim
from metal.api.maintenance import Policy, ServerMaintenance
from metal.api.server import Server
from metal.controllers.server.states.traits import traits_of
from metal.kube.meta.objects import key_of

_LAST = datetime.max.replace(tzinfo=UTC)
NEEDED, APPROVED, REASON = "maintenance-needed", "maintenance-approved", "maintenance-reason"
"""Labels of a claim, and the annotation that says why; each stands behind the API group."""


@dataclass(frozen=True)
class Obstacle:
    """Why a maintenance has to wait: a CamelCase reason, and what is awaited."""

    reason: str
    awaited: str


def rank(maintenance: ServerMaintenance) -> tuple[int, bool, datetime, str, str]:
    """The lowest comes first: higher priority, Enforced before OwnerApproval, older, then by namespace and name."""
    meta, spec = maintenance.metadata, maintenance.spec
    created = meta.creation_timestamp or _LAST
    return -spec.priority, spec.policy != Policy.ENFORCED, created, meta.namespace, meta.name


def is_approved(claim: ServerClaim, key: Callable[[str], str]) -> bool:
    """True once the claim's owner has approved a maintenance; `key` makes a label's whole name."""
    return claim.metadata.labels.get(key(APPROVED), "false") != "false"


def needs_approval(maintenance: ServerMaintenance, claim: ServerClaim | None, key: Callable[[str], str]) -> bool:
    """True while the owner of the claim has to agree first."""
    return claim is not None and maintenance.spec.policy != Policy.ENFORCED and not is_approved(claim, key)


def first(
    waiting: Iterable[ServerMaintenance], claim: ServerClaim | None, key: Callable[[str], str]
) -> ServerMaintenance | None:
    """The next of those that may have the server; one that lacks its approval holds up nobody."""
    ready = [one for one in waiting if one.metadata.deletion_timestamp is None]
    return min((one for one in ready if not needs_approval(one, claim, key)), key=rank, default=None)


def obstacle(
    maintenance: ServerMaintenance,
    server: Server,
    claim: ServerClaim | None,
    rivals: Iterable[ServerMaintenance],
    key: Callable[[str], str],
) -> Obstacle | None:
    """Why the maintenance cannot have the server now; None when it is its turn."""
    held = server.spec.server_maintenance_ref
    if held is not None:
        return Obstacle("Queued", f"the maintenance {held.namespace}/{held.name}, which holds the server, to end")
    if (found := _not_now(server)) is not None:
        return found
    if needs_approval(maintenance, claim, key) and claim is not None:
        return Obstacle(
            "ApprovalMissing",
            f"the owner of the claim {key_of(claim)} to approve: kubectl label serverclaims -n "
            f"{claim.metadata.namespace} {claim.metadata.name} {key(APPROVED)}=true",
        )
    ahead = first(rivals, claim, key)
    if ahead is not None and ahead.metadata.uid != maintenance.metadata.uid:
        return Obstacle("Queued", f"the maintenance {key_of(ahead)}, which comes first")
    return None


def _not_now(server: Server) -> Obstacle | None:
    """States in which something else comes first."""
    name = server.metadata.name
    if server.metadata.deletion_timestamp is not None:
        return Obstacle("ServerNotFound", f"another server {name}; this one is being deleted")
    blocked = traits_of(server.status.state).blocks_maintenance
    return Obstacle(blocked.reason, blocked.awaited.format(name=name)) if blocked is not None else None
