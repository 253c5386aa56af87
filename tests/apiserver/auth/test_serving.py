"""The serving certificate while the API runs: renewed in time, with the names under which it is reached."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from metal.apiserver.auth import addresses, tls
from metal.apiserver.auth.serving import ServingCertificate
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.kubeconfig import load
from tests.kube.virtual import run

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 600.0
"""Seconds of the loop for a day of the clock: a loop's own time loses its precision after 194 days."""


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


async def connected(port: int, authority: Path, name: str) -> tuple[asyncio.StreamWriter, int]:
    """A verified connection, and the serial number of the certificate that it was shown."""
    trust = ssl.create_default_context(cafile=str(authority))
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=name)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return writer, x509.load_der_x509_certificate(shown).serial_number


def calendar() -> datetime:
    """A clock that follows the running loop, a day in DAY seconds."""
    return NOW + timedelta(days=asyncio.get_running_loop().time() / DAY)


async def closed(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
        await writer.wait_closed()


@pytest.mark.behaviour(
    "Embedded API and assembly", "The serving certificate is renewed while the API runs; open connections go on."
)
async def test_a_certificate_that_expires_soon_is_exchanged_while_the_api_serves(tmp_path: Path) -> None:
    """A process of day 310 shows another certificate to new connections; open ones go on."""
    time = Time()
    api = EmbeddedAPI(tmp_path, time)
    await api.start()
    port = await api.listen(port=0)
    before, first = await connected(port, tmp_path / "ca.crt", "localhost")
    time.now += timedelta(days=100)
    assert not api.certificate.renew()
    time.now += timedelta(days=210)
    assert api.certificate.renew()
    after, second = await connected(port, tmp_path / "ca.crt", "localhost")
    assert first != second
    before.write(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    await before.drain()
    assert not api.certificate.failure()
    await closed(before, after)
    await api.stop()


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "The serving certificate has the names under which the API listens and is advertised, not only those of loopback.",
)
async def test_a_process_that_listens_everywhere_is_known_by_its_own_name(tmp_path: Path) -> None:
    """The certificate has the host name and the advertised name beside those of loopback; the kubeconfig advertises."""
    api = EmbeddedAPI(tmp_path, Time())
    await api.start()
    port = await api.listen("0.0.0.0", 0, advertise="https://api.site.example:8443")  # noqa: S104 - that is tested
    for name in ("localhost", "127.0.0.1", socket.gethostname(), "api.site.example"):
        writer, _ = await connected(port, tmp_path / "ca.crt", name)
        await closed(writer)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'other.example'"):
        await connected(port, tmp_path / "ca.crt", "other.example")
    assert load(api.kubeconfig, None).url == "https://api.site.example:8443"
    await api.stop()


async def test_another_authority_is_written_to_the_kubeconfig(tmp_path: Path) -> None:
    """Near the end of the authority's ten years, both are replaced, and the kubeconfig trusts the new one."""
    time = Time()
    api = EmbeddedAPI(tmp_path, time)
    await api.start()
    await api.listen(port=0)
    before = api.kubeconfig.read_bytes()
    time.now += tls.CA_LIFE - timedelta(days=30)
    assert api.certificate.renew()
    assert api.kubeconfig.read_bytes() != before
    await api.stop()


FIB = """Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.0.2.0
        /24 link UNICAST
     |-- 192.0.2.7
        /32 host LOCAL
"""
INET6 = """00000000000000000000000000000001 01 80 10 80       lo
20010db8000000000000000000000007 02 40 00 80     eth0
fe80000000000000000000fffe000001 02 40 20 80     eth0
"""


def test_addresses_are_those_of_all_interfaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback and link-local addresses are left out; a single listen address stands for itself."""
    (tmp_path / "v4").write_text(FIB)
    (tmp_path / "v6").write_text(INET6)
    monkeypatch.setattr(addresses, "_IPV4", tmp_path / "v4")
    monkeypatch.setattr(addresses, "_IPV6", tmp_path / "v6")
    monkeypatch.setattr(socket, "gethostname", lambda: "rack-1")
    assert addresses.reachable_names("::") == ("192.0.2.7", "2001:db8::7", "rack-1")
    assert addresses.reachable_names("192.0.2.7") == ("192.0.2.7",)
    monkeypatch.setattr(addresses, "_IPV4", tmp_path / "none")
    assert addresses.local_addresses() == {"2001:db8::7"}


def test_an_address_that_is_added_is_in_the_next_certificate_and_one_that_goes_changes_nothing(tmp_path: Path) -> None:
    """Names are compared as addresses, whatever their spelling."""
    hosts = ["2001:DB8::1", "Rack-1"]
    certificate = ServingCertificate(tmp_path, lambda: hosts, Time())
    certificate.open()
    assert not certificate.renew()
    hosts.append("192.0.2.9")
    assert certificate.renew()
    hosts.remove("192.0.2.9")
    assert not certificate.renew()


def test_a_running_process_always_has_a_valid_certificate(tmp_path: Path) -> None:
    """In 700 days of running there is one at the end of every day."""

    async def story() -> None:
        certificate = ServingCertificate(tmp_path, lambda: (), calendar)
        certificate.open()
        task = asyncio.ensure_future(certificate.run(every=DAY))
        served = set()
        for _ in range(700):
            await asyncio.sleep(DAY)
            assert not certificate.failure()
            served.add((tmp_path / "apiserver.crt").read_bytes())
        task.cancel()
        assert len(served) == 3

    run(story())


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "A renewal of the serving certificate that fails is repeated; the check fails when it has expired.",
)
def test_a_renewal_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check says when the certificate that is served has expired; the next renewal that succeeds ends it."""

    def full(*_: object) -> tls.Identity:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        certificate = ServingCertificate(tmp_path, lambda: (), calendar)
        certificate.open()
        task = asyncio.ensure_future(certificate.run(every=DAY))
        with monkeypatch.context() as disk:
            disk.setattr(tls, "ensure", full)
            await asyncio.sleep(364 * DAY)
            assert not certificate.failure()
            await asyncio.sleep(2 * DAY)
            assert certificate.failure() == "the serving certificate expired at 2027-01-01T00:00:00Z"
        await asyncio.sleep(2 * DAY)
        assert not certificate.failure()
        task.cancel()

    run(story())
