"""How many connections machines may hold open: they share a process, and its files, with the controllers."""

import asyncio
import resource

import structlog
from aiohttp import web

_log = structlog.get_logger(__name__)
_QUIET = 60.0
"""Seconds between two lines that say that it is full."""


def room(wanted: int) -> int:
    """`wanted`, or a quarter of the files that the process may open where that is less; there are two listeners."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(16, soft // 4))


class ConnectionLimit:
    """Hangs up on connections beyond `most`. `admit` takes the place of the server's own `connection_made`."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._made, self._server = server.connection_made, server
        self._most, self._told_at = most, float("-inf")

    def __repr__(self) -> str:
        return f"<ConnectionLimit {len(self._server.connections)} of {self._most}>"

    def admit(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Note a connection, or end it at once."""
        self._made(handler, transport)
        if len(self._server.connections) <= self._most:
            return
        transport.abort()
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= _QUIET:
            self._told_at = now
            _log.warning("too many connections of machines, hanging up on more", most=self._most)
