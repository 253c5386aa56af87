"""Reads and writes boot windows in Server.status; of two concurrent changes only one succeeds.

A change is a function from the present window to the next (`metal.machine.boot_window`). It is written with the
Server's resourceVersion. After a conflict the newest Server is read and the function decides again, so a token that
another request has spent meanwhile is refused. When the answer to a write is lost, the newest Server shows whether the
write succeeded: the same request is then not refused because of the token that it has spent itself.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.api.tenancy import Data
from metal.kube.client.errors import Conflict, NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.retrying import UNCERTAIN
from metal.kube.meta import mergepatch
from metal.kube.meta.clock import Clock
from metal.kube.meta.permissions import Permission
from metal.machine import tenancy
from metal.machine.boot_window import Refused, is_open
from metal.machine.charge import in_charge
from metal.machine.directory import Directory
from metal.machine.identity import is_shared

Step = Callable[[BootWindow | None], BootWindow]
"""A transition of metal.machine.boot_window, bound to its arguments. Raises Refused."""

_ATTEMPTS = 6
_PAUSE = 0.02
"""Longest pause before the second attempt, in seconds; it doubles each time, 0.6 s in all."""


class Busy(Exception):
    """Concurrent writers kept changing the Server: nothing was decided, and a retry is safe."""


class BootWindowStore:
    """Reads and changes boot windows, always in the newest version of the Server."""

    def __init__(
        self, client: Client, kinds: Kinds, directory: Directory, clock: Clock, rng: random.Random | None = None
    ) -> None:
        self._client, self._kinds, self._directory, self._clock = client, kinds, directory, clock
        self._rng = rng or random.Random()

    async def find(self, uuid: str) -> Server | None:
        """The newest version of the Server with this UUID, of several the one that acts on the machine; None without.

        Machines that share the UUID of a series of boards are told apart by the open window, if there is only one.
        Raises Refused when it is ambiguous, ValueError when `uuid` is not a UUID, and ApiError.
        """
        found = [server for name in await self._directory.servers(uuid) if (server := await self._get(name))]
        if len(found) < 2:
            return found[0] if found else None
        now = self._clock()
        opened = [server for server in found if is_open(server.status.boot_window, now)]
        if is_shared(uuid):
            if len(opened) != 1:
                text = f"{len(opened)} boots are in progress for the machines with this UUID: {_names(found)}"
                raise Refused("IdentityAmbiguous", text)
            return opened[0]
        chosen = in_charge(found)
        if chosen is None or len(opened) > 1:
            raise Refused("DuplicateSystem", f"Servers {_names(found)} describe this machine, and none is in charge")
        return chosen

    async def reread(self, server: Server) -> Server:
        """The newest version of the same Server. Raises ApiError."""
        return await self._client.get(self._kinds.server, server.metadata.name)

    async def change(self, server: Server, step: Step) -> Server:
        """Apply `step` to the server's window and write the result; after a conflict decide again.

        Returns the Server as written. Raises what `step` raises, Busy after several conflicts, NotFound, ApiError.
        """
        tried: list[BootWindow] = []
        problem: Exception = Busy(f"the Server {server.metadata.name} was changed concurrently in every attempt")
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE * 2.0 ** (attempt - 1) * self._rng.uniform(0.5, 1.0))
                server = await self.reread(server)
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
            "status": {"bootWindow": window_patch(server.status.boot_window, window), **_dirtied(server, window)},
        }
        return await self._client.patch_status(self._kinds.server, server.metadata.name, body)


def _names(servers: list[Server]) -> str:
    return ", ".join(server.metadata.name for server in servers)


def _dirtied(server: Server, window: BootWindow) -> dict[str, Any]:
    """The merge patch for the record of tenancy: Dirty, in the write that serves the first script of a claim."""
    known = tenancy.of(server)
    if known.data == Data.DIRTY or not tenancy.is_tenants(window) or window.script_served_at is None:
        return {}
    dirty = tenancy.served(known, window.script_served_at)
    return {"tenancy": mergepatch.diff(msgspec.to_builtins(server.status.tenancy), msgspec.to_builtins(dirty))}


def window_patch(old: BootWindow | None, new: BootWindow) -> dict[str, Any]:
    """The merge patch from one window to the next; a field that became empty is removed explicitly."""
    before = {} if old is None else msgspec.to_builtins(old)
    return mergepatch.diff(before, msgspec.to_builtins(new))


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions to read and write boot windows."""
    return (
        Permission(kinds.server, ("get",), "reads the newest boot window of a machine"),
        Permission(kinds.server, ("patch",), "records what a machine was served and what it reported", "status"),
    )
