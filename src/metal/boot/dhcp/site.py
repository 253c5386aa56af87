"""The values of a DHCP configuration. Each is validated here, so that none can leave its line in any of the formats."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

from metal.boot.dhcp.firmware import FIRMWARE, LOADER_PATH, SCRIPT_PATH, Firmware

Address = IPv4Address | IPv6Address
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
_PATH = re.compile(r"/[A-Za-z0-9._+@/-]*")
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?")
_LONGEST_URL = 200
"""Bytes of a boot URL: DHCPv4 options end at 255, and paths are appended."""
_V6_FIRST, _V6_LAST = 0x1000, 0x1FFF
"""Host parts of the leased IPv6 addresses: room for 4096 machines beside addresses that were set by hand."""
_SHORTEST = 10
"""Seconds of a lease: each one starts a program for each machine."""


class InvalidSite(ValueError):
    """A value is invalid. str() is a sentence with the option and the fix."""


@dataclass(frozen=True)
class Subnet:
    """An IPv4 network with the addresses that are leased in it, both ends included."""

    network: IPv4Network
    first: IPv4Address
    last: IPv4Address
    router: IPv4Address | None = None


@dataclass(frozen=True)
class Prefix:
    """An IPv6 network with the addresses that are leased in it, both ends included."""

    network: IPv6Network

    @property
    def first(self) -> IPv6Address:
        """The first leased address."""
        return self.network[_V6_FIRST]

    @property
    def last(self) -> IPv6Address:
        """The last leased address."""
        return self.network[_V6_LAST]


@dataclass(frozen=True)
class Site:
    """A site's boot network. Make it with `site`, which validates every value."""

    interface: str
    boot_url: str
    subnets: tuple[Subnet, ...] = ()
    prefix: Prefix | None = None
    tftp: tuple[Address, ...] = ()
    """Addresses of the TFTP server, at most one of each family."""
    dns: tuple[Address, ...] = ()
    tftp_root: str = "/usr/lib/ipxe"
    efi_binary: str = "snponly.efi"
    hook: str = "/etc/metal/lease-hook"
    lease_seconds: int = 3600
    notes: tuple[str, ...] = ()
    """Further lines for the comment at the top."""

    @property
    def script_url(self) -> str:
        """URL of the first script, for iPXE."""
        return self.boot_url + SCRIPT_PATH

    def loader_url(self, firmware: Firmware) -> str:
        """URL of the binary for firmware that boots by HTTP."""
        return f"{self.boot_url}{LOADER_PATH}/{firmware.file}"

    def tftp_file(self, firmware: Firmware) -> str:
        """Path below the TFTP root of the binary for firmware that boots by PXE."""
        return firmware.file.replace("snponly.efi", self.efi_binary)

    def tftp_server(self, version: int) -> Address | None:
        """Address of the TFTP server in one family."""
        return next((address for address in self.tftp if address.version == version), None)

    def name_servers(self, version: int) -> tuple[Address, ...]:
        """Addresses of the name servers in one family."""
        return tuple(address for address in self.dns if address.version == version)

    def firmware_url(self, firmware: Firmware) -> str:
        """What DHCPv6 offers this firmware: always a URL."""
        if firmware.http:
            return self.loader_url(firmware)
        return f"tftp://[{self.tftp_server(6)}]/{self.tftp_file(firmware)}"

    @property
    def firmware6(self) -> tuple[Firmware, ...]:
        """The firmware that can boot over IPv6."""
        return tuple(firmware for firmware in FIRMWARE if firmware.ipv6)


def subnets(networks: Iterable[str], ranges: Iterable[str], routers: Iterable[str]) -> tuple[Subnet, ...]:
    """The IPv4 networks with their ranges and routers, which are found by their addresses. Raises InvalidSite."""
    found = [_subnet(text) for text in networks]
    for one, other in ((a, b) for i, a in enumerate(found) for b in found[:i]):
        if one.network.overlaps(other.network):
            raise InvalidSite(f"--subnet {one.network} and --subnet {other.network} overlap: give each network once")
    for text in ranges:
        first, last = _ends(text)
        number = _index(found, first, f"--range {text}")
        if last not in found[number].network or first > last:
            raise InvalidSite(f"--range {text} must be within {found[number].network}, the lower address first")
        found[number] = replace(found[number], first=first, last=last)
    for text in routers:
        router = _ipv4(text, "--router")
        number = _index(found, router, f"--router {text}")
        found[number] = replace(found[number], router=router)
    return tuple(found)


def prefix(text: str) -> Prefix:
    """The IPv6 network. Raises InvalidSite."""
    try:
        network = IPv6Network(text)
    except ValueError as exc:
        raise InvalidSite(f"--ipv6 is {_shown(text)}: write a network such as 2001:db8:1::/64 ({exc})") from None
    if network.prefixlen != 64:
        raise InvalidSite(f"--ipv6 is {network}: write a /64, which router advertisements need")
    return Prefix(network)


def addresses(texts: Iterable[str], option: str) -> tuple[Address, ...]:
    """IP addresses of either family. Raises InvalidSite."""
    return tuple(_address(text, option) for text in texts)


