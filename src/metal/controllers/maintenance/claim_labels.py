"""Labels a claim whose server needs maintenance, and annotates it with the reason, so that its owner can approve."""

from typing import Any

from metal.api.claim import ServerClaim
from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.api.names import MAINTENANCE_REASON
from metal.controllers.maintenance.queue_order import APPROVED, NEEDED, REASON, ApprovalRules
from metal.controllers.maintenance.scope import MaintenanceDeps
from metal.kube.client.errors import NotFound
from metal.kube.meta.permissions import Permission


async def update(deps: MaintenanceDeps, claim: ServerClaim, maintenances: list[ServerMaintenance]) -> None:
    """Set or remove label and annotation for the maintenances of the claim's server. Raises ApiError."""
    key = deps.context.kinds.key
    labels, notes = claim.metadata.labels, claim.metadata.annotations
    reason = _reason(maintenances, key(MAINTENANCE_REASON), deps.rules)
    changed: dict[str, Any] = {}
    if maintenances and labels.get(key(NEEDED)) != "true":
        changed["labels"] = {key(NEEDED): "true"}
    if not maintenances and (left := [name for name in (key(NEEDED), key(APPROVED)) if name in labels]):
        changed["labels"] = dict.fromkeys(left)
    if notes.get(key(REASON), "") != reason:
        changed["annotations"] = {key(REASON): reason or None}
    if changed:
        await _write(deps, claim, changed)


def _reason(maintenances: list[ServerMaintenance], annotation: str, rules: ApprovalRules) -> str:
    """The reason of the first maintenance in the queue that has one."""
    reasons = (one.metadata.annotations.get(annotation, "") for one in sorted(maintenances, key=rules.rank))
    return next((text for text in reasons if text), "")


async def _write(deps: MaintenanceDeps, claim: ServerClaim, changed: dict[str, Any]) -> None:
    meta = claim.metadata
    body = {"metadata": {**changed, "resourceVersion": meta.resource_version}}
    try:
        fresh = await deps.context.client.patch(deps.context.kinds.claim, meta.name, body, meta.namespace)
    except NotFound:
        return
    deps.claims.observe(fresh)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.claim, ("patch",), "labels a claim whose server needs maintenance"),)
