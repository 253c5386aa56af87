"""Server-side apply, and ownership tracking on every other write (KEP-555).

Ownership is stored with the object, in metadata.managedFields: one entry for each manager, operation and subresource,
with the set of fields that it owns. Nothing is remembered elsewhere.

`apply` computes the new object in four steps: it merges the applied configuration into the live object along the
schema (`merge`); it removes what the previous apply of this manager owned, the new one does not mention, and no other
entry owns (`cut`); it compares the result with the live object, and a changed field that another manager owns is a
conflict (`ApplyConflict`) unless the apply is forced; it writes the entries: this manager owns what it applied, and
other managers lose what was changed. The first apply to an object adds an entry `before-first-apply` for all its other
fields. When nothing changes, the live object is returned as it is, so the write can be skipped.

`track_update` does the ownership of create, update and patch: what changed between the old and the new object moves
from its previous owners to the writer. There are no conflicts on this way.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from metal.apiserver.machinery import object_meta
from metal.apiserver.machinery.structural import IDENTITY, Node
from metal.apiserver.patching import managed_fields
from metal.apiserver.patching.field_diff import compare
from metal.apiserver.patching.field_set import FieldSet, difference, fields_of, intersection, merge_roots, paths
from metal.apiserver.patching.last_applied import MANAGER, last_applied
from metal.apiserver.patching.managed_fields import APPLY, UPDATE, Entry
from metal.apiserver.patching.merge import cut, merge
from metal.apiserver.schema.prune import prune
from metal.kube.meta.clock import timestamp

Obj = dict[str, Any]


class Rooted(Protocol):
    """A schema with its compiled root (`schema.Compiled`)."""

    @property
    def root(self) -> Node: ...


class ApplyConflict(Exception):
    """Other managers own fields that an apply would change. `conflicts` has pairs of manager and field path."""

    def __init__(self, clashes: Sequence[tuple[Entry, str]]) -> None:
        self.conflicts = [(str(entry.get("manager") or ""), path) for entry, path in clashes]
        self.causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {_name(entry)}", "field": path}
            for entry, path in clashes
        ]
        """metav1.StatusCause of each conflict."""
        super().__init__(_sentence(clashes))


def _name(entry: Entry) -> str:
    text = f'"{entry.get("manager") or ""}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry.get('apiVersion')}" if entry.get("operation") == UPDATE else text


def _sentence(clashes: Sequence[tuple[Entry, str]]) -> str:
    if len(clashes) == 1:
        entry, path = clashes[0]
        return f"Apply failed with 1 conflict: conflict with {_name(entry)}: {path}"
    by_manager: dict[str, list[str]] = {}
    for entry, path in clashes:
        by_manager.setdefault(_name(entry), []).append(f"- {path}")
    blocks = [f"conflicts with {name}:\n" + "\n".join(lines) for name, lines in sorted(by_manager.items())]
    return f"Apply failed with {len(clashes)} conflicts: " + "\n".join(blocks)


def track_update(
    old: Obj | None,
    new: Obj,
    *,
    manager: str,
    schema: Rooted | None,
    now: datetime,
    subresource: str = "",
    blank: Mapping[str, Any] = MappingProxyType({}),
) -> Obj:
    """The new object with metadata.managedFields brought up to date for a create, an update or a patch.

    Changed fields move from other managers to this one. blank: content of an object of this kind before the first
    write, which has no owner. An object whose managedFields were reset with [{}] is not tracked until it is applied.
    """
    entries = _entries_before(old, new, subresource)
    if entries is None:
        return _with_entries(new, ())
    changes = compare(_root(schema), {**blank, **_untracked(old or {})}, {**blank, **_untracked(new)})
    written, removed = managed_fields.ownable(changes.written), managed_fields.ownable(changes.removed)
    if not written and not removed:
        return _with_entries(new, entries)
    mine = managed_fields.make_entry(
        manager, UPDATE, {}, api_version=str(new.get("apiVersion") or ""), time="", subresource=subresource
    )
    return _with_entries(new, managed_fields.ordered(_taken(entries, mine, written, removed, timestamp(now))))


def _entries_before(old: Obj | None, new: Obj, subresource: str) -> Sequence[Entry] | None:
    """The entries before the write; None when the object is not tracked."""
    if old is None:
        return ()
    given = new.get("metadata", {}).get("managedFields")
    if not subresource and given:
        if given == [{}]:
            return None
        if managed_fields.well_formed(given):
            return list(given)
    return old.get("metadata", {}).get("managedFields") or None


def _taken(entries: Iterable[Entry], mine: Entry, written: FieldSet, removed: FieldSet, time: str) -> list[Entry]:
    out: list[Entry] = []
    own: FieldSet = {}
    since = time
    for entry in entries:
        left: FieldSet | None = managed_fields.fields(entry) or None
        if managed_fields.identity(entry) == managed_fields.identity(mine):
            own, since = _less(left, removed) or {}, str(entry.get("time") or time)
            continue
        left = _less(_less(left, written), removed)
        if left:
            out.append(entry if left is managed_fields.fields(entry) else {**entry, "fieldsV1": left})
    own = merge_roots(own, written)
    if own:
        out.append({**mine, "fieldsV1": own, "time": time if written else since})
    return out


def _less(fields: FieldSet | None, gone: FieldSet) -> FieldSet | None:
    if not fields or not gone or intersection(fields, gone) is None:
        return fields
    return difference(fields, gone)


def apply(
    live: Obj | None,
    applied: Obj,
    *,
    manager: str,
    force: bool,
    schema: Rooted | None,
    now: datetime,
    subresource: str = "",
    reset: Sequence[str] = ("status",),
) -> Obj:
    """The object after a server-side apply. Equal to `live` when nothing changes.

    Fields that this manager applied before and no longer mentions are removed, unless another manager owns them.
    `reset` names the top-level fields that only a subresource may write. Unknown fields are returned unchanged, without
    an owner, for the caller to report and prune. Raises ApplyConflict unless `force`.
    """
    root = _root(schema)
    given = _config(applied, subresource, reset)
    config = given if schema is None else prune(schema.root, given)
    aside = () if subresource else tuple(reset)
    result = _applied(root, live, config, manager=manager, force=force, now=now, subresource=subresource, reset=aside)
    return result if config == given else {**merge(root, result, given)}


def _applied(
    root: Node,
    live: Obj | None,
    config: Obj,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str,
    reset: Sequence[str],
) -> Obj:
    before = _untracked(live or {})
    entries = _entries_for_apply(root, live, reset)
    mine = managed_fields.make_entry(
        manager,
        APPLY,
        managed_fields.ownable(fields_of(root, config, applied=True)),
        api_version=str(config.get("apiVersion") or ""),
        time=timestamp(now),
        subresource=subresource,
    )
    others = [entry for entry in entries if managed_fields.identity(entry) != managed_fields.identity(mine)]
    last = next((entry for entry in entries if managed_fields.identity(entry) == managed_fields.identity(mine)), None)
    merged = _merged(root, before, config, last, [mine, *others])
    after = _after(root, before, merged, mine, others, force)
    if live is not None and merged == before and last is not None and _unchanged(last, mine, others, after):
        return live
    return _with_entries(merged, managed_fields.ordered(after))


def _unchanged(last: Entry, mine: Entry, others: list[Entry], after: list[Entry]) -> bool:
    same_others = len(after) == len(others) + 1 and all(one is other for one, other in zip(after, others, strict=False))
    return (
        same_others
        and managed_fields.fields(last) == managed_fields.fields(mine)
        and last.get("apiVersion") == mine["apiVersion"]
    )


def _merged(root: Node, before: Obj, config: Obj, last: Entry | None, entries: list[Entry]) -> Obj:
    merged: Obj = merge(root, before, config)
    if last is None:
        return merged
    # metadata itself is never removed.
    owned = {"f:metadata": {".": {}}, **managed_fields.union_of(managed_fields.fields(entry) for entry in entries)}
    return {**cut(root, merged, managed_fields.fields(last), owned)}


def _after(root: Node, before: Obj, merged: Obj, mine: Entry, others: list[Entry], force: bool) -> list[Entry]:
    changes = compare(root, before, merged)
    written, removed = managed_fields.ownable(changes.written), managed_fields.ownable(changes.removed)
    if not force:
        _refuse_conflicts(root, before, mine, others, written)
    out: list[Entry] = []
    for entry in others:
        left = _less(_less(managed_fields.fields(entry), written), removed)
        if left:
            out.append(entry if left is managed_fields.fields(entry) else {**entry, "fieldsV1": left})
    return [*out, mine] if managed_fields.fields(mine) else out


def _refuse_conflicts(root: Node, before: Obj, mine: Entry, others: list[Entry], written: FieldSet) -> None:
    allowed = last_applied(root, before) if mine["manager"] == MANAGER else {}
    contested = _less(written, allowed) or {}
    clashes = [
        (entry, path)
        for entry in others
        for path in paths((intersection(managed_fields.fields(entry), contested) if contested else None) or {})
    ]
    if clashes:
        raise ApplyConflict(clashes)


def _entries_for_apply(root: Node, live: Obj | None, reset: Sequence[str]) -> Sequence[Entry]:
    if live is None:
        return ()
    entries: Sequence[Entry] = live.get("metadata", {}).get("managedFields") or ()
    if entries:
        return entries
    known = {name: value for name, value in _untracked(live).items() if name not in reset}
    everything = managed_fields.ownable({k: sub for k, sub in fields_of(root, known).items() if k != "."})
    time = str(live.get("metadata", {}).get("creationTimestamp") or "")
    version = str(live.get("apiVersion") or "")
    return [
        managed_fields.make_entry(managed_fields.BEFORE_FIRST_APPLY, UPDATE, everything, api_version=version, time=time)
    ]


def _config(applied: Obj, subresource: str, reset: Sequence[str]) -> Obj:
    """The part of an applied configuration that this endpoint accepts."""
    if subresource:
        return {key: value for key, value in _untracked(applied).items() if key in (subresource, *IDENTITY)}
    return {key: value for key, value in _untracked(applied).items() if key not in reset}


def _root(schema: Rooted | None) -> Node:
    known = schema.root if schema is not None else None
    fields = {**(known.fields if known else {}), "metadata": object_meta.NODE}
    return Node(fields=fields, extra=known.extra if known else None, preserve=True)


def _untracked(obj: Mapping[str, Any]) -> Obj:
    """The object without metadata.managedFields."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return dict(obj)
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def _with_entries(obj: Obj, entries: Sequence[Entry]) -> Obj:
    out = _untracked(obj)
    if entries:
        out["metadata"] = {**out.get("metadata", {}), "managedFields": list(entries)}
    return out
