"""Reads request bodies before authentication, bounded for each client, in total and in time."""

import asyncio
from collections import Counter

from aiohttp import web


class BodyTooLarge(Exception):
    """The body is longer than the handler accepts."""


class Overloaded(Exception):
    """The limit on bodies in transfer is reached, for this client or in total."""


class RequestBodies:
    """Counts the bytes in transfer. `each` and `total` are in bytes, `seconds` limits the time of one body."""

    def __init__(self, each: int, total: int, seconds: float) -> None:
        self._each, self._total, self._seconds = each, total, seconds
        self._held: Counter[str] = Counter()
        self._sum = 0

    def __repr__(self) -> str:
        return f"<Bodies {self._sum} bytes of {len(self._held)} clients>"

    async def read(self, request: web.Request, client: str, limit: int) -> bytes:
        """The body. Raises BodyTooLarge, Overloaded, TimeoutError."""
        if (request.content_length or 0) > limit:
            raise BodyTooLarge
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.content.iter_chunked(64 * 1024):
                    size += len(chunk)
                    self._reserve(client, len(chunk))
                    if size > limit:
                        raise BodyTooLarge
                    chunks.append(chunk)
        finally:
            self._release(client, size)
        return b"".join(chunks)

    def _reserve(self, client: str, size: int) -> None:
        self._held[client] += size
        self._sum += size
        if self._held[client] > self._each or self._sum > self._total:
            raise Overloaded

    def _release(self, client: str, size: int) -> None:
        self._held[client] -= size
        self._sum -= size
        if self._held[client] <= 0:
            del self._held[client]
