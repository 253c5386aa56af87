"""Decodes bodies and patched objects before validation, with the error messages of kube-apiserver."""

from typing import Any

import msgspec

from metal.apiserver.machinery import metadata, object_meta, status
from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.machinery.resources import RequestContext, Resource
from metal.apiserver.machinery.structural import Node
from metal.apiserver.schema import go_types

Obj = dict[str, Any]

_CLAIMABLE = frozenset({"labels", "annotations", "finalizers", "ownerReferences"})
_SHOWN = 30
"""Maximum of characters of a body that an error message repeats."""


def posted(ctx: RequestContext, obj: Any) -> Obj:
    """The object of a create or an update. Raises StatusError 400."""
    resource = ctx.resource
    if not isinstance(obj, dict):
        raise unrecognized(resource, f"couldn't get version/kind; json parse error: {_not_an_object(obj)}", obj)
    kind, version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if resource.custom:
        _check_custom(resource, obj, kind, version)
    elif (kind or resource.kind, version or resource.api_version) != (resource.kind, resource.api_version):
        raise _cannot_be_handled(resource, _unregistered(kind, version), kind, version)
    if why := _mistyped(resource, obj):
        raise _cannot_be_handled(resource, why)
    return _named(resource, obj)


def patched(ctx: RequestContext, obj: Any, kind: PatchType) -> Obj:
    """The object after a patch. Raises StatusError 422."""
    resource = ctx.resource
    if kind is PatchType.STRATEGIC:
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    why = "" if isinstance(obj, dict) else _not_an_object(obj)
    if not why and resource.custom and not obj.get("kind"):
        why = f"Object 'Kind' is missing in '{_sorted(obj)}'"
    named, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if not why and not resource.custom and (named, version) != (resource.kind, resource.api_version):
        why = _unregistered(named, version)
    if why := why or _mistyped(resource, obj):
        raise status.invalid(status.Who(), [refused_patch(resource, obj, why)])
    return _named(resource, obj)


def applied(ctx: RequestContext, obj: Any) -> Obj:
    """An applied configuration. Raises StatusError 400 or 422."""
    resource = ctx.resource
    if not isinstance(obj, dict):
        message = f"json: cannot unmarshal {go_types.json_name(obj)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {message}")
    kind, version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if (kind, version) != (resource.kind, resource.api_version):
        shown = version if "/" in version else f"/{version}"
        raise status.bad_request(f"invalid object type: {shown}, Kind={kind}")
    meta = obj.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")
    if not isinstance(meta, dict):
        obj["metadata"] = {}
    # Null for a label or a list is a claim to it; null for a name or a version is ignored.
    meta = obj["metadata"]
    obj["metadata"] = {name: value for name, value in meta.items() if value is not None or name in _CLAIMABLE}
    return obj


def merged(ctx: RequestContext, obj: Obj) -> Obj:
    """A built-in object after an apply. Raises StatusError 500 when its type cannot hold it."""
    resource = ctx.resource
    if resource.custom:
        return obj
    if why := _mistyped(resource, obj):
        version = resource.api_version if resource.group else f"/{resource.version}"
        known = f"{version}, Kind={resource.kind}"
        subject = f"{obj['metadata'].get('namespace', '')}/{ctx.name}; {known}"
        message = f"failed to convert new object ({subject}) to proper version"
        raise status.unspecified_error(f"{message}: unable to convert unstructured object to {known}: {why}")
    return dict(go_types.settled(resource.schema.root, obj))


def type_causes(resource: Resource, obj: Obj) -> list[Cause]:
    """Violations in apiVersion and kind of a custom resource."""
    causes = []
    if obj["apiVersion"] != resource.api_version:
        causes.append(invalid("apiVersion", obj["apiVersion"], f"must be {resource.api_version}"))
    if obj["kind"] != resource.kind:
        causes.append(invalid("kind", obj["kind"], f"must be {resource.kind}"))
    return causes


def unrecognized(resource: Resource, why: str, obj: Any) -> status.StatusError:
    """400: the body is no object of any kind."""
    text = _text(obj)
    shown = text[:_SHOWN] + (" ..." if len(text) > _SHOWN else "") if text.startswith("{") else text.encode().hex()
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {why} ({shown or '<empty>'})"
    )


def refused_patch(resource: Resource, obj: Any, why: str) -> Cause:
    """Why a patched object cannot be decoded. The content of a Secret is not repeated."""
    secret = not resource.group and resource.kind == "Secret"
    return invalid("patch", "<secret contents redacted>" if secret else _sorted(obj), why)


def _check_custom(resource: Resource, obj: Obj, kind: str, version: str) -> None:
    if not kind:
        raise unrecognized(resource, f"Object 'Kind' is missing in '{_text(obj)}'", obj)
    if version != resource.api_version:
        message = f"({version}) does not match the expected API version ({resource.api_version})"
        raise status.bad_request(f"the API version in the data {message}")


def _cannot_be_handled(resource: Resource, why: str, kind: str = "", version: str = "") -> status.StatusError:
    subject = f'{kind or resource.kind} in version "{version or resource.version}"'
    return status.bad_request(f"{subject} cannot be handled as a {resource.kind}: {why}")


def strict(resource: Resource, found: list[str]) -> status.StatusError:
    """400: fields that are unknown or given twice, with fieldValidation=Strict."""
    return _cannot_be_handled(resource, f"strict decoding error: {', '.join(found)}")


def _unregistered(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'


def _not_an_object(obj: Any) -> str:
    target = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    return f"json: cannot unmarshal {go_types.json_name(obj)} into Go value of type {target}"


def _mistyped(resource: Resource, obj: Obj) -> str:
    if resource.custom:
        return go_types.refused(object_meta.NODE, obj.get("metadata"), "ObjectMeta", whole=False)
    root = resource.schema.root
    whole = Node(type="object", fields={**root.fields, "metadata": object_meta.NODE})
    return go_types.refused(whole, obj, resource.kind)


def _named(resource: Resource, obj: Obj) -> Obj:
    obj.setdefault("apiVersion", resource.api_version)
    obj.setdefault("kind", resource.kind)
    if not resource.custom:
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        obj = go_types.settled(resource.schema.root, obj)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    metadata.drop_empty(obj["metadata"])
    return obj


def _text(obj: Any) -> str:
    return msgspec.json.encode(obj).decode()


def _sorted(obj: Any) -> str:
    return msgspec.json.encode(obj, order="sorted").decode()
