"""Serves BMCs over sockets: each on its own loopback address, all on one port and in one process."""

import asyncio
import resource
import socket
import ssl
from collections.abc import Mapping

from aiohttp import web

from metal.sim.bmc.redfish_service import SimBMC

_BACKLOG = 16
_SOCKETS_EACH = 8
_LARGEST_BODY = 1 << 20


class BMCServer:
    """Listens on the address of each BMC. Call `start`, and `stop` at the end."""

    def __init__(self, bmcs: Mapping[str, SimBMC], port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self._bmcs, self._port, self._tls = bmcs, port, tls
        self._servers: list[asyncio.Server] = []
        self._web: web.Server | None = None

    def __repr__(self) -> str:
        return f"<BMCServer {len(self._bmcs)} BMCs on port {self._port}>"

    async def start(self) -> None:
        """Listen on all addresses. Raises OSError with an address in use."""
        allow_files(len(self._bmcs) * _SOCKETS_EACH)
        self._web = web.Server(self._handle, access_log=None, keepalive_timeout=300.0)
        loop = asyncio.get_running_loop()
        for address in self._bmcs:
            listener = _listener(address, self._port)
            self._servers.append(await loop.create_server(self._web, sock=listener, ssl=self._tls, backlog=_BACKLOG))

    async def stop(self) -> None:
        """Close everything at once."""
        for server in self._servers:
            server.close()
        if self._web is not None:
            await self._web.shutdown(timeout=0.2)
        self._servers.clear()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        bmc = self._find(request)
        if bmc is None or bmc.unreachable:
            return _hang_up(request)
        if delay := bmc.delay():
            await asyncio.sleep(delay)
        if bmc.machine.faults.hangs:
            await asyncio.sleep(3600)
        headers = {name.lower(): value for name, value in request.headers.items()}
        if (request.content_length or 0) > _LARGEST_BODY:
            return web.Response(status=413)
        answer = bmc.handle(request.method, request.path_qs, headers, await request.read())
        return web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)

    def _find(self, request: web.BaseRequest) -> SimBMC | None:
        """By the address that the client connected to: one server for all."""
        if request.transport is None:
            return None
        return self._bmcs.get(request.transport.get_extra_info("sockname")[0])


def _hang_up(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)


def _listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as exc:
        listener.close()
        raise OSError(exc.errno, f"simulated BMC {address}:{port}: {exc.strerror}") from None
    listener.setblocking(False)
    return listener


def allow_files(wanted: int) -> None:
    """Raise the limit of open files by this number, up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    target = wanted + 1024 if unlimited else min(hard, wanted + 1024)
    if soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
