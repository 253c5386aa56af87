"""The cable between a manager and its API: bytes pass until it is cut."""

import asyncio
import contextlib


class Cable:
    """Forwards TCP to the API from a port of its own.

    Frozen, connections stay open and nothing passes: what was sent arrives when it thaws, late. Unplugged, connections
    break, and new ones are refused.
    """

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self._server: asyncio.Server | None = None
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._plugged = True
        self._pipes: set[asyncio.Task[None]] = set()
        self.url = ""

    @property
    def cut(self) -> bool:
        return not self._plugged or not self._thawed.is_set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Every connection is ended when this returns, also one that was just being accepted."""
        if self._server is not None:
            self._server.close()
        self.unplug()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted transport ends with the next turn of the loop

    def freeze(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._thawed.clear()

    def unplug(self) -> None:
        """Connections break."""
        self._plugged = False
        self._drop()

    def mend(self) -> None:
        """As new."""
        self._plugged = True
        self._thawed.set()

    def _drop(self) -> None:
        for pipe in self._pipes:
            pipe.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        with contextlib.suppress(asyncio.CancelledError):  # `_drop`; Python 3.11 reports a cancelled task as a failure
            if self._plugged:
                await self._connect(reader, writer)
        self._pipes.discard(task)
        writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._to)
        except OSError:
            return
        ways = [
            asyncio.ensure_future(self._pump(reader, far_writer)),
            asyncio.ensure_future(self._pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(1 << 16):
                await self._thawed.wait()
                sink.write(chunk)
                await sink.drain()
