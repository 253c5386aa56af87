"""Sends a part of a file with a deadline, and records whether the last byte was sent."""

import asyncio
import os
from typing import BinaryIO

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from metal.machineapi.http.response import Response

_CHUNK = 256 * 1024


class FileResponse(web.StreamResponse):
    """A response whose body is `answer.file`. HEAD sends the headers only.

    The deadline is `seconds` plus the time of the transfer at `rate` bytes a second.
    """

    def __init__(self, answer: Response, seconds: float, rate: int) -> None:
        super().__init__(status=answer.status, headers=dict(answer.headers) | {"Content-Type": answer.content_type})
        if answer.file is None:
            raise ValueError("FileResponse needs a response with a file")
        self._slice = answer.file
        self._deadline = seconds + answer.file.length / rate
        self.content_length = answer.file.length
        self.complete = False

    async def transfer(self, request: web.Request) -> None:
        """Send everything. Raises ConnectionResetError or TimeoutError when the client does not receive it."""
        with self._slice.use():
            await self._transfer(request)

    async def _transfer(self, request: web.Request) -> None:
        writer = await self.prepare(request)
        if writer is None or request.method == "HEAD" or self._slice.length == 0:
            return
        sending = asyncio.ensure_future(self._send(request, writer))
        try:
            done, _ = await asyncio.wait({sending}, timeout=self._deadline)
        except asyncio.CancelledError:
            await asyncio.wait({sending}, timeout=1.0)  # the client may have closed after the last byte
            await _end(sending)
            raise
        if not done:
            await _end(sending)
            raise TimeoutError("the client receives the file too slowly")
        sending.result()

    async def _send(self, request: web.Request, writer: AbstractStreamWriter) -> None:
        file = await asyncio.to_thread(open, self._slice.path, "rb")
        try:
            await self._copy(request, writer, file)
        finally:
            file.close()
        self.complete = True

    async def _copy(self, request: web.Request, writer: AbstractStreamWriter, file: BinaryIO) -> None:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client hung up")
        loop = asyncio.get_running_loop()
        try:
            sent = await loop.sendfile(transport, file, self._slice.offset, self._slice.length)
        except (NotImplementedError, asyncio.SendfileNotAvailableError):
            sent = await self._send_in_chunks(writer, file)
        if sent != self._slice.length:
            raise OSError(f"the file {self._slice.path.name} is shorter than it should be")

    async def _send_in_chunks(self, writer: AbstractStreamWriter, file: BinaryIO) -> int:
        left = self._slice.length
        await asyncio.to_thread(file.seek, self._slice.offset, os.SEEK_SET)
        while left and (chunk := await asyncio.to_thread(file.read, min(_CHUNK, left))):
            await writer.write(chunk)
            left -= len(chunk)
        return self._slice.length - left


async def _end(task: "asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
