"""Reads bodies within limits and parses them without stopping the event loop.

Short JSON is parsed at once, YAML and long JSON one body at a time in a thread.

The interpreter switches between the thread and the event loop every few milliseconds, so a body that takes a second to
parse makes other requests slower by milliseconds. One at a time, so that many such bodies do not add up; and at most
some of one user, so that the bodies of one user do not keep others waiting.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

from metal.apiserver.machinery import status
from metal.apiserver.machinery.users import User
from metal.apiserver.web import bodies
from metal.listener.request_bodies import BodyTooLarge, Overloaded, RequestBodies

T = TypeVar("T")
SHORT = 64 * 1024
"""Bytes of JSON that are parsed at once, in at most some milliseconds."""
_OF_ONE, _OF_ALL = 24 << 20, 128 << 20
"""Bytes of bodies that are being received, of one user and of all."""
_SECONDS = 60.0
"""Seconds of one body."""
WAITING, WAITING_OF_ONE = 64, 4
"""Bodies in the queue, of all users and of one. Each is at most 3 MiB."""


class Parsing:
    """Reads bodies, and the queue of those that are being parsed."""

    def __init__(self) -> None:
        self._bodies = RequestBodies(_OF_ONE, _OF_ALL, _SECONDS)
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def read(self, request: web.Request, user: User) -> bytes:
        """The body of a request. Raises StatusError 408, 413 and 429."""
        try:
            return await self._bodies.read(request, user.name, bodies.SIZE_LIMIT)
        except BodyTooLarge:
            raise status.too_large() from None
        except Overloaded:
            raise status.too_many_requests("too many bodies are being received; try again later") from None
        except TimeoutError:
            raise status.request_timeout() from None

    async def run(self, user: User, content_type: str, body: bytes, work: Callable[[], T]) -> T:
        """What `work` makes of a body. Raises StatusError 413 and 429, and what `work` raises."""
        text = is_yaml(content_type, body)
        if not text and len(body) <= SHORT:
            return work()
        if text and len(body) > bodies.YAML_LIMIT:
            raise bodies.yaml_too_large()
        if self._waiting[user.name] >= WAITING_OF_ONE or self._waiting.total() >= WAITING:
            raise status.too_many_requests("too many bodies are being parsed; send JSON, or try again later")
        self._waiting[user.name] += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work)
        finally:
            self._waiting[user.name] -= 1
            if not self._waiting[user.name]:
                del self._waiting[user.name]


def is_yaml(content_type: str, body: bytes) -> bool:
    """Whether a body is parsed as YAML. kubectl sends JSON as apply-patch+yaml."""
    media = bodies.media_type(content_type)
    return media in bodies.YAML or (media == bodies.APPLY and not bodies.looks_like_json(body))
