"""Sends bytes and parts of files with a deadline, and records whether the last byte was sent."""

import asyncio
import os
from typing import BinaryIO

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from metal.boot.uki.layout import FilePart
from metal.machineapi.http.response import Response

_CHUNK = 256 * 1024


class FileResponse(web.StreamResponse):
    """A response whose body is `answer.content`. HEAD sends the headers only.

    The deadline is `seconds` plus the time of the transfer at `rate` bytes a second.
    """

    def __init__(self, answer: Response, seconds: float, rate: int) -> None:
        super().__init__(status=answer.status, headers=dict(answer.headers) | {"Content-Type": answer.content_type})
        if answer.content is None:
            raise ValueError("FileResponse needs a response with content")
        self._content = answer.content
        self.content_length = self._size = answer.content.layout.size
        self._deadline = seconds + self._size / rate
        self.complete = False

    async def transfer(self, request: web.Request) -> None:
        """Send everything. Raises ConnectionResetError or TimeoutError when the client does not receive it."""
        with self._content.use():
            await self._transfer(request)

    async def _transfer(self, request: web.Request) -> None:
        writer = await self.prepare(request)
        if writer is None or request.method == "HEAD" or self._size == 0:
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
        for part in self._content.layout.parts:
            if isinstance(part, bytes):
                await writer.write(part)
            else:
                await _send_file(request, writer, part)
        self.complete = True


async def _send_file(request: web.Request, writer: AbstractStreamWriter, part: FilePart) -> None:
    file = await asyncio.to_thread(open, part.path, "rb")
    try:
        sent = await _copy(request, writer, file, part)
    finally:
        file.close()
    if sent != part.length:
        raise OSError(f"the file {part.path.name} is shorter than it should be")


async def _copy(request: web.Request, writer: AbstractStreamWriter, file: BinaryIO, part: FilePart) -> int:
    if request.transport is None:
        raise ConnectionResetError("the client hung up")
    try:
        return await asyncio.get_running_loop().sendfile(request.transport, file, part.offset, part.length)
    except (NotImplementedError, asyncio.SendfileNotAvailableError):
        return await _send_in_chunks(writer, file, part)


async def _send_in_chunks(writer: AbstractStreamWriter, file: BinaryIO, part: FilePart) -> int:
    left = part.length
    await asyncio.to_thread(file.seek, part.offset, os.SEEK_SET)
    while left and (chunk := await asyncio.to_thread(file.read, min(_CHUNK, left))):
        await writer.write(chunk)
        left -= len(chunk)
    return part.length - left


async def _end(task: "asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
