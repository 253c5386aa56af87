"""metadata.managedFields: the owners of fields, and the time of their last write (KEP-555)."""

from collections.abc import Iterable, Mapping
from typing import Any

from metal.apiserver.patching.field_set import FieldSet, merge_roots

Entry = Mapping[str, Any]
APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY = "before-first-apply"
ANCIENT = "ancient-changes"
MAX_UPDATES = 10

_NEVER_OWNED = frozenset({"f:apiVersion", "f:kind"})
_NEVER_OWNED_METADATA = frozenset(
    (
        ".", "f:name", "f:namespace", "f:uid", "f:resourceVersion", "f:generation", "f:creationTimestamp",
        "f:deletionTimestamp", "f:deletionGracePeriodSeconds", "f:selfLink", "f:managedFields",
    )
)  # fmt: skip


def ownable(fields: FieldSet) -> FieldSet:
    """The set without fields that have no owner: identity, and metadata that the server sets."""
    out = {key: sub for key, sub in fields.items() if key not in _NEVER_OWNED}
    meta = out.get("f:metadata")
    if meta is not None:
        kept = {key: sub for key, sub in meta.items() if key not in _NEVER_OWNED_METADATA}
        if kept:
            out["f:metadata"] = kept
        else:
            del out["f:metadata"]
    return out


def identity(entry: Entry) -> tuple[str, str, str, str]:
    """The key of an entry: manager, operation, subresource, and for updates apiVersion."""
    operation = str(entry.get("operation") or "")
    version = str(entry.get("apiVersion") or "") if operation == UPDATE else ""
    return str(entry.get("manager") or ""), operation, str(entry.get("subresource") or ""), version


def fields(entry: Entry) -> FieldSet:
    """The set of an entry."""
    found = entry.get("fieldsV1")
    return found if isinstance(found, dict) else {}


def make_entry(
    manager: str, operation: str, owned: FieldSet, *, api_version: str, time: str, subresource: str = ""
) -> dict[str, Any]:
    """One entry, with its keys in the order of Kubernetes."""
    entry: dict[str, Any] = {"apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": owned}
    entry |= {"manager": manager, "operation": operation}
    if subresource:
        entry["subresource"] = subresource
    return {**entry, "time": time}


def well_formed(entries: Any) -> bool:
    """Whether a list from a client is valid."""
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.get("operation") in (APPLY, UPDATE)
        and isinstance(entry.get("fieldsV1"), dict)
        and entry.get("fieldsType") == "FieldsV1"
        and entry.get("apiVersion")
        for entry in entries
    )


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Applies first, then by time and manager; the oldest of too many updates are merged into one."""
    ranked = sorted(entries, key=_rank)
    updates = [entry for entry in ranked if entry.get("operation") == UPDATE]
    if len(updates) <= MAX_UPDATES:
        return ranked
    return sorted(_fold(ranked, updates[: len(updates) - MAX_UPDATES + 1]), key=_rank)


def _rank(entry: Entry) -> tuple[str, ...]:
    return str(entry.get("operation") or ""), str(entry.get("time") or ""), *identity(entry)


def _fold(entries: list[Entry], oldest: list[Entry]) -> list[Entry]:
    """Merge the oldest into one entry for each apiVersion."""
    dropped = {id(entry) for entry in oldest}
    folded: dict[str, dict[str, Any]] = {}
    for entry in oldest:
        version = str(entry.get("apiVersion") or "")
        owned = merge_roots(fields(folded.get(version, {})), fields(entry))
        folded[version] = make_entry(ANCIENT, UPDATE, owned, api_version=version, time=str(entry.get("time") or ""))
    return [*(entry for entry in entries if id(entry) not in dropped), *folded.values()]


def union_of(sets: Iterable[FieldSet]) -> FieldSet:
    """Every field of every set."""
    out: FieldSet = {}
    for one in sets:
        out = merge_roots(out, one)
    return out
