"""`metalctl dhcp-config` with real dnsmasq and Kea: firmware gets its file, and leases become Endpoints."""

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.lab import netns, preflight
from tests.lab.conftest import FAILED
from tests.lab.dhcp import start_dnsmasq, start_kea
from tests.lab.dhcp_client import RELEASE6, RENEW6, Client4, Client6, Kind, tftp_first_block
from tests.lab.netns import Namespace
from tests.lab.operator import Operator
from tests.lab.run import Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(170)]

HOST, HOST6 = "10.77.0.1", "fd77::1"
URL, URL6 = f"http://{HOST}:8082", f"http://[{HOST6}]:8082"
MAC = "52:54:00:77:cc:01"
IPXE = Kind("iPXE", 0, user_class="iPXE")
BIOS = Kind("BIOS", 0)
SERVERS = ("dnsmasq", "kea")
LATE = 60
"""Seconds until the hook has reported something on a busy machine."""

OFFERS = {
    BIOS: f"tftp://{HOST}/undionly.kpxe",
    Kind("UEFI x86-64", 7): f"tftp://{HOST}/snponly.efi",
    Kind("UEFI x86-64 as EBC", 9): f"tftp://{HOST}/snponly.efi",
    Kind("UEFI arm64", 11): f"tftp://{HOST}/arm64-efi/snponly.efi",
    Kind("UEFI HTTP x86-64", 16, "HTTPClient"): f"{URL}/httpboot/x86_64.efi",
    Kind("UEFI HTTP x86", 15, "HTTPClient"): f"{URL}/httpboot/x86_64.efi",
    Kind("UEFI HTTP arm64", 19, "HTTPClient"): f"{URL}/httpboot/arm64.efi",
    IPXE: f"{URL}/ipxe",
    Kind("iPXE of UEFI x86-64", 7, user_class="iPXE"): f"{URL}/ipxe",
    Kind("iPXE of UEFI arm64", 11, user_class="iPXE"): f"{URL}/ipxe",
    Kind("iPXE that kept the class of HTTP boot", 16, "HTTPClient", "iPXE"): f"{URL}/ipxe",
}
OFFERS6 = {
    kind: url.replace(URL, URL6).replace(f"//{HOST}/", f"//[{HOST6}]/") for kind, url in OFFERS.items() if kind.arch
}


class Site:
    """The operator's host with a DHCP server, and a machine, on one wire."""

    def __init__(self, run: Run, operator: Operator, host: Namespace, machine: Namespace) -> None:
        self.run, self.operator, self.host, self.machine = run, operator, host, machine
        self.tftp = run.path("tftp/arm64-efi/snponly.efi").parents[1]
        for name in ("undionly.kpxe", "snponly.efi"):
            shutil.copy(f"/usr/lib/ipxe/{name}", self.tftp)
        (self.tftp / "arm64-efi/snponly.efi").write_bytes(b"MZ arm64")

    def configure(self, server: str, *arguments: str) -> Path:
        """The folder with what the command writes."""
        folder = self.run.path(f"{server}/x").parent
        hook = str(folder / "lease-hook")
        self.operator.metalctl(
            "dhcp-config", server, "--from", "live", "--interface", "br0", "--output", str(folder), "--hook", hook,
            "--tftp-root", str(self.tftp), "--metalctl", self.operator.lease_hook[0], *arguments,
        )  # fmt: skip
        return folder

    def leases(self) -> dict[str, set[str]]:
        """Addresses of each MAC in the Endpoints."""
        found: dict[str, set[str]] = {}
        for endpoint in self.operator.objects("endpoints.metal.ironcore.dev"):
            spec = endpoint["spec"]
            found.setdefault(spec["macAddress"], set()).update([spec["ip"]] if spec.get("ip") else [])
        return found

    def wait_for_lease(self, mac: str, *addresses: str) -> None:
        """Until the Endpoints of a MAC have exactly these addresses."""
        what = f"lease {mac} {addresses}"
        self.run.wait_for(what, lambda: self.leases().get(mac, set()) == set(addresses), LATE)


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Needs no images and no virtual machines."""
    if lacking := preflight.missing("dhcp"):
        pytest.fail(lacking, pytrace=False)
    made = Run("test_dhcp")
    yield made
    failed = request.node.stash.get(FAILED, False)
    made.close(keep=failed or bool(os.environ.get("METAL_LAB_KEEP")))


@pytest.fixture(scope="module")
def site(run: Run) -> Iterator[Site]:
    """The control plane, with boot server, on the operator's host."""
    netns.reap_stale()
    spaces = [Namespace(role) for role in ("operator", "machine")]
    host, machine = spaces
    netns.bridge(host, "br0", f"{HOST}/24", f"{HOST6}/64")
    netns.cable(host, "br0", "to-machine", machine, MAC)
    config = {
        "listen": {"boot": f"{HOST}:8082", "registry": f"{HOST}:10000", "metrics": ""},
        "enrolment": {"networks": ["192.0.2.0/24"]},
        "boot": {"ipxeFolder": str(run.path("tftp/x").parent)},
    }
    yield Site(run, Operator(run, host, config), host, machine)
    run.stop()
    for space in spaces:
        space.delete()


