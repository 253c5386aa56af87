"""Predicates of watches: which changes of an object cause a pass."""

from metal.kube.meta.objects import Object


def spec_or_metadata_changed(old: Object | None, new: Object | None) -> bool:
    """True unless only the status changed, which controllers write themselves."""
    if old is None or new is None:
        return True
    return _declared(old) != _declared(new)


def _declared(obj: Object) -> tuple[object, ...]:
    meta = obj.metadata
    return (
        meta.uid, meta.generation, meta.deletion_timestamp, dict(meta.labels), dict(meta.annotations),
        tuple(meta.finalizers), tuple(meta.owner_references),
    )  # fmt: skip
