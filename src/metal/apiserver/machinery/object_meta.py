"""metadata of every object: its schema, and the rules for names and labels (Kubernetes API conventions)."""

from collections.abc import Mapping
from typing import Any

from metal.apiserver.machinery.causes import MOST, Cause, forbidden, invalid, required, show, too_long
from metal.apiserver.machinery.structural import Node, compile_node
from metal.kube.meta.names import LABEL_RULE, SUBDOMAIN_RULE, is_label, is_subdomain, key_fault, label_value_fault

_STRING_MAP = {"type": "object", "additionalProperties": {"type": "string"}}
_OWNER = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "name": {"type": "string"},
        "uid": {"type": "string"},
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
}
_MANAGED = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("manager", "operation", "apiVersion", "fieldsType", "subresource", "time")
        },
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "generateName": {"type": "string"},
        "namespace": {"type": "string"},
        "uid": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "generation": {"type": "integer", "format": "int64"},
        "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
        "deletionTimestamp": {"type": "string", "format": "date-time", "nullable": True},
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "nullable": True},
        "selfLink": {"type": "string"},
        "labels": {**_STRING_MAP, "nullable": True},
        "annotations": {**_STRING_MAP, "nullable": True},
        "finalizers": {"type": "array", "items": {"type": "string"}, "nullable": True, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "nullable": True,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "managedFields": {"type": "array", "items": _MANAGED, "nullable": True},
    },
}
"""metadata as a structural schema; other fields are pruned."""

NODE: Node = compile_node(SCHEMA)

_MAX_ANNOTATIONS = 256 * 1024


def path_name_faults(name: str) -> list[str]:
    """Why a name cannot be a path segment, which is all that names of roles must be."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def validate_metadata(
    meta: Mapping[str, Any], *, namespaced: bool, old: Mapping[str, Any] | None = None, path_names: bool = False
) -> list[Cause]:
    """What is wrong with metadata; with `old`, also whether something immutable changed.

    path_names: any name that can be a path segment is valid.
    """
    causes = _names(meta, namespaced, path_names)
    causes += _labels(meta.get("labels") or {})
    causes += _annotations(meta.get("annotations") or {})
    causes += _finalizers(meta.get("finalizers") or ())
    causes += _owners(meta.get("ownerReferences") or ())
    if old is not None:
        causes += _immutable(meta, old)
    return causes


def _names(meta: Mapping[str, Any], namespaced: bool, path_names: bool = False) -> list[Cause]:
    causes = []
    name, prefix = str(meta.get("name") or ""), str(meta.get("generateName") or "")
    if not name and not prefix:
        causes.append(required("metadata.name", "name or generateName is required"))
    if prefix and not path_names and not is_subdomain(prefix.rstrip("-.") or "-"):
        causes.append(invalid("metadata.generateName", prefix, SUBDOMAIN_RULE))
    if name and path_names:
        causes += [invalid("metadata.name", name, fault) for fault in path_name_faults(name)]
    elif name and not is_subdomain(name):
        causes.append(invalid("metadata.name", name, SUBDOMAIN_RULE if len(name) <= 253 else _LONG_NAME))
    namespace = str(meta.get("namespace") or "")
    if namespace and not namespaced:
        causes.append(forbidden("metadata.namespace", "not allowed on this type"))
    elif namespace and not is_label(namespace):
        causes.append(invalid("metadata.namespace", namespace, LABEL_RULE))
    return causes


_LONG_NAME = "must be no more than 253 characters"


def _key(field: str, key: str) -> list[Cause]:
    fault = key_fault(key)
    return [invalid(field, key, fault)] if fault else []


def _labels(labels: Mapping[str, str]) -> list[Cause]:
    causes: list[Cause] = []
    for key, value in labels.items():
        if len(causes) > MOST:
            break
        causes += _key("metadata.labels", key)
        if fault := label_value_fault(value):
            causes.append(invalid("metadata.labels", value, fault))
    return causes


def _annotations(annotations: Mapping[str, str]) -> list[Cause]:
    causes: list[Cause] = []
    for key in annotations:
        if len(causes) > MOST:
            break
        causes += _key("metadata.annotations", key.lower())
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > _MAX_ANNOTATIONS:
        causes.append(too_long("metadata.annotations", _MAX_ANNOTATIONS))
    return causes


def _finalizers(finalizers: Any) -> list[Cause]:
    causes: list[Cause] = []
    for name in finalizers:
        if len(causes) > MOST:
            break
        causes += _key("metadata.finalizers", name)
    return causes


_EMPTY = {"apiVersion": "version must not be empty"}


def _owners(owners: Any) -> list[Cause]:
    causes: list[Cause] = []
    controllers = 0
    for owner in owners:
        if len(causes) > MOST:
            break
        causes += [
            invalid(f"metadata.ownerReferences.{key}", owner.get(key, ""), _EMPTY.get(key, "must not be empty"))
            for key in ("apiVersion", "kind", "name", "uid")
            if not owner.get(key)
        ]
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        causes.append(
            invalid("metadata.ownerReferences", controllers, "Only one reference can have Controller set to true")
        )
    return causes


def _immutable(meta: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    causes = [
        invalid(f"metadata.{key}", meta[key], "field is immutable")
        for key in ("name", "namespace", "uid", "creationTimestamp")
        if meta.get(key) and meta[key] != old.get(key)
    ]
    if old.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(show(name) for name in added)
            message = "no new finalizers can be added if the object is being deleted"
            detail = f"{message}, found new finalizers []string{{{listed}}}"
            causes.append(forbidden("metadata.finalizers", detail))
    return causes
