"""What a case holds in its hands: an API, a namespace of its own, and short ways to ask."""

import copy
import secrets
from typing import Any

from metal.kube.client.protocol import Client
from tests.conformance.ways import APPLY, MERGE, Obj, Reply, Watch, Way

GROUP = "conformance.example.org"
WIDGETS = f"/apis/{GROUP}/v1"


class Api:
    """One API through one way. `space` is a namespace that only this case uses; `suffix` makes other names unique."""

    def __init__(self, way: Way, *, may_differ: bool) -> None:
        self.way, self._may_differ = way, may_differ
        self.suffix = secrets.token_hex(4)
        self.space = f"case-{self.suffix}"

    @property
    def is_kube(self) -> bool:
        """Whether this is kube-apiserver; only for cases that carry the marker `differs`."""
        assert self._may_differ, 'a case that asks this needs @pytest.mark.differs("why")'
        return self.way.name == "kube"

    @property
    def client(self) -> Client:
        """The typed client."""
        return self.way.client()

    def acting(self, user: str, *groups: str) -> "Api":
        """The same API, asked as another user."""
        other = copy.copy(self)
        other.way = self.way.acting(user, groups)
        return other

    def path(self, plural: str = "widgets", name: str = "", sub: str = "", *, base: str = WIDGETS) -> str:
        """Path of a namespaced resource in this case's namespace."""
        return "/".join(part for part in (f"{base}/namespaces/{self.space}/{plural}", name, sub) if part)

    async def get(self, path: str, **query: str) -> Reply:
        return await self.way.request("GET", path, query=query)

    async def create(self, path: str, obj: Any, **query: str) -> Reply:
        return await self.way.request("POST", path, obj, query=query)

    async def update(self, path: str, obj: Any, **query: str) -> Reply:
        return await self.way.request("PUT", path, obj, query=query)

    async def patch(self, path: str, patch: Any, kind: str = MERGE, **query: str) -> Reply:
        return await self.way.request("PATCH", path, patch, query=query, content=kind)

    async def apply(self, path: str, obj: Obj, manager: str, *, force: bool = False, **query: str) -> Reply:
        """Server-side apply. path names the object."""
        options = {"fieldManager": manager, "force": "true" if force else "false", **query}
        return await self.way.request("PATCH", path, obj, query=options, content=APPLY)

    async def delete(self, path: str, options: Obj | None = None, **query: str) -> Reply:
        return await self.way.request("DELETE", path, options, query=query)

    def watch(self, path: str, **query: str) -> Any:
        """`async with api.watch(path, resourceVersion=...) as watch: event = await watch.next()`."""
        return self.way.watch(path, query)


def widget(name: str = "a", **spec: Any) -> Obj:
    """A new widget."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def config_map(name: str = "a", **data: str) -> Obj:
    """A new ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition(kind: str = "Widget", *, group: str = GROUP, spec: Obj | None = None, **version: Any) -> Obj:
    """A CRD with one version, v1, and a status subresource. spec: schema of .spec; version: more of the version."""
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "properties": {
            "spec": spec or WIDGET_SPEC,
            "status": {
                "type": "object",
                "properties": {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}},
            },
        },
    }
    served: Obj = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


WIDGET_SPEC: Obj = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "description": "How big it is, in metres."},
        "note": {"type": "string", "default": "plain"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            },
        },
        "atomic": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
"""What the widgets of most cases may say."""

__all__ = ["GROUP", "WIDGETS", "Api", "Obj", "Reply", "Watch", "config_map", "definition", "widget"]
