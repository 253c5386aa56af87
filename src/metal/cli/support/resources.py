"""The kinds that the API server has, from API discovery, and the names by which a user refers to them."""

import asyncio
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from metal.cli.support.exits import Missing
from metal.kube.client.http import HTTPClient
from metal.kube.client.resources import Resource

_ACCEPT = ", ".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


async def api_resources(http: HTTPClient) -> tuple[Resource, ...]:
    """Return every kind that can be read, the core group first. Raises ApiError, and Missing for an outdated API
    server."""
    documents = await asyncio.gather(*(http.call("GET", path, accept=_ACCEPT) for path in ("/api", "/apis")))
    return tuple(resource for document in documents for resource in _read(msgspec.json.decode(document)))


def _read(document: dict[str, Any]) -> Iterable[Resource]:
    if document.get("kind") != "APIGroupDiscoveryList":
        raise Missing("the API server has no aggregated API discovery: it is older than Kubernetes 1.27")
    for group in document.get("items") or ():
        version = group["versions"][0]  # the preferred one
        for entry in version.get("resources") or ():
            if "get" in entry.get("verbs", ()) or "list" in entry.get("verbs", ()):
                yield _resource(group["metadata"].get("name", ""), version["version"], entry)


def _resource(group: str, version: str, entry: dict[str, Any]) -> Resource:
    kind = (entry.get("responseKind") or {}).get("kind", "")
    return Resource(
        group, version, kind, entry["resource"], entry.get("singularResource") or kind.lower(),
        entry.get("scope") == "Namespaced", tuple(entry.get("shortNames") or ()),
        tuple(entry.get("categories") or ()), tuple(entry.get("verbs") or ()),
    )  # fmt: skip


def find(known: Sequence[Resource], word: str) -> list[Resource]:
    """Return the kind that `word` names, or all kinds of a category. Raises Missing with suggestions."""
    wanted = word.lower()
    for resource in known:
        if resource.answers_to(wanted):
            return [resource]
    listed = [resource for resource in known if wanted in resource.categories]
    if listed:
        return listed
    near = get_close_matches(wanted, sorted({resource.plural for resource in known}), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "list the custom kinds with `metalctl get crd`"
    raise Missing(f"the API server has no kind {word!r}; {hint}")


def of_object(known: Sequence[Resource], api_version: str, kind: str) -> Resource:
    """Return the kind of an object in a manifest. Raises Missing."""
    for resource in known:
        if (resource.api_version, resource.kind) == (api_version, kind):
            return resource
    raise Missing(
        f"the API server has no kind {kind} in {api_version}: correct apiVersion and kind, or install its CRD"
    )
