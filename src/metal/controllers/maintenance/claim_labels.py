"""What a claim is told of its server's maintenances: a label that one is needed, an annotation that says why."""

from typing import Any

from metal.api.claim import ServerClaim
from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.controllers.maintenance.queue_order import APPROVED, NEEDED, REASON, rank
from metal.controllers.maintenance.scope import MaintenanceDeps
from metal.kube.client.errors import NotFound
from metal.kube.meta.permissions import Permission


async def follow(deps: MaintenanceDeps, claim: ServerClaim, wanted: list[ServerMaintenance]) -> None:
    """Bring the marks of a claim to what `wanted` says, the maintenances of its server. Raises ApiError."""
    key = deps.context.kinds.key
    labels, notes = claim.metadata.labels, claim.metadata.annotations
    reason = _reason(wanted, key("reason"))
    changed: dict[str, Any] = {}
    if wanted and labels.get(key(NEEDED)) != "true":
        changed["labels"] = {key(NEEDED): "true"}
    if not wanted and (left := [name for name in (key(NEEDED), key(APPROVED)) if name in labels]):
        changed["labels"] = dict.fromkeys(left)
    if notes.get(key(REASON), "") != reason:
        changed["annotations"] = {key(REASON): reason or None}
    if changed:
        await _write(deps, claim, changed)


def _reason(wanted: list[ServerMaintenance], annotation: str) -> str:
    """The reason of the first that gives one."""
    told = (one.metadata.annotations.get(annotation, "") for one in sorted(wanted, key=rank))
    return next((text for text in told if text), "")


async def _write(deps: MaintenanceDeps, claim: ServerClaim, changed: dict[str, Any]) -> None:
    meta = claim.metadata
    body = {"metadata": {**changed, "resourceVersion": meta.resource_version}}
    try:
        fresh = await deps.context.client.patch(deps.context.kinds.claim, meta.name, body, meta.namespace)
    except NotFound:
        return
    deps.claims.observe(fresh)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What this module does with the API."""
    return (Permission(kinds.claim, ("patch",), "tells a claim that its server needs maintenance"),)
