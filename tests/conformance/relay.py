"""A TCP relay whose connections can all be cut at once."""

import asyncio
from contextlib import suppress


class Relay:
    """Passes bytes between clients and 127.0.0.1:port; `url` is where clients go instead."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> int:
        """Break every connection; returns how many halves there were. New ones are taken as before."""
        count = len(self._open)
        for writer in self._open:
            writer.transport.abort()
        return count

    async def stop(self) -> None:
        """Break everything and listen no more."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, forth), (back, writer)):
            self._open.add(sink)
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # cut
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        self._open.discard(sink)
        sink.close()
