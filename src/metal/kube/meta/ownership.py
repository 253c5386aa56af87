"""Owner references: write the controlling one, find it, check it."""

from typing import Any

from metal.kube.meta.objects import Kind, Object, OwnerReference


def controller_reference(owner: Object, kind: Kind[Object]) -> dict[str, Any]:
    """The ownerReference that makes `owner` the controlling owner. Raises ValueError while owner has no uid."""
    meta = owner.metadata
    if not meta.uid:
        raise ValueError(f"{kind.kind} {meta.name!r} has no metadata.uid: create it before it owns anything")
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Object) -> OwnerReference | None:
    """The reference to the controlling owner, or None."""
    return next((ref for ref in obj.metadata.owner_references if ref.controller), None)


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Whether exactly this owner (by uid) controls the object."""
    ref = controller_of(obj)
    return ref is not None and ref.uid == owner.metadata.uid
