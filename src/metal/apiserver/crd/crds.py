"""CustomResourceDefinitions: the kind itself, and the resources that each one defines.

A write of a CRD is validated (`validation`, `schema_validation`, `rule_validation`); `_prepare` completes its names,
compares them with those of other resources of the group and sets the conditions NamesAccepted and Established in the
same write, so a CRD is served as soon as the write is committed. The backend then calls `serve`, which registers one
resource for each served version, with its compiled schema. Compiled schemas are cached by their text.

A deleted CRD keeps the finalizer CLEANUP until the garbage collector has deleted all its objects; meanwhile its
resources do not accept create. A CRD whose names are taken waits: the collector runs `_prepare` again when another CRD
is deleted.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from metal.apiserver.crd import validation
from metal.apiserver.kinds import builtin_schemas as schemas
from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.records import CRDS, ResourceKey
from metal.apiserver.machinery.registry import Registry
from metal.apiserver.machinery.resources import Resource, Strategy
from metal.apiserver.printing.builtin_columns import builtin_columns
from metal.apiserver.printing.table import columns_for
from metal.apiserver.schema.schema import compiled
from metal.kube.meta.clock import Clock, timestamp

Obj = dict[str, Any]

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Verbs of custom resources, in the order of discovery documents."""
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer of a CRD until all its objects are deleted."""


def resources_of(crd: Obj) -> list[Resource]:
    """The resources of an established CRD: one for each served version."""
    stored = next((v["name"] for v in crd["spec"]["versions"] if v.get("storage")), "")
    # A CRD that is being deleted accepts no new objects.
    verbs = tuple(v for v in VERBS if v != "create" or "deletionTimestamp" not in crd["metadata"])
    served = [version for version in crd["spec"]["versions"] if version.get("served")]
    return [replace(_resource(crd["spec"], version, stored), verbs=verbs) for version in served]


def _resource(spec: Obj, version: Obj, stored: str) -> Resource:
    names = spec["names"]
    openapi = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        schema=compiled(openapi),
        openapi=openapi,
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=columns_for(version),
        deprecated=_warning(spec, version),
        status="status" in (version.get("subresources") or {}),
        stored_as=stored,
        strategy=Strategy(selectable=_selectable(version)),
    )


def _warning(spec: Obj, version: Obj) -> str:
    if not version.get("deprecated"):
        return ""
    message = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return str(version.get("deprecationWarning") or message)


def _selectable(version: Obj) -> frozenset[str]:
    return frozenset(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ())


def established(crd: Obj) -> bool:
    """Whether the names of the CRD are accepted and it is served."""
    return any(
        c.get("type") == "Established" and c.get("status") == "True"
        for c in (crd.get("status") or {}).get("conditions") or ()
    )


def definition(registry: Registry, clock: Clock) -> Resource:
    """The resource `customresourcedefinitions` itself."""
    return Resource(
        group=CRDS.group,
        version="v1",
        kind="CustomResourceDefinition",
        plural=CRDS.plural,
        schema=compiled(schemas.CRD),
        openapi=schemas.CRD,
        namespaced=False,
        singular="customresourcedefinition",
        list_kind="CustomResourceDefinitionList",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        columns=builtin_columns("CustomResourceDefinition"),
        custom=False,
        strategy=Strategy(
            prepare=partial(_prepare, registry, clock),
            check=partial(_check, registry),
            deleted=partial(_terminate, clock),
            finalizers=(CLEANUP,),
            generations=True,
        ),
    )


def _check(registry: Registry, obj: Obj, old: Obj | None) -> list[Cause]:
    spec = obj.get("spec")
    group = str(spec.get("group", "")) if isinstance(spec, dict) else ""
    taken = [invalid("spec.group", group, "is a group of the API itself")] if registry.owns(group) else []
    return taken + validation.check(obj, old)


def _prepare(registry: Registry, clock: Clock, obj: Obj, old: Obj | None) -> None:
    """Complete the names and accept or refuse them in the same write, so that clients need not wait for Established."""
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return
    names = spec["names"]
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})
    before = {} if old is None else old.get("status") or {}
    obj["status"] = _status(obj, before, _conflicts(registry, spec), clock())


def _status(obj: Obj, before: Obj, conflicts: dict[str, str], now: datetime) -> Obj:
    conflict = ", ".join(dict.fromkeys(f'"{name}" is already in use' for name in conflicts.values()))
    versions = [v for v in obj["spec"].get("versions") or () if isinstance(v, dict)]
    stored = [v["name"] for v in versions if v.get("storage") is True and "name" in v]
    accepted = not conflict
    reason = _REASONS[next(iter(conflicts))] if conflicts else "NoConflicts"
    names = _condition("NamesAccepted", accepted, reason, conflict)
    names["message"] = conflict or "no conflicts found"
    ready = _condition("Established", accepted, "InitialNamesAccepted" if accepted else "NotAccepted", "")
    ready["message"] = "the initial names have been accepted" if accepted else "not all names are accepted"
    others = [c for c in before.get("conditions") or () if c.get("type") not in ("NamesAccepted", "Established")]
    return {
        "acceptedNames": _accepted(obj["spec"]["names"], before.get("acceptedNames") or {}, conflicts),
        "conditions": [_dated(c, before, now) for c in (names, ready)] + others,
        "storedVersions": list(dict.fromkeys([*(before.get("storedVersions") or ()), *stored])),
    }


def _condition(name: str, true: bool, reason: str, message: str) -> Obj:
    return {"type": name, "status": "True" if true else "False", "reason": reason, "message": message}


def _dated(condition: Obj, before: Obj, now: datetime) -> Obj:
    for old in before.get("conditions") or ():
        if old.get("type") == condition["type"] and old.get("status") == condition["status"]:
            return {"lastTransitionTime": old.get("lastTransitionTime") or timestamp(now), **condition}
    return {"lastTransitionTime": timestamp(now), **condition}


_REASONS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def _accepted(wanted: Obj, before: Obj, conflicts: dict[str, str]) -> Obj:
    """The names without conflict; a name with a conflict keeps the value that was accepted before."""
    accepted = {key: value for key, value in wanted.items() if key not in conflicts}
    return accepted | {key: before[key] for key in conflicts if before.get(key)}


def _conflicts(registry: Registry, spec: Obj) -> dict[str, str]:
    """Names that other resources of the group already have, by field."""
    wanted = spec["names"]
    others = [r for r in registry if r.group == spec.get("group") and r.plural != wanted.get("plural")]
    taken = {name for other in others for name in (other.plural, other.singular, *other.short_names)}
    kinds = {name for other in others for name in (other.kind, other.list_kind)}
    found = {}
    for key in ("plural", "singular"):
        if wanted.get(key) in taken:
            found[key] = wanted[key]
    for name in wanted.get("shortNames") or ():
        if name in taken:
            found["shortNames"] = name
    for key in ("kind", "listKind"):
        if wanted.get(key) in kinds:
            found[key] = wanted[key]
    return found


def _terminate(clock: Clock, obj: Obj) -> None:
    status = obj.setdefault("status", {})
    condition = _condition(
        "Terminating",
        True,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    status["conditions"] = [*status.get("conditions", ()), {"lastTransitionTime": timestamp(clock()), **condition}]


def collection_of(crd: Obj) -> ResourceKey:
    """The collection of the objects of a CRD."""
    return ResourceKey(crd["spec"]["group"], crd["spec"]["names"]["plural"])


def serve(registry: Registry, crd: Obj) -> None:
    """Register the resources of a created or changed CRD."""
    registry.remove(collection_of(crd))
    if established(crd) and not registry.owns(crd["spec"]["group"]):
        for resource in resources_of(crd):
            registry.add(resource)
