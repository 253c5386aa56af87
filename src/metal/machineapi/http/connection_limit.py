"""Limits open connections of machines, which share the process and its file descriptors with the controllers."""

import asyncio
import resource

import structlog
from aiohttp import web

_log = structlog.get_logger(__name__)
_LOG_INTERVAL = 60.0
"""Seconds between two log lines about the limit."""


def cap_by_descriptors(wanted: int) -> int:
    """`wanted`, but at most a quarter of the process' file descriptors; there are two listeners."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(16, soft // 4))


class ConnectionLimit:
    """Aborts connections beyond `most`. `admit` replaces the server's own `connection_made`."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._made, self._server = server.connection_made, server
        self._most, self._logged_at = most, float("-inf")

    def __repr__(self) -> str:
        return f"<ConnectionLimit {len(self._server.connections)} of {self._most}>"

    def admit(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Accept a connection, or abort it."""
        self._made(handler, transport)
        if len(self._server.connections) <= self._most:
            return
        transport.abort()
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_INTERVAL:
            self._logged_at = now
            _log.warning("connection limit reached, aborting new connections", most=self._most)
