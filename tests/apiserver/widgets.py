"""A made-up kind, its CRD, and a running backend to try it on."""

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from metal.api.meta import Kind, Model, ObjectMeta
from metal.apiserver.backend import Backend
from metal.apiserver.machinery.options import DeleteOptions, ListOptions, PatchType, WatchOptions, WriteOptions
from metal.apiserver.machinery.records import Record
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.results import WatchItem
from metal.apiserver.machinery.users import User
from metal.apiserver.storage.journal import Journal
from metal.kube.meta.clock import LoopClock

Obj = dict[str, Any]

START = datetime(2030, 1, 1, tzinfo=UTC)
ALICE = User("alice", groups=("system:masters",))


class WidgetSpec(Model, frozen=True, kw_only=True):
    """What is wanted of a widget."""

    size: int = 0
    note: str = ""


class WidgetStatus(Model, frozen=True, kw_only=True):
    """What became of it."""

    phase: str = ""


class Widget(Model, frozen=True, kw_only=True):
    """A widget as clients see it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


WIDGET = Kind("example.org", "v1", "Widget", "widgets", Widget)
GADGET = Kind("example.org", "v1", "Gadget", "gadgets", Widget, namespaced=False)

SPEC: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0, "description": "How big it is, in metres."},
                "note": {"type": "string", "default": "plain"},
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


def crd(kind: str = "Widget", *, scope: str = "Namespaced", status: bool = True, short: str = "wd") -> Obj:
    """A CRD of group example.org."""
    plural = f"{kind.lower()}s"
    version: Obj = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SPEC},
        "selectableFields": [{"jsonPath": ".spec.note"}],
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        ],
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "shortNames": [short]},
            "versions": [version],
        },
    }


def widget(name: str = "a", **spec: Any) -> Obj:
    """A new widget."""
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


class Api:
    """Short ways to ask a backend, with plain objects in and out."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.warnings: list[str] = []

    def ctx(
        self, name: str = "", plural: str = "widgets", namespace: str = "default", sub: str = "", **options: Any
    ) -> RequestContext:
        """A request about a resource, by its plural."""
        resource = next(r for r in self.backend.registry if r.plural == plural)
        chosen = WriteOptions(**{"manager": "test", **options})
        space = namespace if resource.namespaced else ""
        return RequestContext(ALICE, resource, space, name, sub, chosen, self.warnings)

    async def create(self, obj: Obj, plural: str = "widgets", namespace: str = "default", **options: Any) -> Obj:
        return (await self.backend.create(self.ctx("", plural, namespace, **options), obj)).decode()

    async def get(self, name: str, plural: str = "widgets", namespace: str = "default") -> Obj:
        return (await self.backend.get(self.ctx(name, plural, namespace))).decode()

    async def update(self, obj: Obj, plural: str = "widgets", namespace: str = "default", sub: str = "") -> Obj:
        ctx = self.ctx(obj["metadata"]["name"], plural, namespace, sub)
        return (await self.backend.update(ctx, obj)).decode()

    async def patch(
        self, name: str, body: Any, plural: str = "widgets", kind: PatchType = PatchType.MERGE, **more: Any
    ) -> Obj:
        return (await self.backend.patch(self.ctx(name, plural, **more), kind, body)).decode()

    async def apply(self, obj: Obj, plural: str = "widgets", **more: Any) -> Obj:
        ctx = self.ctx(obj["metadata"]["name"], plural, **more)
        return (await self.backend.apply(ctx, obj)).decode()

    async def delete(self, name: str, plural: str = "widgets", namespace: str = "default", **options: Any) -> bool:
        """True when the object is gone at once."""
        ctx = self.ctx(name, plural, namespace)
        return (await self.backend.delete(ctx, DeleteOptions(**options))).gone

    async def names(self, plural: str = "widgets", namespace: str = "", **options: Any) -> list[str]:
        listing = await self.backend.list(self.ctx("", plural, namespace), ListOptions(**options))
        return [record.key.name for record in listing.records]

    def watch(self, plural: str = "widgets", namespace: str = "", **options: Any) -> AsyncGenerator[WatchItem, None]:
        return self.backend.watch(self.ctx("", plural, namespace), WatchOptions(**options))


def seen(item: WatchItem) -> tuple[str, str]:
    """Type and name of a watch event."""
    record: Record | None = item.record
    return item.type.value, "" if record is None else record.key.name


@asynccontextmanager
async def running(
    journal: Journal | None = None, *, seed: int = 1, history: int = 5_000, crds: bool = True
) -> AsyncIterator[Api]:
    """A backend that serves widgets (namespaced) and gadgets (not)."""
    backend = Backend(LoopClock(START), journal=journal, rng=random.Random(seed), history=history)
    await backend.start()
    try:
        if crds:
            await backend.install_crds([crd(), crd("Gadget", scope="Cluster", status=False, short="gd")])
        yield Api(backend)
    finally:
        await backend.stop()
