"""The transport over sockets: aiohttp, with one keep-alive connection pool for each BMC.

Errors of aiohttp, ssl and the operating system are mapped to BMCErrors here and nowhere else, without a chained
exception, because aiohttp's exceptions contain the request's headers and with them the token. Bodies are bounded.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import NoReturn

import aiohttp
from yarl import URL

from metal.redfish import tls
from metal.redfish.errors import BMCCertificateChanged, BMCProtocolError, BMCTimeout, BMCTLSError, BMCUnreachable
from metal.redfish.transport import ConnectionDropped, Response

MAX_BODY = 8 * 1024 * 1024
_UNACKNOWLEDGED = 5_000
"""Milliseconds after which a connection ends whose peer acknowledges nothing. Without it a request on a connection that
was kept from the last check waits for its own deadline, half a minute, when the BMC has lost its power."""


class HTTPTransport:
    """Requests to one BMC over HTTP. Redirects are returned, never followed, so that credentials stay with this BMC.

    Args: connect_timeout and keepalive in seconds (an idle connection is closed after keepalive), max_body in bytes.
    connect_timeout is called for each request.
    Raises: ValueError for a scheme, CA or fingerprint that cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        port: int = 443,
        scheme: str = "https",
        trust: tls.Trust = tls.VERIFY,
        connect_timeout: Callable[[], float] = lambda: 5.0,
        keepalive: float = 75.0,
        max_body: int = MAX_BODY,
    ) -> None:
        if scheme not in ("https", "http"):
            raise ValueError(f"scheme must be https or http, not {scheme!r}")
        self._base = URL.build(scheme=scheme, host=address, port=port)
        self._name = f"{address}:{port}"
        self._ssl = tls.policy(trust)
        self._connect_timeout = connect_timeout
        self._keepalive = keepalive
        self._max_body = max_body
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<HTTPTransport {self._base}>"

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout: float,
    ) -> Response:
        """See Transport."""
        within = self._connect_timeout()
        limits = aiohttp.ClientTimeout(total=None, sock_connect=within)
        try:
            async with (
                asyncio.timeout(timeout),
                self._open().request(
                    method, self._url(path), headers=headers, data=body, allow_redirects=False, timeout=limits
                ) as answer,
            ):
                content = await self._read(answer)
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Response(answer.status, names, content)
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            self._fail(error, method, timeout, within)

    async def aclose(self) -> None:
        """Close the pool."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise BMCUnreachable(f"The connection to {self._name} was closed on our side.")
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._ssl, limit=8, keepalive_timeout=self._keepalive, socket_factory=_socket
            )
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _url(self, path: str) -> URL:
        if not path.startswith("/") or any(ord(char) <= 32 or ord(char) == 127 for char in path):
            raise BMCProtocolError(f"{self._name} named the resource {path[:80]!r}, which is not a path.")
        return URL(f"{self._base.origin()}{path}", encoded=path.isascii())

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in answer.content.iter_any():
            size += len(chunk)
            if size > self._max_body:
                answer.close()
                raise BMCProtocolError(
                    f"{self._name} sent a body of more than {self._max_body} bytes, which was not read."
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def _fail(self, error: Exception, method: str, timeout: float, connect: float) -> NoReturn:
        """Raise the mapped error without a chain: aiohttp's errors contain the request's headers, and so the token."""
        raise self._mapped(error, method, timeout, connect) from None

    def _mapped(self, error: Exception, method: str, timeout: float, connect: float) -> Exception:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return BMCUnreachable(f"No connection to {self._name} within {connect:g} s.")
        if isinstance(error, TimeoutError):
            return BMCTimeout(f"{self._name} did not answer {method} within {timeout:g} s.")
        if (trust := self._mapped_tls(error)) is not None:
            return trust
        if isinstance(error, aiohttp.ClientConnectorError):
            return BMCUnreachable(f"No connection to {self._name}: {_os_reason(error.os_error)}.")
        if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | OSError):
            return ConnectionDropped(f"{self._name} closed the connection before its answer to {method} was complete.")
        return BMCProtocolError(f"{self._name} did not answer {method} in HTTP ({type(error).__name__}).")

    def _mapped_tls(self, error: Exception) -> BMCTLSError | None:
        if isinstance(error, aiohttp.ServerFingerprintMismatch):
            return BMCCertificateChanged(self._name, error.expected.hex(), error.got.hex())
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return BMCTLSError(f"The certificate of {self._name} is not trusted: {_verify_reason(error)}.")
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return BMCTLSError(f"TLS with {self._name} failed; is {self._base.scheme} the right scheme for this port?")
        return None


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED)
    return made


def _os_reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _verify_reason(error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    return str(getattr(cause, "verify_message", "") or "it does not verify").rstrip(".")
