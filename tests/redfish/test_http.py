"""The transport over sockets on loopback: TLS, hangs, invalid answers."""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from metal.redfish import (
    BMCCertificateChanged,
    BMCProtocolError,
    BMCTimeout,
    BMCTLSError,
    BMCUnreachable,
    ConnectionDropped,
    HTTPTransport,
    RedfishClient,
    Trust,
)
from metal.redfish import http as http_module
from metal.redfish.tls import first_fingerprint
from tests.kube.client.pki import Authority

HEADERS = {"x-auth-token": "s3cret-token"}
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def _hello(request: web.Request) -> web.StreamResponse:
    return web.json_response({"path": request.path_qs}, headers={"ETag": '"1"', "X-Peer": str(request.transport)})


async def _big(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(64):
        await response.write(b"x" * 1024)
    return response


async def _bomb(request: web.Request) -> web.StreamResponse:
    response = web.Response(body=b"\0" * 1_000_000)
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def _redirect(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


async def _echo(request: web.Request) -> web.StreamResponse:
    return web.Response(status=418, body=await request.read(), headers={"X-Method": request.method})


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A correct web server; yields its port."""
    app = web.Application()
    app.router.add_get("/big", _big)
    app.router.add_get("/bomb", _bomb)
    app.router.add_get("/redirect", _redirect)
    app.router.add_get("/{tail:.*}", _hello)
    app.router.add_route("*", "/{tail:.*}", _echo)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    server = site._server
    assert isinstance(server, asyncio.Server)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw(handler: Handler) -> AsyncIterator[int]:
    """A server that does what `handler` does with each connection; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def transport(port: int, scheme: str = "http", **options: object) -> AsyncIterator[HTTPTransport]:
    made = HTTPTransport("127.0.0.1", port=port, scheme=scheme, **options)  # type: ignore[arg-type]  # test options
    try:
        yield made
    finally:
        await made.aclose()


async def test_requests_and_answers_pass_unchanged() -> None:
    """Any status is an answer; header names are in lower case; paths are sent unchanged."""
    async with serving() as port, transport(port) as http:
        read = await http.request("GET", "/a%2Fb?x=%20&$expand=.($levels=1)", headers=HEADERS, timeout=2)
        written = await http.request("PATCH", "/x", headers=HEADERS, body=b"{}", timeout=2)
    assert (read.status, read.headers["etag"]) == (200, '"1"')
    assert b"/a%2Fb?x=%20&$expand=.($levels=1)" in read.body
    assert (written.status, written.body, written.headers["x-method"]) == (418, b"{}", "PATCH")


async def test_redirects_are_handed_back() -> None:
    """The transport itself never follows them."""
    async with serving() as port, transport(port) as http:
        answer = await http.request("GET", "/redirect", headers=HEADERS, timeout=2)
    assert (answer.status, answer.headers["location"]) == (302, "http://127.0.0.1:1/elsewhere")


@pytest.mark.parametrize("path", ["/big", "/bomb"])
async def test_a_body_beyond_the_limit_is_not_read(path: str) -> None:
    """Plain or compressed."""
    async with serving() as port, transport(port, max_body=10_000) as http:
        with pytest.raises(BMCProtocolError, match="more than 10000 bytes"):
            await http.request("GET", path, headers=HEADERS, timeout=2)


async def test_one_connection_serves_many_requests() -> None:
    """A TLS handshake with a BMC takes a second."""
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with raw(_until_closed(handler)) as port, transport(port) as http:
        for _ in range(3):
            await http.request("GET", "/", headers=HEADERS, timeout=2)
    assert connections == 1


def _until_closed(handler: Handler) -> Handler:
    async def wrapped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except asyncio.IncompleteReadError:
            return

    return wrapped


async def test_a_certificate_of_the_ca_is_trusted(authority: Authority, tmp_path: Path) -> None:
    """ca_pem is the only CA then."""
    trust = Trust(ca_pem=authority.pem.decode())
    async with serving(authority.server_context(tmp_path)) as port, transport(port, "https", trust=trust) as http:
        assert (await http.request("GET", "/", headers=HEADERS, timeout=2)).status == 200


@pytest.mark.parametrize(
    ("dns", "trusted", "reason"), [("", False, "signature failure"), ("other.example", True, "IP address")]
)
async def test_an_unknown_ca_or_another_name_is_refused(
    authority: Authority, tmp_path: Path, dns: str, trusted: bool, reason: str
) -> None:
    """The message says which."""
    ca = authority if trusted else Authority()
    context = authority.server_context(tmp_path, dns=dns)
    async with serving(context) as port, transport(port, "https", trust=Trust(ca_pem=ca.pem.decode())) as http:
        with pytest.raises(BMCTLSError, match=f"is not trusted.*{reason}"):
            await http.request("GET", "/", headers=HEADERS, timeout=2)


async def test_by_default_the_systems_cas_decide(authority: Authority, tmp_path: Path) -> None:
    """A self-signed certificate is refused unless configured otherwise."""
    async with serving(authority.server_context(tmp_path)) as port:
        async with transport(port, "https") as http:
            with pytest.raises(BMCTLSError):
                await http.request("GET", "/", headers=HEADERS, timeout=2)
        async with transport(port, "https", trust=Trust(verify=False)) as http:
            assert (await http.request("GET", "/", headers=HEADERS, timeout=2)).status == 200


async def test_the_first_certificate_is_looked_at_without_a_request(authority: Authority, tmp_path: Path) -> None:
    """The fingerprint of any certificate can be pinned; another certificate is then an error that names both."""
    async with serving(authority.server_context(tmp_path)) as port:
        seen = await first_fingerprint("127.0.0.1", port)
        async with transport(port, "https", trust=Trust(fingerprint=seen)) as http:
            assert (await http.request("GET", "/", headers=HEADERS, timeout=2)).status == 200
    async with serving(authority.server_context(tmp_path)) as port:
        other = await first_fingerprint("127.0.0.1", port)
        async with transport(port, "https", trust=Trust(fingerprint=seen)) as http:
            with pytest.raises(BMCCertificateChanged, match=f"{other} and not {seen}") as caught:
                await http.request("GET", "/", headers=HEADERS, timeout=2)
    assert (caught.value.pinned, caught.value.seen) == (seen, other)
    assert other != seen


async def test_a_certificate_that_cannot_be_seen_is_an_error_of_its_kind() -> None:
    """A closed port, a port without TLS, and one without an answer."""

    async def mute(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving() as port:
        with pytest.raises(BMCTLSError, match="is https the right scheme"):
            await first_fingerprint("127.0.0.1", port)
    with pytest.raises(BMCUnreachable, match="No connection"):
        await first_fingerprint("127.0.0.1", port)
    async with raw(mute) as port:
        with pytest.raises(BMCTimeout, match=r"within 0\.1 s"):
            await first_fingerprint("127.0.0.1", port, timeout=0.1)


async def test_a_pinned_certificate_is_the_only_one(authority: Authority, tmp_path: Path) -> None:
    """No chain is needed; another certificate is refused before any header is sent, and named."""
    context = authority.server_context(tmp_path)
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    pin = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    colons = ":".join(pin[i : i + 2] for i in range(0, 64, 2)).upper()
    async with serving(context) as port:
        for spelling in (pin, colons, f"sha256:{pin}"):
            async with transport(port, "https", trust=Trust(fingerprint=spelling)) as http:
                assert (await http.request("GET", "/", headers=HEADERS, timeout=2)).status == 200
        wrong = Trust(verify=False, fingerprint="00" * 32)
        async with transport(port, "https", trust=wrong) as http:
            with pytest.raises(BMCTLSError, match=f"not the pinned one: its SHA-256 is {pin}"):
                await http.request("GET", "/", headers=HEADERS, timeout=2)


async def test_https_to_a_plain_port_says_so() -> None:
    """The message asks about the scheme."""
    async with serving() as port, transport(port, "https", trust=Trust(verify=False)) as http:
        with pytest.raises(BMCTLSError, match="is https the right scheme"):
            await http.request("GET", "/", headers=HEADERS, timeout=2)


async def test_a_closed_port_is_unreachable() -> None:
    """With the reason of the operating system."""
    async with raw(_silent) as port:
        pass
    async with transport(port) as http:
        with pytest.raises(BMCUnreachable, match=f"No connection to 127.0.0.1:{port}: .+"):
            await http.request("GET", "/", headers=HEADERS, timeout=2)


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    await reader.read()


async def _cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


async def _gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def _telnet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"login: \r\n\r\n")


@pytest.mark.parametrize("handler", [_silent, _half])
async def test_a_hang_is_a_timeout_at_the_deadline(handler: Handler) -> None:
    """No answer, and an incomplete answer."""
    async with raw(handler) as port, transport(port) as http:
        start = asyncio.get_running_loop().time()
        with pytest.raises(BMCTimeout, match=r"did not answer GET within 0\.2 s"):
            await http.request("GET", "/", headers=HEADERS, timeout=0.2)
        assert asyncio.get_running_loop().time() - start < 0.6


async def test_a_tls_handshake_that_hangs_ends_at_the_connect_deadline() -> None:
    """It counts as no connection."""
    async with raw(_silent) as port, transport(port, "https", connect_timeout=lambda: 0.2) as http:
        with pytest.raises(BMCUnreachable, match=r"within 0\.2 s"):
            await http.request("GET", "/", headers=HEADERS, timeout=5)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="an option of Linux")
async def test_a_connection_whose_peer_acknowledges_nothing_ends_after_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A BMC that lost its power is not waited for on the connection that was kept from the last request."""
    made: list[int] = []
    original = http_module._socket

    def making(address: Any) -> socket.socket:
        new = original(address)
        made.append(new.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        return new

    monkeypatch.setattr(http_module, "_socket", making)
    async with raw(_gone) as port, transport(port) as http:
        with pytest.raises(BMCUnreachable):
            await http.request("GET", "/", headers=HEADERS, timeout=5)
    assert set(made) == {5000}


@pytest.mark.parametrize("handler", [_cut, _gone])
async def test_a_connection_that_breaks_is_dropped(handler: Handler) -> None:
    """Before or within the answer."""
    async with raw(handler) as port, transport(port) as http:
        with pytest.raises(ConnectionDropped):
            await http.request("POST", "/", headers=HEADERS, body=b"{}", timeout=2)


async def test_what_is_not_http_is_a_protocol_error_without_secrets() -> None:
    """The library's error has the request's headers, and is not chained."""
    async with raw(_telnet) as port, transport(port) as http:
        with pytest.raises(BMCProtocolError, match="did not answer GET in HTTP") as caught:
            await http.request("GET", "/", headers=HEADERS, timeout=2)
    error = caught.value
    assert error.__suppress_context__
    assert error.__cause__ is None
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("path", ["no-slash", "/a b", "/a\r\nX: y", ""])
async def test_what_is_no_path_is_not_sent(path: str) -> None:
    """BMCs return invalid links."""
    async with transport(1) as http:
        with pytest.raises(BMCProtocolError, match="not a path"):
            await http.request("GET", path, headers=HEADERS, timeout=1)


async def test_a_path_with_two_slashes_stays_on_the_host() -> None:
    """//evil.example/x is a path here."""
    async with serving() as port, transport(port) as http:
        answer = await http.request("GET", "//127.0.0.2/x", headers=HEADERS, timeout=2)
    assert b"//127.0.0.2/x" in answer.body


async def test_headers_with_line_breaks_are_refused() -> None:
    """A token from a malicious BMC cannot inject a header."""
    async with serving() as port, transport(port) as http:
        with pytest.raises(BMCProtocolError):
            await http.request("GET", "/", headers={"x-auth-token": "a\r\nX-Evil: 1"}, timeout=2)


async def test_a_closed_transport_stays_closed() -> None:
    """No new connection is opened."""
    async with serving() as port:
        http = HTTPTransport("127.0.0.1", port=port, scheme="http")
        await http.request("GET", "/", headers=HEADERS, timeout=2)
        await http.aclose()
        await http.aclose()
        with pytest.raises(BMCUnreachable, match="closed on our side"):
            await http.request("GET", "/", headers=HEADERS, timeout=2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"scheme": "ftp"}, "scheme must be https or http"),
        ({"trust": Trust(fingerprint="abc")}, "fingerprint must be"),
        ({"trust": Trust(ca_pem="rubbish")}, "ca_pem must hold"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(options: dict[str, object], reason: str) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match=reason):
        HTTPTransport("127.0.0.1", **options)  # type: ignore[arg-type]  # wrong on purpose


async def test_the_client_repeats_a_read_when_the_keep_alive_connection_is_stale() -> None:
    """Servers that close idle connections cause no failed read."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"RedfishVersion":"1.0"}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")

    async with raw(_until_closed(once)) as port:
        client = RedfishClient(HTTPTransport("127.0.0.1", port=port, scheme="http"), origin=f"http://127.0.0.1:{port}")
        for _ in range(3):
            assert (await client.get("/x")).data == {"RedfishVersion": "1.0"}
        await client.aclose()
