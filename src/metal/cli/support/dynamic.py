"""A dynamic client: requests for objects of any kind, as plain JSON without a struct."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from metal.kube.client import wire
from metal.kube.client.errors import from_status
from metal.kube.client.http import HTTPClient

Obj = dict[str, Any]
MANAGER = "metalctl"
"""Field manager of the fields that metalctl writes."""
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
_PAGE = 500


async def get(http: HTTPClient, kind: Any, name: str, namespace: str, *, table: bool = False) -> Obj:
    """Return one object, or a table with its row."""
    path = wire.object_path(kind, name, namespace)
    return _decoded(await http.call("GET", path, accept=_TABLE if table else "application/json"))


async def listed(
    http: HTTPClient, kind: Any, namespace: str, *, labels: str = "", fields: str = "", table: bool = False
) -> Obj:
    """Return the list of all objects, or a table of them; of all namespaces if none is given."""
    query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(_PAGE)}
    accept = _TABLE if table else "application/json"
    path, members = wire.collection_path(kind, namespace), "rows" if table else "items"
    whole = page = _decoded(await http.call("GET", path, query=query, accept=accept))
    whole[members] = list(whole.get(members) or ())
    while mark := page["metadata"].get("continue"):
        page = _decoded(await http.call("GET", path, query={**query, "continue": mark}, accept=accept))
        whole[members] += page.get(members) or ()
    return whole


async def watched(
    http: HTTPClient,
    kind: Any,
    namespace: str,
    version: str,
    *,
    labels: str = "",
    fields: str = "",
    table: bool = False,
) -> AsyncGenerator[Obj, None]:
    """Yield the watch events after a resourceVersion until the API server ends the watch. Raises ApiError."""
    query = {"watch": "true", "resourceVersion": version, "labelSelector": labels, "fieldSelector": fields}
    path = wire.collection_path(kind, namespace)
    async with aclosing(http.lines(path, query, accept=_TABLE if table else "application/json")) as lines:
        async for line in lines:
            event = _decoded(line)
            if event["type"] == "ERROR":
                raise from_status(event["object"])
            yield event


async def create(http: HTTPClient, kind: Any, obj: Obj) -> Obj:
    """Create an object. Raises AlreadyExists, Invalid and other ApiErrors."""
    path = wire.within(kind, obj["metadata"].get("namespace", ""))
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
    return _decoded(await http.call("POST", path, query=query, body=wire.typed(kind, obj)))


async def merge(
    http: HTTPClient, kind: Any, name: str, namespace: str, patch: Mapping[str, Any], *, status: bool = False
) -> Obj:
    """Send a JSON merge patch of the object or of its status."""
    path = wire.object_path(kind, name, namespace) + ("/status" if status else "")
    answer = await http.call(
        "PATCH", path, query={"fieldManager": MANAGER}, body=patch, content_type="application/merge-patch+json"
    )
    return _decoded(answer)


async def apply(http: HTTPClient, kind: Any, obj: Obj, *, force: bool = False, dry_run: bool = False) -> Obj:
    """Server-side apply; unknown fields are rejected. Raises Conflict, which names the owners of the fields."""
    path = wire.object_path(kind, obj["metadata"].get("name", ""), obj["metadata"].get("namespace", ""))
    query = {
        "fieldManager": MANAGER,
        "fieldValidation": "Strict",
        "force": "true" if force else "false",
        "dryRun": "All" if dry_run else "",
    }
    answer = await http.call(
        "PATCH", path, query=query, body=wire.typed(kind, obj), content_type="application/apply-patch+yaml"
    )
    return _decoded(answer)


async def delete(http: HTTPClient, kind: Any, name: str, namespace: str, *, uid: str = "") -> None:
    """Delete an object and, in the background, the objects that it owns. uid is an optional precondition."""
    options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    if uid:
        options["preconditions"] = {"uid": uid}
    await http.call("DELETE", wire.object_path(kind, name, namespace), body=options)


def _decoded(body: bytes) -> Obj:
    decoded: Obj = msgspec.json.decode(body)
    return decoded
