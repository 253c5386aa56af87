"""A pause of all managers of an API, so that objects can be moved.

Two ConfigMaps in the manager's namespace implement it. MARK exists while there is a pause, with its move and role. In
MANAGERS each manager writes a heartbeat every INTERVAL seconds, with the id of the pause for which it has stopped:
controllers are held, and writes of boot server and registry fail with TooManyRequests, which machines retry. A manager
that cannot reach the API for SILENCE seconds stops as well, because it might miss a pause; a move ignores a manager
only after HEARTBEAT_TIMEOUT seconds without a heartbeat, which is longer. A manager starts paused, and becomes active
after its first read found no pause.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

import metal
from metal.api.core import CONFIG_MAP
from metal.kube.client.errors import AlreadyExists, ApiError, NotFound, TooManyRequests
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import Clock
from metal.kube.meta.objects import Kind, Object
from metal.kube.meta.permissions import Permission, Where

_log = structlog.get_logger(__name__)
T = TypeVar("T", bound=Object)

MARK = "metal-operator-pause"
"""ConfigMap with the fields of `Mark`; exists only during a pause."""
MANAGERS = "metal-operator-managers"
"""ConfigMap with an entry for each running manager: `<time> <version> <id of the pause it has stopped for, or ->`."""
HOLD = "move"
"""Reason for which the runtime is held."""
INTERVAL = 3.0
"""Seconds between two reads of the pause, each followed by a heartbeat."""
SILENCE = 15.0
"""Seconds without an answer of the API after which a manager stops by itself, because it might miss a pause."""
HEARTBEAT_TIMEOUT = 25.0
"""Seconds without a heartbeat after which a move considers a manager ended. Longer than SILENCE."""


@dataclass(frozen=True)
class Mark:
    """The record of a pause: its move, and the role of this API in it."""

    id: str
    """Id of the move."""
    role: str
    """source, target, or moved: the objects here are no longer valid."""
    peer: str
    """UID of the manager's namespace in the other home."""
    where: str = ""
    """Name of the other home, for messages."""
    leftovers: bool = False
    """The objects of this API were moved away before, are no longer valid and may be replaced."""

    def as_data(self) -> dict[str, str]:
        """The data of the ConfigMap."""
        leftovers = "true" if self.leftovers else ""
        return {"id": self.id, "role": self.role, "peer": self.peer, "where": self.where, "leftovers": leftovers}


async def read_mark(client: Client, namespace: str) -> Mark | None:
    """The pause, if there is one. Raises ApiError."""
    try:
        data = (await client.get(CONFIG_MAP, MARK, namespace)).data
    except NotFound:
        return None
    id, role, peer, where = (data.get(name, "") for name in ("id", "role", "peer", "where"))
    return Mark(id, role, peer, where, leftovers=data.get("leftovers") == "true")


class PausedClient:
    """A client whose writes fail with TooManyRequests while `closed`; `idle` waits for writes in progress.

    A write that failed in this way had no effect and may be retried.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.closed = False
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<PausedClient {'closed' if self.closed else 'open'} writing={self._writing}>"

    @contextlib.asynccontextmanager
    async def _write(self) -> AsyncIterator[None]:
        if self.closed:
            raise TooManyRequests("this control plane is paused; try again later", retry_after=1.0)
        self._writing += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    async def idle(self) -> None:
        """Wait until no write is in progress."""
        await self._idle.wait()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """See Client."""
        return await self._client.get(kind, name, namespace)

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        """See Client."""
        return await self._client.list(kind, namespace, labels=labels, fields=fields, resource_version=resource_version)

    def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """See Client."""
        return self._client.watch(kind, namespace, resource_version=resource_version, labels=labels, fields=fields)

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        """See Client."""
        async with self._write():
            return await self._client.create(kind, obj)

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See Client."""
        async with self._write():
            return await self._client.patch(kind, name, patch, namespace)

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See Client."""
        async with self._write():
            return await self._client.patch_status(kind, name, patch, namespace)

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        """See Client."""
        async with self._write():
            return await self._client.apply(kind, obj, manager=manager, force=force)

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See Client."""
        async with self._write():
            await self._client.delete(kind, name, namespace, uid=uid, resource_version=resource_version)

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        """See Client."""
        return await self._client.resources(api_version)

    async def aclose(self) -> None:
        """No effect: the wrapped client is closed by its owner."""