def site(made: Site) -> Site:
    """The same site with every value validated, and the TFTP server of each family found. Raises InvalidSite."""
    if not _INTERFACE.fullmatch(made.interface):
        raise InvalidSite(f"--interface is {_shown(made.interface)}: write the name of one interface, such as eth0")
    if not made.subnets and made.prefix is None:
        raise InvalidSite("no network is given: add --subnet 192.0.2.0/24, --ipv6 2001:db8:1::/64 or both")
    for option, value in (("--tftp-root", made.tftp_root), ("--hook", made.hook)):
        if not _PATH.fullmatch(value) or "/../" in f"{value}/":
            raise InvalidSite(f"{option} is {_shown(value)}: write an absolute path of letters, digits and . _ + @ -")
    if made.efi_binary not in ("snponly.efi", "ipxe.efi"):
        raise InvalidSite(f"--efi-binary is {_shown(made.efi_binary)}: write snponly.efi or ipxe.efi")
    if made.lease_seconds < _SHORTEST:
        raise InvalidSite(f"--lease-time is {made.lease_seconds} s: write at least {_SHORTEST}s")
    made = replace(made, boot_url=_boot_url(made.boot_url))
    _check_notes(made.notes)
    return _with_tftp(made, _check_host(made))


def _check_notes(notes: Iterable[str]) -> None:
    for note in notes:
        if not note.isprintable():
            raise InvalidSite(f"the note {_shown(note)} has a control character")


def _boot_url(text: str) -> str:
    url = text.rstrip("/")
    fix = "write the URL at which machines reach the boot server, such as http://192.0.2.1:8082"
    try:
        parts = urlsplit(url)
        usable = _URL.fullmatch(url) and parts.hostname and (parts.port or 1) and not parts.username
    except ValueError:
        usable = False
    if not usable or len(url) > _LONGEST_URL:
        raise InvalidSite(f"--boot-url is {_shown(text)}: {fix}")
    return url


def _check_host(made: Site) -> Address | None:
    """The address in the boot URL, if it has one, which clients of each family must be able to use."""
    host = urlsplit(made.boot_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        _check_name(made, host)
        return None
    if address.is_loopback or address.is_unspecified:
        raise InvalidSite(
            f"--boot-url is {made.boot_url}, to which machines cannot connect: set advertise.boot in the configuration "
            "file, or --boot-url"
        )
    for option, used, version in (("--subnet", made.subnets, 4), ("--ipv6", made.prefix, 6)):
        if used and address.version != version:
            raise InvalidSite(
                f"--boot-url {made.boot_url} has an IPv{address.version} address, which clients of {option} cannot "
                f"use: write a DNS name with addresses of both families, or leave out {option}"
            )
    return address


def _check_name(made: Site, host: str) -> None:
    families = [4] * bool(made.subnets) + [6] * bool(made.prefix)
    for version in families:
        if not made.name_servers(version):
            raise InvalidSite(
                f"--boot-url has the name {host}, and IPv{version} clients get no name server: add --dns with its "
                f"IPv{version} address, or write an address in --boot-url"
            )


def _with_tftp(made: Site, host: Address | None) -> Site:
    """The boot server's own address is the TFTP server where none is given."""
    wanted = [4] * bool(made.subnets) + [6] * bool(made.prefix)
    chosen: list[Address] = []
    for version in wanted:
        given = [address for address in made.tftp if address.version == version]
        if len(given) > 1:
            raise InvalidSite(f"--tftp-server has {len(given)} IPv{version} addresses: give one")
        if not given and (host is None or host.version != version):
            raise InvalidSite(f"the TFTP server's IPv{version} address is unknown: add --tftp-server")
        chosen.append(given[0] if given else host)  # type: ignore[arg-type]  # checked just above
    return replace(made, tftp=tuple(chosen))


def _subnet(text: str) -> Subnet:
    try:
        network = IPv4Network(text)
    except ValueError as exc:
        raise InvalidSite(f"--subnet is {_shown(text)}: write a network such as 192.0.2.0/24 ({exc})") from None
    if not 8 <= network.prefixlen <= 29:
        raise InvalidSite(f"--subnet is {network}: write a network of a length from /8 to /29")
    # The lower half stays free for routers, servers and other addresses that are set by hand.
    return Subnet(network, network[network.num_addresses // 2], network[-2])


def _ends(text: str) -> tuple[IPv4Address, IPv4Address]:
    first, dash, last = text.partition("-")
    if not dash:
        raise InvalidSite(f"--range is {_shown(text)}: write two addresses such as 192.0.2.100-192.0.2.199")
    return _ipv4(first, "--range"), _ipv4(last, "--range")


def _index(found: list[Subnet], address: IPv4Address, what: str) -> int:
    for number, subnet in enumerate(found):
        if address in subnet.network:
            return number
    raise InvalidSite(f"{what} is in no --subnet: add its network")


def _ipv4(text: str, option: str) -> IPv4Address:
    address = _address(text, option)
    if not isinstance(address, IPv4Address):
        raise InvalidSite(f"{option} is {address}: write an IPv4 address")
    return address


def _address(text: str, option: str) -> Address:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        address = None
    if address is None or "%" in text:
        raise InvalidSite(f"{option} is {_shown(text)}: write an IP address such as 192.0.2.1")
    return address


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "…")
