"""Writes every version of custom objects into a history as etcd stored it, also while kube-apiserver is dead."""

import asyncio
import base64
import json
from collections.abc import Iterable
from typing import Any

import aiohttp
import msgspec

from metal.kube.client.wire import Codec
from metal.kube.meta.objects import Kind
from metal.sim.history import History

_MOST = 1 << 26
"""Bytes of one line: an answer carries as many events as there are."""


class EtcdHistory:
    """Follows custom kinds in etcd, whose watch misses nothing. `start` before the first object, `stop` in the end."""

    def __init__(self, url: str, history: History, kinds: Iterable[Kind[Any]]) -> None:
        self._url, self._history = url, history
        self._kinds = {(kind.group, kind.plural): kind for kind in kinds}
        self._tasks: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Returns when all watches are established."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), read_bufsize=_MOST)
        for group in sorted({group for group, _ in self._kinds}):
            ready = asyncio.Event()
            self._tasks.append(asyncio.create_task(self._follow(f"/registry/{group}/", ready), name=f"etcd {group}"))
            await asyncio.wait_for(ready.wait(), 10)

    async def stop(self) -> None:
        """Stop watching. Raises what ended a watch before its time."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _follow(self, prefix: str, ready: asyncio.Event) -> None:
        assert self._session is not None
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        asked = {"create_request": {"key": _encoded(prefix), "range_end": _encoded(end)}}
        async with self._session.post(f"{self._url}/v3/watch", json=asked) as answer:
            async for line in answer.content:
                result = json.loads(line)["result"]
                assert not result.get("canceled"), result
                ready.set()
                for event in result.get("events", ()):
                    self._note(event)
        raise AssertionError("etcd ended the watch")

    def _note(self, event: dict[str, Any]) -> None:
        _, _, group, plural, *namespace, name = base64.b64decode(event["kv"]["key"]).decode().split("/")
        kind = self._kinds.get((group, plural))
        if kind is None:
            return
        obj = None
        if event.get("type") != "DELETE":
            stored = json.loads(base64.b64decode(event["kv"]["value"]))
            stored["metadata"]["resourceVersion"] = event["kv"]["mod_revision"]
            obj = Codec(kind).object(msgspec.json.encode(stored))
        self._history.changed(kind.kind, "".join(namespace), name, obj)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
