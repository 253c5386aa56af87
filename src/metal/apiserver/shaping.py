"""Pure steps on the way from a request's body to a stored object."""

from typing import Any

from metal.apiserver import metadata, patch, status
from metal.apiserver.requests import PatchType, RequestContext
from metal.apiserver.resources import Resource

Obj = dict[str, Any]


def body(ctx: RequestContext, obj: Any) -> Obj:
    """The object of a request, its type checked or filled in. Raises StatusError 400."""
    if not isinstance(obj, dict):
        raise status.bad_request("the request body is not an object")
    resource = ctx.resource
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not kind and resource.custom:
        raise status.bad_request("Object 'Kind' is missing: set kind and apiVersion")
    if kind and kind != resource.kind:
        told = f"the object provided is unrecognized (must be of type {resource.kind}): got kind {kind!r}"
        raise status.bad_request(told)
    if version and version != resource.api_version:
        told = (
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
        raise status.bad_request(told)
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    metadata.check_shape(obj["metadata"])
    return obj


def at_version(resource: Resource, obj: Obj) -> Obj:
    """A stored object as this version of the resource shows it (conversion strategy None: the apiVersion differs)."""
    if resource.show is not None and obj.get("apiVersion") != resource.api_version:
        return resource.show(obj)
    obj["apiVersion"] = resource.api_version
    return obj


def stored(resource: Resource, obj: Obj) -> Obj:
    """An object of this version as it is stored."""
    if resource.keep is not None:
        obj = resource.keep(obj)
    obj["apiVersion"] = resource.storage_api_version
    return obj


def patched(ctx: RequestContext, current: Obj, kind: PatchType, change: Any) -> Any:
    """The object after a patch. Raises StatusError 400, 415 or 422."""
    try:
        if kind is PatchType.JSON:
            changed = patch.json_patch(current, change)
        elif kind is PatchType.MERGE:
            changed = patch.json_merge(current, change)
        else:
            changed = patch.strategic_merge(current, change, ctx.resource.kind)
    except patch.PatchError as refused:
        raise status.StatusError(422, "Invalid", f"the server rejected our request: {refused}") from refused
    return changed


def check_identity(ctx: RequestContext, meta: Obj, stored: Obj) -> None:
    """Raises StatusError when a body speaks of another object (400) or of another version of it (409)."""
    if meta.setdefault("name", ctx.name) != ctx.name:
        told = f"the name of the object ({meta['name']}) does not match the name on the URL ({ctx.name})"
        raise status.bad_request(told)
    if meta.get("uid") and meta["uid"] != stored.get("uid", ""):
        told = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {stored.get('uid', '')}"
        raise status.conflict(ctx.who, told)
    if meta.get("resourceVersion") and meta["resourceVersion"] != stored.get("resourceVersion", ""):
        raise status.conflict(ctx.who, status.MODIFIED)


def with_other_half(ctx: RequestContext, obj: Obj, old: Obj, *, applied: bool) -> Obj:
    """The new object with what this endpoint may not change taken from the old: status, or everything but status.

    applied: managedFields were computed already and stand. Else a client may still hand over or reset ([{}]) them.
    """
    managed = obj["metadata"].get("managedFields")
    if not applied and (ctx.subresource or not managed):
        managed = old["metadata"].get("managedFields")
    if ctx.subresource == "status":
        wanted = obj.get("status")
        obj = {**old, "metadata": dict(old["metadata"])}
        _put(obj, "status", wanted)
    else:
        metadata.carry(obj["metadata"], old["metadata"])
        if ctx.resource.status:
            _put(obj, "status", old.get("status"))
    _put(obj["metadata"], "managedFields", managed)
    return obj


def _put(obj: Obj, name: str, value: Any) -> None:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = value


def shaped(resource: Resource, obj: Obj, old: Obj | None) -> Obj:
    """Adjusted by the resource's strategy, pruned and defaulted."""
    resource.strategy.prepare(obj, old)
    return resource.schema.default(resource.schema.prune(obj))


def intent_changed(resource: Resource, obj: Obj, old: Obj) -> bool:
    """Whether anything but metadata, and status where it is a subresource, differs: what generation counts."""
    aside = {"metadata", "apiVersion", "kind", "status"} if resource.status else {"metadata", "apiVersion", "kind"}
    return any(obj.get(name) != old.get(name) for name in (obj.keys() | old.keys()) - aside)
