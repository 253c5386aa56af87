"""Conditions of a namespace that is being deleted, as kube-controller-manager sets them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from metal.apiserver.machinery.records import Record
from metal.kube.meta.clock import timestamp

Obj = dict[str, Any]

_DONE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


def conditions(left: Sequence[Record], before: Iterable[Mapping[str, Any]], now: datetime) -> list[Obj]:
    """The conditions for the remaining objects; an unchanged status keeps its lastTransitionTime."""
    resources = Counter(f"{record.key.resource.plural}.{record.key.resource.group}" for record in left)
    finalizers = Counter(name for record in left for name in record.finalizers)
    conditions = [_condition(kind, False, reason, message) for kind, reason, message in _DONE]
    kinds = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
    conditions.append(
        _condition("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {kinds}")
    )
    if finalizers:
        names = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {names}"
        conditions.append(_condition("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", message))
    else:
        message = "All content-preserving finalizers finished"
        conditions.append(_condition("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", message))
    times = {(c["type"], c["status"]): c.get("lastTransitionTime") for c in before}
    return [{**c, "lastTransitionTime": times.get((c["type"], c["status"])) or timestamp(now)} for c in conditions]


def _condition(kind: str, true: bool, reason: str, message: str) -> Obj:
    return {"type": kind, "status": "True" if true else "False", "reason": reason, "message": message}
