"""OpenAPI v3 of the API, as far as kubectl reads it: explain, field validation, dry run, patch strategies."""

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from metal.apiserver.openapi import meta_schemas as meta
from metal.apiserver.patching.strategic import merge_keys

Schema = dict[str, Any]

_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_JSON = "application/json"


class ResourceDoc(Protocol):
    """The properties of a resource that a document uses."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def openapi(self) -> Mapping[str, Any]: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def list_kind(self) -> str: ...
    @property
    def status(self) -> bool: ...
    @property
    def custom(self) -> bool: ...


def index(group_versions: Iterable[str], version_hash: Callable[[str], str]) -> dict[str, Any]:
    """The document at /openapi/v3: the URL of each group version. The hash makes it cacheable."""
    paths = {}
    for group_version in group_versions:
        path = path_of(group_version)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={version_hash(group_version)}"}
    return {"paths": paths}


def path_of(group_version: str) -> str:
    """`api/v1` for the core group, else `apis/group/version`."""
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def digest(document: Mapping[str, Any]) -> str:
    """A hash of a document, for `index` and for ETag."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha512(text.encode()).hexdigest().upper()


def document(group_version: str, resources: Sequence[ResourceDoc]) -> dict[str, Any]:
    """The OpenAPI v3 document of one group version."""
    schemas: Schema = dict(meta.COMPONENTS)
    paths: Schema = {}
    for resource in resources:
        schemas |= _components(resource)
        paths |= _paths(f"/{path_of(group_version)}", resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def component_name(resource: ResourceDoc) -> str:
    """The name of a kind's component, such as `io.ironcore.metal.v1alpha1.Server`."""
    if not resource.custom:
        group = resource.group.removesuffix(".k8s.io") or "core"
        return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"
    domain = ".".join(reversed(resource.group.split(".")))
    return f"{domain}.{resource.version}.{resource.kind}"


def _gvk(resource: ResourceDoc, kind: str = "") -> dict[str, str]:
    return {"group": resource.group, "kind": kind or resource.kind, "version": resource.version}


def _components(resource: ResourceDoc) -> Schema:
    name = component_name(resource)
    own = dict(resource.openapi) if resource.custom else _with_merge_keys(resource)
    properties = {
        **(own.get("properties") or {}),
        "apiVersion": meta.text(meta.API_VERSION),
        "kind": meta.text(meta.KIND),
        "metadata": meta.described(meta.OBJECT_META, "Names, times, labels and owners of the object."),
    }
    single = {**own, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": [_gvk(resource)]}
    many = {
        "type": "object",
        "description": f"{resource.list_kind} is a list of {resource.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": meta.text(meta.API_VERSION),
            "kind": meta.text(meta.KIND),
            "metadata": meta.described(meta.LIST_META, "Metadata of the list."),
            "items": {"type": "array", "items": meta.ref(name), "description": "The objects."},
        },
        "x-kubernetes-group-version-kind": [_gvk(resource, resource.list_kind)],
    }
    return {name: single, f"{name}List": many}


def _with_merge_keys(resource: ResourceDoc) -> Schema:
    """The schema with the merge keys of strategic merge patches, which kubectl reads."""
    schema = copy.deepcopy(dict(resource.openapi))
    for path, key in merge_keys(resource.kind).items():
        place: Schema | None = schema
        for name in path:
            place = ((place or {}).get("properties") or {}).get(name)
        if place is not None and place.get("type") == "array":
            place["x-kubernetes-patch-strategy"] = "merge"
            if key:
                place["x-kubernetes-patch-merge-key"] = key
    return schema


def _paths(prefix: str, resource: ResourceDoc) -> Schema:
    everywhere = f"{prefix}/{resource.plural}"
    base = f"{prefix}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    paths = {base: _collection(resource), f"{base}/{{name}}": _item(resource, "")}
    if resource.status:
        paths[f"{base}/{{name}}/status"] = _item(resource, "status")
    if resource.namespaced:
        paths[everywhere] = {"get": _operation(resource, "list", _LIST, answer=f"{component_name(resource)}List")}
    return paths


def _collection(resource: ResourceDoc) -> Schema:
    return {
        "get": _operation(resource, "list", _LIST, answer=f"{component_name(resource)}List"),
        "post": _operation(resource, "post", _WRITE, body=component_name(resource)),
        "delete": _operation(resource, "deletecollection", _LIST, body=meta.DELETE_OPTIONS, answer=meta.STATUS),
        "parameters": _path_parameters(resource, named=False),
    }


def _item(resource: ResourceDoc, subresource: str) -> Schema:
    own = component_name(resource)
    # kubectl apply sends a strategic merge patch to every resource that lists it.
    patches = _PATCHES if resource.custom else (*_PATCHES, _STRATEGIC)
    out = {
        "get": _operation(resource, "get", (_STATE,)),
        "put": _operation(resource, "put", _WRITE, body=own),
        "patch": _operation(resource, "patch", (*_WRITE, _FORCE), media=patches),
        "parameters": _path_parameters(resource, named=True),
    }
    if not subresource:
        out["delete"] = _operation(resource, "delete", _DELETE, body=meta.DELETE_OPTIONS, answer=meta.STATUS)
    return out


def _operation(
    resource: ResourceDoc,
    action: str,
    parameters: Sequence[Schema],
    *,
    body: str = "",
    answer: str = "",
    media: Sequence[str] = (),
) -> Schema:
    out: Schema = {
        "tags": ["_".join(filter(None, (resource.group.replace(".", "_"), resource.version)))],
        "parameters": list(parameters),
        "responses": {
            "200": {
                "description": "OK",
                "content": {_JSON: {"schema": meta.ref(answer or component_name(resource))}},
            }
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        out["requestBody"] = {"content": {_JSON: {"schema": meta.ref(body)}}}
    elif media:
        out["requestBody"] = {"content": {name: {"schema": {"type": "object"}} for name in media}, "required": True}
    return out


def _path_parameters(resource: ResourceDoc, *, named: bool) -> list[Schema]:
    names = (["name"] if named else []) + (["namespace"] if resource.namespaced else [])
    found: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in names
    ]
    return [*found, _query("pretty", "Whether the response is indented.")]


def _query(name: str, description: str, kind: str = "string") -> Schema:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": True},
    }


_DRY_RUN = _query("dryRun", "All: do everything but store.")
_WRITE = (
    _DRY_RUN,
    _query("fieldManager", "Name of the field manager, for managedFields."),
    _query("fieldValidation", "Handling of unknown or duplicate fields: Ignore, Warn or Strict."),
)
_FORCE = _query("force", "Apply only: take ownership of fields from other managers.", "boolean")
_STATE = _query("resourceVersion", "Minimum version of the response; the version from which a watch starts.")
_LIST = (
    _query("labelSelector", "Only objects whose labels match."),
    _query("fieldSelector", "Only objects whose fields match."),
    _query("limit", "Maximum number of objects in a page.", "integer"),
    _query("continue", "Continue token of the previous page."),
    _STATE,
    _query("resourceVersionMatch", "Interpretation of resourceVersion: Exact or NotOlderThan."),
    _query("timeoutSeconds", "Timeout of a list or watch.", "integer"),
    _query("watch", "Streams changes in place of one response.", "boolean"),
    _query("allowWatchBookmarks", "Whether a watch may send bookmarks.", "boolean"),
    _query("sendInitialEvents", "Whether a watch starts with the existing objects.", "boolean"),
)
_DELETE = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "Seconds to wait before the object is removed.", "integer"),
    _query("propagationPolicy", "Garbage collection of dependents: Orphan, Background or Foreground."),
)
