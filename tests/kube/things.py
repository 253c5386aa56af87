"""A made-up kind for the tests."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from metal.api.meta import Condition, Kind, Model, ObjectMeta


class ThingSpec(Model, frozen=True, kw_only=True):
    size: int = 0
    text: str = ""


class ThingStatus(Model, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Thing(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ThingSpec = ThingSpec()
    status: ThingStatus = ThingStatus()


class CoreEvent(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    involved_object: Mapping[str, str] = {}
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None


THING = Kind(group="test.example", version="v1", kind="Thing", plural="things", struct=Thing)
WORLD = Kind(group="test.example", version="v1", kind="World", plural="worlds", struct=Thing, namespaced=False)
EVENT = Kind(group="", version="v1", kind="Event", plural="events", struct=CoreEvent)


def thing(name: str, *, namespace: str = "ns", size: int = 0, version: str = "", **metadata: Any) -> Thing:
    """A Thing as an API would return it."""
    meta = {"name": name, "namespace": namespace, "resourceVersion": version, **metadata}
    return msgspec.convert({"metadata": meta, "spec": {"size": size}}, Thing)


def body(name: str, *, namespace: str = "ns", size: int = 0, **metadata: Any) -> dict[str, Any]:
    """The JSON to create a Thing with."""
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": {"size": size}}
