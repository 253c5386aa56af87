"""A configuration file of dnsmasq: DHCP and TFTP, or TFTP alone beside another DHCP server."""

from collections.abc import Iterator

from metal.boot.dhcp.firmware import FIRMWARE, HTTP_CLASS, IPXE_CLASS, Firmware
from metal.boot.dhcp.site import InvalidSite, Site

_HTTP = "http-boot"
"""Tag of clients with the vendor class HTTPClient."""
_SHORTEST = 120
"""Seconds of a lease; dnsmasq silently uses this for a shorter one."""


def configuration(site: Site) -> str:
    """DHCP for both families and TFTP. Raises InvalidSite."""
    if site.lease_seconds < _SHORTEST:
        raise InvalidSite(f"--lease-time is {site.lease_seconds} s: dnsmasq needs at least {_SHORTEST}s")
    return _text(_common(site, "DHCP and TFTP"), _tftp(site), _dhcp(site), _ipv4(site), _ipv6(site))


def tftp_configuration(site: Site) -> str:
    """TFTP alone, for a site whose DHCP server has none, such as Kea."""
    return _text(_common(site, "TFTP"), _tftp(site))


def _text(*parts: Iterator[str]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def _common(site: Site, what: str) -> Iterator[str]:
    yield f"# {what} for network boot, written by metalctl dhcp-config. Run it again instead of changing this file."
    yield from (f"# {note}" for note in site.notes)
    yield ""
    yield "# No DNS. Only this interface, also where another dnsmasq runs."
    yield "port=0"
    yield f"interface={site.interface}"
    yield "except-interface=lo"
    yield "bind-dynamic"


def _tftp(site: Site) -> Iterator[str]:
    yield ""
    yield "# TFTP serves iPXE to PXE firmware, and nothing else."
    yield "enable-tftp"
    yield f"tftp-root={site.tftp_root}"


def _dhcp(site: Site) -> Iterator[str]:
    yield ""
    yield "# Reports each lease. Boot scripts and Ignition are served only to the address that a machine leased."
    yield f"dhcp-script={site.hook}"
    yield ""
    yield "# Firmware, iPXE and operating system identify themselves differently: only the MAC address counts."
    yield "dhcp-ignore-clid"
    yield "dhcp-authoritative"
    yield ""
    yield "# iPXE gets its script; other firmware gets iPXE, by its architecture and by how it boots."
    yield f"dhcp-userclass=set:ipxe,{IPXE_CLASS}"


def _ipv4(site: Site) -> Iterator[str]:
    if not site.subnets:
        return
    for subnet in site.subnets:
        yield from ("", f"# {subnet.network}")
        tag = f"net-{str(subnet.network.network_address).replace('.', '-')}"
        yield f"dhcp-range=set:{tag},{subnet.first},{subnet.last},{subnet.network.netmask},{site.lease_seconds}"
        # Without a value dnsmasq sends no router; without the line, its own address.
        yield f"dhcp-option=tag:{tag},option:router" + (f",{subnet.router}" if subnet.router else "")
    names = "".join(f",{address}" for address in site.name_servers(4))
    yield f"dhcp-option=option:dns-server{names}"
    yield ""
    yield f"dhcp-vendorclass=set:{_HTTP},{HTTP_CLASS}"
    for firmware in FIRMWARE:
        yield from (f"dhcp-match=set:{firmware.name},option:client-arch,{arch}" for arch in firmware.architectures)
    yield from ("", f"dhcp-boot=tag:ipxe,{site.script_url}")
    for firmware in FIRMWARE:
        yield from _offer(site, firmware)
    yield "# Firmware that boots by HTTP ignores answers without this class."
    yield f"dhcp-option-force=tag:!ipxe,tag:{_HTTP},option:vendor-class,{HTTP_CLASS}"


def _offer(site: Site, firmware: Firmware) -> Iterator[str]:
    yield f"# {firmware.title}"
    if firmware.http:
        yield f"dhcp-boot=tag:!ipxe,tag:{_HTTP},tag:{firmware.name},{site.loader_url(firmware)}"
    else:
        server = site.tftp_server(4)
        yield f"dhcp-boot=tag:!ipxe,tag:!{_HTTP},tag:{firmware.name},{site.tftp_file(firmware)},,{server}"


def _ipv6(site: Site) -> Iterator[str]:
    if site.prefix is None:
        return
    yield from ("", f"# {site.prefix.network}")
    yield "# Addresses come from DHCP alone, so that each is a lease; routers advertise that."
    yield "enable-ra"
    yield f"dhcp-range={site.prefix.first},{site.prefix.last},64,{site.lease_seconds}"
    names = "".join(f",[{address}]" for address in site.name_servers(6))
    if names:
        yield f"dhcp-option=option6:dns-server{names}"
    for firmware in site.firmware6:
        for arch in firmware.architectures:
            yield f"dhcp-match=set:{firmware.name},option6:61,{arch >> 8:02x}:{arch & 255:02x}"
    yield f"dhcp-option=tag:ipxe,option6:bootfile-url,{site.script_url}"
    for firmware in site.firmware6:
        yield f"# {firmware.title}"
        yield f"dhcp-option=tag:!ipxe,tag:{firmware.name},option6:bootfile-url,{site.firmware_url(firmware)}"
        if firmware.http:
            # dnsmasq writes texts with their lengths: the first one fills the enterprise number, which no client reads.
            yield f"dhcp-option=tag:!ipxe,tag:{firmware.name},option6:16,xx,{HTTP_CLASS}"
