"""A client that counts what the controllers write, and can hold a write up: before it happens, or after."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar, cast

from metal.api.server import Server, State
from metal.controllers.server.traits import EVERY_STATE, TRAITS, WITHOUT_STATE
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)
Trap = Callable[[str, str], Awaitable[None]]
"""Called with what is written and "before" or "after"; may raise, or never return."""


def is_declared(server: Server) -> bool:
    """True when the table of traits has the server's wait for its state."""
    state, wait = server.status.state, server.status.wait
    if wait is None:
        return True
    declared = TRAITS[State(state)].waits if state else WITHOUT_STATE
    return wait.for_ in {*declared, *EVERY_STATE}


class Tap(Client):
    """Passes everything on. `writes` lists every write as `verb Kind name`, Events left out."""

    def __init__(self, inner: Client) -> None:
        self.inner = inner
        self.writes: list[str] = []
        self.trap: Trap | None = None
        self.hidden: set[str] = set()
        """Names of objects that lists and watches do not show yet."""
        self.undeclared: set[tuple[str, str]] = set()
        """States of Servers with a wait that is not among the traits of the state."""

    def count(self, prefix: str) -> int:
        """How many writes begin like this."""
        return sum(write.startswith(prefix) for write in self.writes)

    async def _write(self, what: str, act: Callable[[], Awaitable[T]]) -> T:
        if " Event" in what:
            return await act()
        self.writes.append(what)
        if self.trap is not None:
            await self.trap(what, "before")
        done = await act()
        if self.trap is not None:
            await self.trap(what, "after")
        return done

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return await self.inner.get(kind, name, namespace)

    async def list(self, kind: Kind[T], namespace: str = "", **options: Any) -> Page[T]:
        page = await self.inner.list(kind, namespace, **options)
        return Page(tuple(one for one in page.items if one.metadata.name not in self.hidden), page.resource_version)

    async def watch(self, kind: Kind[T], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[T]]:
        stream = cast("AsyncGenerator[WatchEvent[T], None]", self.inner.watch(kind, namespace, **options))
        async with aclosing(stream) as events:
            async for event in events:
                if event.object is None or event.object.metadata.name not in self.hidden:
                    yield event

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        name = obj["metadata"].get("name", "")
        return await self._write(f"create {kind.kind} {name}", lambda: self.inner.create(kind, obj))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._write(f"patch {kind.kind} {name}", lambda: self.inner.patch(kind, name, patch, namespace))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        done = await self._write(
            f"status {kind.kind} {name}", lambda: self.inner.patch_status(kind, name, patch, namespace)
        )
        if isinstance(done, Server) and not is_declared(done):
            self.undeclared.add((done.status.state, str(done.status.wait)))
        return done

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        name = obj["metadata"]["name"]
        return await self._write(
            f"apply {kind.kind} {name}", lambda: self.inner.apply(kind, obj, manager=manager, force=force)
        )

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> Any:
        return await self._write(
            f"delete {kind.kind} {name}", lambda: self.inner.delete(kind, name, namespace, **options)
        )

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        return await self.inner.resources(api_version)

    async def aclose(self) -> None:
        await self.inner.aclose()