@pytest.fixture(scope="module")
def dhcp(request: pytest.FixtureRequest, site: Site) -> Iterator[str]:
    """One of the DHCP servers, with what the command wrote for one IP family."""
    server, version = request.param
    network = ("--subnet", "10.77.0.0/24") if version == 4 else ("--ipv6", "fd77::/64", "--boot-url", URL6)
    yield from _serve(site, server, version, *network)


def _each_server(version: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dhcp", [(server, version) for server in SERVERS], indirect=True, ids=SERVERS)


OVER_IPV4, OVER_IPV6 = _each_server(4), _each_server(6)


def _serve(site: Site, server: str, version: int, *arguments: str) -> Iterator[str]:
    run, short = site.run, ("--lease-time", "20s" if server == "kea" else "2m")
    folder = site.configure(server, *arguments, *short)
    if server == "kea":
        config = folder / f"kea-dhcp{version}.conf"
        _check(site.host, f"kea-dhcp{version}", "-t", str(config))
        _check(site.host, "dnsmasq", "--test", "-C", str(folder / "tftp.conf"))
        start_dnsmasq(run, site.host, folder / "tftp.conf")
        start_kea(run, site.host, config, version)
    else:
        _check(site.host, "dnsmasq", "--test", "-C", str(folder / "dnsmasq.conf"))
        leases = run.path(f"dnsmasq{version}.leases")
        start_dnsmasq(run, site.host, folder / "dnsmasq.conf", f"--dhcp-leasefile={leases}")
    yield server
    run.stop("kea")
    run.stop("dnsmasq")


def _check(where: Namespace, *command: str) -> None:
    done = subprocess.run(where.command(*command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _fetch(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.scheme == "tftp":
        return tftp_first_block(parts.hostname or "", parts.path.lstrip("/"))
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - always http
        return bytes(answer.read())


def _mac(number: int) -> str:
    return f"52:54:00:77:cc:{number:02x}"


def _ready(site: Site, work):  # type: ignore[no-untyped-def]
    """Repeat until the DHCP server has started."""

    def look():  # type: ignore[no-untyped-def]
        try:
            return site.machine.inside(work)
        except TimeoutError:
            return None

    return site.run.wait_for("an answer by DHCP", look, LATE)


@OVER_IPV4
@pytest.mark.parametrize("kind", OFFERS, ids=lambda kind: kind.name)
def test_each_firmware_is_offered_its_file(site: Site, dhcp: str, kind: Kind) -> None:
    """By TFTP, by HTTP, or the script; the offer and the acknowledgement agree, and firmware's HTTP sees its class."""
    answers = _ready(site, lambda: Client4(_mac(0x10 + list(OFFERS).index(kind)), kind).lease())
    for answer in answers:
        file = answer.boot_file
        assert (file if "://" in file else f"tftp://{answer.server}/{file}") == OFFERS[kind]
        assert answer.options[51] == (20 if dhcp == "kea" else 120).to_bytes(4, "big")
        if kind.vendor == "HTTPClient" and not kind.user_class:
            assert answer.options[60].rstrip(b"\0") == b"HTTPClient"


@OVER_IPV6
@pytest.mark.parametrize("kind", OFFERS6, ids=lambda kind: kind.name)
def test_each_firmware_is_offered_its_url_over_ipv6(site: Site, dhcp: str, kind: Kind) -> None:
    """DHCPv6 offers URLs only."""
    answer = _ready(site, Client6(kind, iaid=0x10 + list(OFFERS6).index(kind)).lease)
    assert answer.boot_file == OFFERS6[kind]
    if kind.vendor == "HTTPClient" and not kind.user_class:
        assert answer.options[16][4:] == b"\0\x0aHTTPClient"


@OVER_IPV4
@pytest.mark.parametrize("url", sorted({*OFFERS.values(), OFFERS6[Kind("UEFI x86-64", 7)]}))
def test_what_is_offered_is_served(site: Site, dhcp: str, url: str) -> None:
    """The TFTP server and the boot server have each file, and its content is what the firmware expects."""
    start = {"efi": b"MZ", "ipxe": b"#!ipxe", "kpxe": b""}[re.split(r"[./]", url)[-1]]
    site.machine.ip("address", "replace", "10.77.0.9/24", "dev", "eth0")
    site.machine.ip("address", "replace", "fd77::9/64", "dev", "eth0", "nodad")
    try:
        assert _ready(site, lambda: _fetch(url)).startswith(start)
    finally:
        site.machine.ip("address", "flush", "dev", "eth0", "scope", "global")


@OVER_IPV4
def test_leases_come_and_go_as_endpoints(site: Site, dhcp: str) -> None:
    """New, renewed, released, leased again, and expired: the Endpoint has the address exactly as long as the lease."""
    client = Client4(_mac(1), BIOS)
    _, leased = _ready(site, client.lease)
    site.wait_for_lease(_mac(1), leased.address)
    # Firmware, iPXE and the system ask again in turn, each in its own way: the address stays.
    _, by_ipxe = site.machine.inside(Client4(_mac(1), IPXE).lease)
    assert by_ipxe.address == leased.address
    site.machine.inside(lambda: client.request(leased))
    site.machine.inside(lambda: client.release(leased))
    site.wait_for_lease(_mac(1))
    _, again = site.machine.inside(client.lease)
    site.wait_for_lease(_mac(1), again.address)
    if dhcp == "kea":  # dnsmasq's shortest lease is two minutes; its call for an expired one is that for a release
        site.wait_for_lease(_mac(1))


@OVER_IPV4
def test_a_release_at_once_followed_by_a_lease_leaves_the_lease(site: Site, dhcp: str) -> None:
    """Firmware does so between PXE and HTTP boot; the calls of the hook are made in their order."""
    client = Client4(_mac(2), BIOS)
    _, leased = _ready(site, client.lease)

    def twice() -> str:
        for _ in range(3):
            client.release(leased)
            _, again = client.lease()
        return again.address

    last = site.machine.inside(twice)
    site.run.wait_for("the last call", lambda: not _hooks_running(site), LATE)
    assert site.leases().get(_mac(2)) == {last}


@OVER_IPV6
def test_leases_over_ipv6_belong_to_the_mac_address(site: Site, dhcp: str) -> None:
    """The client's packets have only a DUID of its UUID; renewals and a release are followed."""
    client = Client6(Kind("UEFI x86-64", 7), iaid=1)
    leased = _ready(site, client.lease)
    site.run.wait_for("lease over IPv6", lambda: leased.address in site.leases().get(MAC, set()), LATE)
    site.machine.inside(lambda: client.repeat(RENEW6, leased))
    assert leased.address in site.leases()[MAC]
    site.machine.inside(lambda: client.repeat(RELEASE6, leased))
    site.run.wait_for("release over IPv6", lambda: leased.address not in site.leases().get(MAC, set()), LATE)


def test_the_running_manager_says_where_it_boots_from(site: Site) -> None:
    """The URL and the networks of BMCs come from the Lease of its leader."""
    text = site.operator.metalctl("dhcp-config", "dnsmasq", "--from", "live", "--subnet", "10.77.0.0/24")
    assert f"dhcp-boot=tag:ipxe,{URL}/ipxe" in text
    assert "BMCs are enrolled in 192.0.2.0/24" in text


def _hooks_running(site: Site) -> bool:
    """Whether a call of the hook still runs or waits for another one."""
    pids = netns.ip("netns", "pids", site.host.name).split()
    lines = (_command_line(pid) for pid in pids)
    return any("lease-hook" in line and "dnsmasq" not in line.split("\0")[0] for line in lines)


def _command_line(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text()
    except OSError:
        return ""
