"""Boot windows as they are kept in Server.status: find one, change one, and let only one of two racing changes win."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow, is_open
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.kube.client.errors import Conflict, NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.retrying import UNCERTAIN
from metal.kube.meta import mergepatch
from metal.kube.meta.clock import Clock
from metal.kube.meta.permissions import Permission
from metal.machine.directory import Directory

Step = Callable[[BootWindow | None], BootWindow]
"""A transition of metal.api.boot_window, bound to its arguments. Raises Refused."""

_ATTEMPTS = 6
_PAUSE = 0.02
"""Seconds before the second attempt at most; doubles each time, 0.6 s in all. Who else writes needs its turn, too."""


class Busy(Exception):
    """Others kept changing the Server: nothing was decided, asking again is safe."""


class Windows:
    """Reads and changes boot windows, always on the newest version of the Server."""

    def __init__(
        self, client: Client, kinds: Kinds, directory: Directory, clock: Clock, rng: random.Random | None = None
    ) -> None:
        self._client, self._kinds, self._directory, self._clock = client, kinds, directory, clock
        self._rng = rng or random.Random()

    async def find(self, uuid: str) -> Server | None:
        """The Server with this UUID, as it is now; of several the one whose window is open, else None.

        Raises ValueError for what is no UUID, ApiError when the API does not answer.
        """
        found = [server for name in await self._directory.servers(uuid) if (server := await self._get(name))]
        if len(found) > 1:
            now = self._clock()
            found = [server for server in found if is_open(server.status.boot_window, now)]
        return found[0] if len(found) == 1 else None

    async def again(self, server: Server) -> Server:
        """The same Server as it is now. Raises ApiError."""
        return await self._client.get(self._kinds.server, server.metadata.name)

    async def change(self, server: Server, step: Step) -> Server:
        """Persist `step` of the server's window, unless somebody else was first: then decide again.

        Where the answer to a write is lost, the Server tells whether it went through: a token that was spent for this
        very request is no reason to refuse it. Returns the Server as written. Raises what `step` raises, Busy after
        several lost races, NotFound, ApiError.
        """
        tried: list[BootWindow] = []
        problem: Exception = Busy(f"the Server {server.metadata.name} is being changed by others again and again")
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE * 2.0 ** (attempt - 1) * self._rng.uniform(0.5, 1.0))
                server = await self.again(server)
                if server.status.boot_window in tried:
                    return server
            window = step(server.status.boot_window)
            try:
                return await self._write(server, window)
            except Conflict:
                continue
            except UNCERTAIN as exc:
                tried.append(window)
                problem = exc
        raise problem

    async def _get(self, name: str) -> Server | None:
        try:
            return await self._client.get(self._kinds.server, name)
        except NotFound:
            return None

    async def _write(self, server: Server, window: BootWindow) -> Server:
        body = {
            "metadata": {"resourceVersion": server.metadata.resource_version},
            "status": {"bootWindow": window_patch(server.status.boot_window, window)},
        }
        return await self._client.patch_status(self._kinds.server, server.metadata.name, body)


def window_patch(old: BootWindow | None, new: BootWindow) -> dict[str, Any]:
    """The merge patch from one window to the next; what became empty is removed (leaving it out would not do that)."""
    before = {} if old is None else msgspec.to_builtins(old)
    return mergepatch.diff(before, msgspec.to_builtins(new))


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What boot server and registry do with boot windows."""
    return (
        Permission(kinds.server, ("get",), "looks at the newest boot window of a machine"),
        Permission(kinds.server, ("patch",), "notes what a machine was served and what it reported", "status"),
    )