class Pause:
    """One manager's part in a pause: `begin` before anything starts, `run` in the background, `leave` at the end.

    Until a read found no pause, controllers are held and boot server and registry write nothing.
    """

    def __init__(
        self, client: Client, namespace: str, runtime: Runtime, identity: str, clock: Clock,
        *, interval: float = INTERVAL,
    ) -> None:  # fmt: skip
        self._interval = interval
        self._client, self._namespace, self._runtime = client, namespace, runtime
        self._identity, self._clock = identity, clock
        self.client: Client = (guard := PausedClient(client))
        """The client for boot server, registry and event receiver."""
        self._guard = guard
        self._stopped = self._silent = False
        self._seen = 0.0

    @property
    def paused(self) -> bool:
        """Whether this manager is paused."""
        return self._guard.closed

    async def begin(self) -> None:
        """Read the pause before anything starts. Raises ApiError."""
        await self._stop()
        await self._look()

    async def run(self) -> None:
        """Read the pause at intervals; for Runtime.background."""
        missed = False
        while True:
            # Paused by a failing API only, it reads more often: machines may be waiting.
            await asyncio.sleep(1.0 if self._silent else self._interval)
            try:
                async with asyncio.timeout(SILENCE):
                    await self._look()
            except (ApiError, TimeoutError) as exc:
                missed = True
                await self._missed(exc)
                continue
            if missed:
                # The API is back: caches in a long backoff would keep machines waiting.
                self._runtime.retry()
            missed = False

    async def leave(self) -> None:
        """Remove this manager's entry, best effort."""
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._say(None)

    async def _look(self) -> None:
        mark = await read_mark(self._client, self._namespace)
        if mark is None and self.paused:
            # Heartbeat first, then read again: a later pause waits for this manager, an earlier one is found here.
            await self._say(self._words(None))
            mark = await read_mark(self._client, self._namespace)
        if mark is not None and not self._stopped:
            _log.warning("paused: the objects are being moved", move=mark.id, role=mark.role, where=mark.where)
            await self._stop()
        if mark is None and self.paused:
            self._go_on()
        await self._say(self._words(mark))
        # Only after the heartbeat: a manager without one is considered ended, and has to stop before that.
        self._seen = asyncio.get_running_loop().time()
        self._silent = False

    def _words(self, mark: Mark | None) -> str:
        return f"{self._clock():%Y-%m-%dT%H:%M:%SZ} {metal.__version__} {mark.id if mark else '-'}"

    async def _missed(self, exc: Exception) -> None:
        if not self._stopped and asyncio.get_running_loop().time() - self._seen > SILENCE:
            _log.warning("the API does not answer: paused, because a pause might be missed", error=str(exc))
            self._silent = True
            await self._stop()

    async def _stop(self) -> None:
        self._stopped = False
        self._guard.closed = True
        await self._runtime.hold(HOLD, grace=1.0)
        await self._guard.idle()
        # Only now: if cancelled above, activities are still in progress, and no heartbeat may claim otherwise.
        self._stopped = True

    def _go_on(self) -> None:
        self._guard.closed = self._stopped = False
        self._runtime.release(HOLD)

    async def _say(self, entry: str | None) -> None:
        body = {"data": {self._identity: entry}}
        try:
            await self._client.patch(CONFIG_MAP, MANAGERS, body, self._namespace)
        except NotFound:
            meta = {"name": MANAGERS, "namespace": self._namespace}
            with contextlib.suppress(AlreadyExists):
                await self._client.create(CONFIG_MAP, {"metadata": meta, "data": {self._identity: entry or "-"}})


def required_permissions() -> tuple[Permission, ...]:
    """The permissions for the pause."""
    return (
        Permission(CONFIG_MAP, ("get",), "reads the pause", where=Where.HOME, names=(MARK,)),
        Permission(CONFIG_MAP, ("patch",), "writes its heartbeat and the pause it honours", where=Where.HOME,
               names=(MANAGERS,)),
        Permission(CONFIG_MAP, ("create",), "creates the ConfigMap of the managers", where=Where.HOME),
    )  # fmt: skip
