"""One connection: aiohttp's protocol, with the phases of a request and a limit on the bytes of its headers.

aiohttp limits each header line and their number, which together permit a megabyte for each connection, and has no
deadline for headers. This subclass counts the bytes that arrive before a head is complete, gives the parser no more
than the limit, and tells the table in which phase the connection is. It reads two attributes of aiohttp's protocol that
are not documented, `_request_count` and `_messages`; the tests of this package fail when aiohttp renames them.
"""

import asyncio
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from metal.listener.limits import ConnectionLimits
from metal.listener.report import Reason
from metal.listener.table import Entry, Phase, Table

_PIECE = 16 * 1024
"""Bytes that the parser gets at once: a piece with the end of a body may begin the next head, which is then counted."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 26\r\nConnection: close\r\n\r\n"
    b"the headers are too large\n"
)


class Connection(RequestHandler):
    """The protocol of one accepted connection."""

    __slots__ = ("_connected", "_entry", "_head", "_limits", "_payload", "_table")

    def __init__(
        self, manager: web.Server, entry: Entry, table: Table, limits: ConnectionLimits, connected: set[Entry],
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(manager, **options)
        self._entry, self._table, self._limits, self._connected = entry, table, limits, connected
        self._head = 0
        self._payload: StreamReader | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open; with TLS, after the handshake."""
        self._connected.add(self._entry)
        self._entry.close = cast("asyncio.Transport", transport).abort
        self._entry.enter(Phase.NEW, self._loop.time())
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection ended."""
        self._connected.discard(self._entry)
        self._table.remove(self._entry)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Give the parser pieces, so that no more than the limit is stored of one head."""
        while True:
            size = _PIECE if self._in_body() else max(1, self._limits.head_bytes - self._head)
            piece, data = data[:size], data[size:]
            self._receive(piece)
            if not data or self.transport is None or self.transport.is_closing():
                return
            if self._head >= self._limits.head_bytes:
                self._refuse_head()
                return

    def _receive(self, piece: bytes) -> None:
        in_body, count = self._in_body(), self._request_count
        super().data_received(piece)
        if self._request_count != count:
            self._head = 0
            payload = self._messages[-1][1] if self._messages else None
            self._payload = payload if isinstance(payload, StreamReader) else None
            self._enter(Phase.BODY if self._in_body() else Phase.BUSY)
        elif in_body:
            self._entry.received += len(piece)
            if not self._in_body():
                self._enter(Phase.BUSY)
        elif piece:
            self._head += len(piece)
            if self._entry.phase in (Phase.NEW, Phase.IDLE):
                self._enter(Phase.HEAD)

    async def finish_response(self, request: Any, resp: Any, start_time: float | None) -> tuple[Any, bool]:
        """Send the response; afterwards the connection waits for the rest of a body or for the next request."""
        result = await super().finish_response(request, resp, start_time)
        if not self._messages:
            self._enter(Phase.BODY if self._in_body() else Phase.HEAD if self._head else Phase.IDLE)
        return result

    def pause_writing(self) -> None:
        """The client receives more slowly than the response is written."""
        super().pause_writing()
        self._entry.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        """The client has received a part."""
        super().resume_writing()
        self._entry.stalled_since = None

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Malformed requests are counted, not logged one by one; a failure of a handler is logged where it happens."""
        self._table.note(self._entry, Reason.MALFORMED)

    def _in_body(self) -> bool:
        return self._payload is not None and not self._payload.is_eof()

    def _enter(self, phase: Phase) -> None:
        self._entry.enter(phase, self._loop.time())

    def _refuse_head(self) -> None:
        if self.transport is not None and self._entry.phase is Phase.HEAD:
            self.transport.write(_TOO_LARGE)
            self._entry.close = self.transport.close
        self._table.end(self._entry, Reason.HEAD_TOO_LARGE)
