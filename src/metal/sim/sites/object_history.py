"""Records every version of the API's objects in a fleet's history."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, cast

from metal.api.core import CONFIG_MAP, EVENT
from metal.api.kinds import Kinds
from metal.kube.client.errors import ApiError, Expired
from metal.kube.client.protocol import Client, EventType, WatchEvent
from metal.kube.meta.objects import Kind, Object
from metal.sim.history import History

_REWATCH = 0.05
"""Seconds until a watch that the API has closed is opened again."""
_PAUSE = 1.0
"""Seconds until a failed request is repeated."""


def watched(kinds: Kinds) -> tuple[Kind[Any], ...]:
    """The kinds that invariants check: all kinds of the operator except BMCSecrets, plus Events and ConfigMaps."""
    return (
        kinds.server, kinds.claim, kinds.boot_config, kinds.maintenance, kinds.readiness_rule, kinds.endpoint,
        kinds.bmc, kinds.ipxe, kinds.evidence, EVENT, CONFIG_MAP,
    )  # fmt: skip


class ObjectHistory:
    """Watches kinds. `start` returns when all existing objects are recorded; call `stop` at the end."""

    def __init__(self, client: Client, history: History, kinds: Iterable[Kind[Any]]) -> None:
        self._client, self._history, self._kinds = client, history, tuple(kinds)
        self._known: dict[str, dict[tuple[str, str], str]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<ObjectHistory {' '.join(kind.kind for kind in self._kinds)}>"

    async def start(self) -> None:
        """Record all existing objects and start watches. Raises ApiError."""
        for kind in self._kinds:
            version = await self._list(kind)
            self._tasks.append(asyncio.create_task(self._follow(kind, version), name=f"history of {kind.plural}"))

    async def stop(self) -> None:
        """Stop watching. Raises the exception that ended a watch, if any."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _list(self, kind: Kind[Any]) -> str:
        page = await self._client.list(kind)
        before = self._known.get(kind.kind, {})
        present = {_key(obj) for obj in page.items}
        for gone in before.keys() - present:
            self._history.changed(kind.kind, *gone, None)
        self._known[kind.kind] = {key: version for key, version in before.items() if key in present}
        for obj in page.items:
            self._keep(kind, obj)
        return page.resource_version

    async def _follow(self, kind: Kind[Any], version: str) -> None:
        while True:
            try:
                stream = self._client.watch(kind, resource_version=version)
                async with aclosing(cast("AsyncGenerator[WatchEvent[Any], None]", stream)) as events:
                    async for event in events:
                        version = event.resource_version or version
                        self._note(kind, event)
                await asyncio.sleep(_REWATCH)
            except Expired:
                version = await self._list(kind)
            except ApiError:
                await asyncio.sleep(_PAUSE)

    def _note(self, kind: Kind[Any], event: WatchEvent[Any]) -> None:
        if event.object is None:
            return
        if event.type is EventType.DELETED:
            self._known[kind.kind].pop(_key(event.object), None)
            self._history.changed(kind.kind, *_key(event.object), None)
        else:
            self._keep(kind, event.object)

    def _keep(self, kind: Kind[Any], obj: Object) -> None:
        known = self._known.setdefault(kind.kind, {})
        if known.get(_key(obj)) != obj.metadata.resource_version:
            known[_key(obj)] = obj.metadata.resource_version
            self._history.changed(kind.kind, *_key(obj), obj)


def _key(obj: Object) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name
