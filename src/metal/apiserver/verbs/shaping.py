"""Pure functions from the body of a request to the stored object."""

from typing import Any

import structlog

from metal.apiserver.machinery import metadata, status
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.machinery.resources import RequestContext, Resource
from metal.apiserver.patching import patch
from metal.apiserver.schema import go_types
from metal.apiserver.verbs import decoding

Obj = dict[str, Any]

log = structlog.get_logger("metal.apiserver")

_VERSION_NEEDED = Cause(
    "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"
)


def body(ctx: RequestContext, obj: Any) -> Obj:
    """The object of a create or an update. Raises StatusError 400."""
    return decoding.posted(ctx, obj)


def at_version(resource: Resource, obj: Obj) -> Obj:
    """A stored object in this version of the resource (conversion strategy None: only the apiVersion differs)."""
    if resource.show is not None and obj.get("apiVersion") != resource.api_version:
        return resource.show(obj)
    obj["apiVersion"] = resource.api_version
    return obj


def stored(resource: Resource, obj: Obj) -> Obj:
    """An object of this version in its stored form."""
    if resource.keep is not None:
        obj = resource.keep(obj)
    obj["apiVersion"] = resource.storage_api_version
    return obj


def changed(ctx: RequestContext, current: Obj, kind: PatchType, change: Any) -> Any:
    """The object after a patch, before validation. Raises StatusError 400, 413, 422 or 500."""
    if kind is PatchType.JSON:
        return _json_patched(current, change)
    if not isinstance(change, dict):
        message = f"json: cannot unmarshal {go_types.json_name(change)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(message if kind is PatchType.STRATEGIC else f"error decoding patch: {message}")
    if kind is PatchType.MERGE:
        return patch.json_merge(current, change)
    try:
        return patch.strategic_merge(current, change, ctx.resource.kind)
    except patch.FormatError as refused:
        raise status.bad_request(str(refused)) from refused
    except patch.PatchError as refused:
        raise status.unspecified_error(str(refused)) from refused


def _json_patched(current: Obj, change: Any) -> Any:
    wrong = change if not isinstance(change, list) else next((op for op in change if not isinstance(op, dict)), None)
    if wrong is not None:
        target = "handlers.jsonPatchOp" if isinstance(change, list) else "[]handlers.jsonPatchOp"
        message = f"json: cannot unmarshal {go_types.json_name(wrong)} into Go value of type {target}"
        raise status.bad_request(f"error decoding patch: {message}")
    if len(change or ()) > patch.MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {patch.MAX_OPERATIONS}, got {len(change)}"
        raise status.too_large(message)
    try:
        return patch.json_patch(current, change or [])
    except patch.PatchError as refused:
        # kube-apiserver does not report the reason; it is in the log.
        log.info("patch.rejected", why=str(refused))
        raise status.rejected() from refused


def check_version(ctx: RequestContext, meta: Obj, stored: Obj) -> None:
    """Raises StatusError when the resourceVersion is required and missing (422), or another one (409)."""
    check_number(meta)
    version = meta.get("resourceVersion", "").lstrip("0")
    if not version and not ctx.resource.strategy.unconditional:
        resource = ctx.resource
        raise status.invalid(status.Who(resource.group, kind=resource.plural, name=ctx.name), [_VERSION_NEEDED])
    if version and version != stored.get("resourceVersion", ""):
        raise status.conflict(ctx.who, status.MODIFIED)


def check_number(meta: Obj) -> None:
    """Raises StatusError 500 when the resourceVersion of a body is malformed."""
    version = meta.get("resourceVersion", "")
    if version and not (version.isascii() and version.isdigit()):
        raise status.unspecified_error(f'strconv.ParseUint: parsing "{version}": invalid syntax')


def check_uid(ctx: RequestContext, meta: Obj, stored: Obj) -> None:
    """Raises StatusError 409 when the body of an update is about a deleted object."""
    uid = meta.get("uid")
    if uid and uid != stored["uid"]:
        parts = (ctx.resource.group if ctx.resource.custom else "", ctx.resource.plural, ctx.namespace, ctx.name)
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored['uid']}"
        key = "/".join(("/registry", *filter(None, parts)))
        stale = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {message}"
        raise status.conflict(ctx.who, stale)


def with_other_half(ctx: RequestContext, obj: Obj, old: Obj, *, applied: bool) -> Obj:
    """The new object, with what this endpoint may not change from the old: status, or everything except status.

    applied: managedFields are already computed. Otherwise a client may set or reset ([{}]) them.
    """
    managed = obj["metadata"].get("managedFields")
    if not applied and (ctx.subresource or not managed):
        managed = old["metadata"].get("managedFields")
    if ctx.subresource == "status":
        wanted, nothing = obj.get("status"), applied and "status" in obj
        obj = {**old, "metadata": dict(old["metadata"])}
        _put(obj, "status", wanted)
        if nothing and wanted is None:
            # Validation reports what an apply has emptied.
            obj["status"] = None
    else:
        metadata.copy_server_fields(obj["metadata"], old["metadata"])
        if ctx.resource.status:
            _put(obj, "status", old.get("status"))
    _put(obj["metadata"], "managedFields", managed)
    return obj


def check_type(resource: Resource, obj: Obj) -> None:
    """Raises StatusError 422 when a custom object has another kind or version."""
    if resource.custom and (causes := decoding.type_causes(resource, obj)):
        group = obj["apiVersion"].rpartition("/")[0]
        raise status.invalid(status.Who(group, kind=obj["kind"], name=obj["metadata"].get("name", "")), causes)


def claimed(ctx: RequestContext, obj: Obj, old: Obj) -> Obj | None:
    """Changed metadata in a write to a subresource; None without changes.

    It is not stored, but the writer becomes its owner, as on kube-apiserver.
    """
    if not ctx.subresource:
        return None
    meta = dict(obj["metadata"])
    metadata.copy_server_fields(meta, old["metadata"])
    meta = {key: value for key, value in meta.items() if key != "managedFields"}
    stored = {key: value for key, value in old["metadata"].items() if key != "managedFields"}
    return None if meta == stored else meta


def with_managed(obj: Obj, entries: Any) -> Obj:
    """The object with these managedFields."""
    out = {**obj, "metadata": dict(obj["metadata"])}
    _put(out["metadata"], "managedFields", entries)
    return out


def of_part(ctx: RequestContext, causes: list[Cause]) -> list[Cause]:
    """Causes of a write to the status subresource: messages start at the status."""
    if ctx.subresource != "status":
        return causes
    return [
        cause._replace(message=cause.message.replace(f"{cause.field} in body", f"{cause.field[7:]} in body"))
        if cause.field.partition(".")[0] == "status"
        else cause
        for cause in causes
    ]


def _put(obj: Obj, name: str, value: Any) -> None:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = value


def shaped(resource: Resource, obj: Obj, old: Obj | None, *, applied: bool = False) -> Obj:
    """The object, prepared by the strategy of the resource, pruned and defaulted."""
    resource.strategy.prepare(obj, old)
    return resource.schema.default(resource.schema.prune(obj), applied=applied)


def intent_changed(resource: Resource, obj: Obj, old: Obj) -> bool:
    """Whether generation increases: anything but metadata, and status where it is a subresource, differs."""
    aside = {"metadata", "apiVersion", "kind", "status"} if resource.status else {"metadata", "apiVersion", "kind"}
    return any(obj.get(name) != old.get(name) for name in (obj.keys() | old.keys()) - aside)
