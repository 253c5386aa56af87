"""Listens for HTTP connections within limits.

The listening socket is read here and not by aiohttp: a connection that is refused costs one `accept` and one `close`,
and no TLS state, which would be 80 to 320 KiB. An admitted one gets aiohttp's protocol (`connection`), with TLS after a
handshake that has a deadline. Once in an interval all connections are checked for deadlines (`table`). A request whose
headers are complete belongs to the application; its time is the application's to limit.
"""

import asyncio
import errno
import os
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web

from metal.listener.connection import Connection
from metal.listener.limits import ConnectionLimits, cap_by_descriptors
from metal.listener.metrics import Metrics
from metal.listener.report import Reason, Report
from metal.listener.table import Entry, Table

_BACKLOG = 1024
"""Connections waiting to be accepted; after a power cut a whole rack connects at once."""
_BATCH = 64
"""Connections accepted before other work gets its turn."""
_PAUSE = 0.2
"""Seconds without accepting after the process ran out of descriptors or memory."""
_TURNS = 20
"""Turns of the loop in which an aborted transport ends; with TLS it needs three."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RESET = struct.pack("ii", 1, 0)


class RunningServer:
    """A running server. `port` is the assigned one when 0 was requested."""

    def __init__(self, runner: web.AppRunner, acceptor: "_Acceptor", port: int) -> None:
        self._runner, self._acceptor, self.port = runner, acceptor, port

    def __repr__(self) -> str:
        return f"<RunningServer {self.port} {self._acceptor.table!r}>"

    async def aclose(self) -> None:
        """Stop listening; requests in progress are cancelled after the runner's shutdown_timeout.

        Every transport has ended when this returns.
        """
        await self._acceptor.stop()
        await self._runner.cleanup()
        await self._acceptor.abort()


async def listen(
    app: web.Application, host: str, port: int, limits: ConnectionLimits, *,
    name: str, tls: ssl.SSLContext | None = None, metrics: Metrics | None = None, shutdown_seconds: float = 1.0,
) -> RunningServer:  # fmt: skip
    """Serve an application. `name` labels metrics and log lines. Raises OSError when the address is not available."""
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=shutdown_seconds)
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101 - after setup
    try:
        listening = _bound(host, port)
    except BaseException:
        await runner.cleanup()
        raise
    loop = asyncio.get_running_loop()
    table = Table(limits, cap_by_descriptors(limits.connections), Report(name, loop.time, metrics), loop.time)
    options = {"loop": loop, "access_log": None, "lingering_time": 2.0, "keepalive_timeout": 2 * limits.idle_seconds}
    connected: set[Entry] = set()
    acceptor = _Acceptor(
        listening, table, limits, tls, connected,
        lambda entry: Connection(server, entry, table, limits, connected, **options),
    )  # fmt: skip
    acceptor.start()
    return RunningServer(runner, acceptor, int(listening.getsockname()[1]))


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as exc:
        why = os.strerror(exc.errno).lower() if exc.errno else str(exc)
        raise OSError(exc.errno, f"error while attempting to bind on address {(host, port)}: {why}") from None
    listening.setblocking(False)
    return listening


class _Acceptor:
    """Accepts connections of one listening socket."""

    def __init__(
        self, listening: socket.socket, table: Table, limits: ConnectionLimits, tls: ssl.SSLContext | None,
        connected: set[Entry], protocol: Callable[[Entry], Connection],
    ) -> None:  # fmt: skip
        self._socket, self.table, self._limits, self._tls = listening, table, limits, tls
        self._connected, self._protocol = connected, protocol
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        shortest = min(
            limits.handshake_seconds, limits.first_byte_seconds, limits.head_seconds, limits.body_seconds,
            limits.idle_seconds, limits.stall_seconds,
        )  # fmt: skip
        self._interval = min(1.0, shortest / 4)

    def start(self) -> None:
        """Accept from now on."""
        self._loop.add_reader(self._socket, self._accept)
        self._later("expire", self._interval, self._expire)

    async def stop(self) -> None:
        """Accept no more, and close every connection on which no request is being answered."""
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for timer in self._timers.values():
            timer.cancel()
        self.table.close_waiting()
        if self._opening:
            await asyncio.wait(self._opening)

    async def abort(self) -> None:
        """End every connection."""
        for entry in list(self._connected):
            self.table.remove(entry)
            entry.close()
        for _ in range(_TURNS):
            if not self._connected:
                return
            await asyncio.sleep(0)

    def _later(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        self._timers[name] = self._loop.call_later(seconds, call)

    def _expire(self) -> None:
        self.table.expire()
        self._later("expire", self._interval, self._expire)

    def _accept(self) -> None:
        for _ in range(_BATCH):
            try:
                accepted, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as exc:
                if exc.errno not in _EXHAUSTED:
                    raise
                self._wait_for_descriptors()
                return
            self._admit(accepted, str(peer[0]))

    def _wait_for_descriptors(self) -> None:
        self.table.exhausted()
        self._loop.remove_reader(self._socket)
        self._later("resume", _PAUSE, lambda: self._loop.add_reader(self._socket, self._accept))

    def _admit(self, accepted: socket.socket, address: str) -> None:
        entry = self.table.admit(address)
        if entry is None:
            # A reset at once: a socket that is closed in the ordinary way remains in the kernel for a minute.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            accepted.close()
            return
        accepted.setblocking(False)
        # Not by cancelling the task: a transport that is cancelled while it is made is not closed by every event loop.
        entry.close = partial(_shut_down, accepted)
        task = self._loop.create_task(self._open(accepted, entry))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket.socket, entry: Entry) -> None:
        if entry not in self.table:  # closed for another one before this task began
            accepted.close()
            return
        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {"ssl": self._tls, "ssl_handshake_timeout": self._limits.handshake_seconds}
        try:
            await self._loop.connect_accepted_socket(lambda: self._protocol(entry), accepted, **options)
        except OSError:  # also ssl.SSLError and the time-out of the handshake
            accepted.close()
            if self.table.remove(entry):
                self.table.note(entry, Reason.HANDSHAKE_FAILED)


def _shut_down(accepted: socket.socket) -> None:
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)
