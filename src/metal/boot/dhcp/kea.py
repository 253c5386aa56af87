"""Configuration files of Kea's DHCPv4 and DHCPv6 servers. Kea has no TFTP server and sends no router advertisements."""

import json
from typing import Any

from metal.boot.dhcp.firmware import FIRMWARE, HTTP_CLASS, IPXE_CLASS, Firmware
from metal.boot.dhcp.site import Site

Json = dict[str, Any]
_VENDOR_CLASS = ((343).to_bytes(4, "big") + len(HTTP_CLASS).to_bytes(2, "big") + HTTP_CLASS.encode()).hex()
"""DHCPv6 option 16: an enterprise number (Intel's, which firmware sends, too), and a text with its length."""
_IPXE4 = f"option[77].hex == '{IPXE_CLASS}' or substring(option[77].hex,1,{len(IPXE_CLASS)}) == '{IPXE_CLASS}'"
"""iPXE sends the bare text; RFC 3004 puts its length before it."""
_IPXE6 = f"substring(option[15].hex,2,{len(IPXE_CLASS)}) == '{IPXE_CLASS}'"
_HTTP4 = f"substring(option[60].hex,0,{len(HTTP_CLASS)}) == '{HTTP_CLASS}'"
_HTTP6 = f"substring(option[16].hex,6,{len(HTTP_CLASS)}) == '{HTTP_CLASS}'"


def configuration4(site: Site, hooks: str) -> str:
    """kea-dhcp4.conf. hooks is the folder of Kea's hook libraries."""
    server = {
        "comment": "Firmware, iPXE and operating system identify themselves differently: only the MAC address counts.",
        "match-client-id": False,
        "authoritative": True,
        **_common(site, hooks),
        "option-data": _names(site, 4, "domain-name-servers"),
        "client-classes": [_ipxe(_IPXE4, "boot-file-name", site), *(_class4(site, kind) for kind in FIRMWARE)],
        "subnet4": [
            {
                "id": number,
                "subnet": str(subnet.network),
                "pools": [{"pool": f"{subnet.first} - {subnet.last}"}],
                "option-data": [{"name": "routers", "data": str(subnet.router)}] if subnet.router else [],
            }
            for number, subnet in enumerate(site.subnets, 1)
        ],
    }
    return _text(site, "Dhcp4", server)


def configuration6(site: Site, hooks: str) -> str:
    """kea-dhcp6.conf. The site has an IPv6 network."""
    assert site.prefix is not None  # noqa: S101  # the caller prints this file for such a site only
    server = {
        "comment": "A router must advertise this network with the flag M (managed), and not for SLAAC.",
        **_common(site, hooks),
        "preferred-lifetime": site.lease_seconds,
        "option-data": _names(site, 6, "dns-servers"),
        "client-classes": [_ipxe(_IPXE6, "bootfile-url", site), *(_class6(site, kind) for kind in site.firmware6)],
        "subnet6": [
            {
                "id": 1,
                "subnet": str(site.prefix.network),
                "interface": site.interface,
                "rapid-commit": False,
                "pools": [{"pool": f"{site.prefix.first} - {site.prefix.last}"}],
            }
        ],
    }
    return _text(site, "Dhcp6", server)


def _common(site: Site, hooks: str) -> Json:
    return {
        # At start-up an interface may have no address, or one that is still checked for duplicates.
        "interfaces-config": {
            "interfaces": [site.interface],
            "service-sockets-max-retries": 150,
            "service-sockets-retry-wait-time": 2000,
        },
        "lease-database": {"type": "memfile", "persist": True},
        "valid-lifetime": site.lease_seconds,
        "hooks-libraries": [
            {
                "library": f"{hooks}/libdhcp_run_script.so",
                # Kea does not wait for the program: a slow API must not delay DHCP.
                "parameters": {"name": site.hook, "sync": False},
            }
        ],
    }


def _names(site: Site, version: int, option: str) -> list[Json]:
    found = site.name_servers(version)
    return [{"name": option, "data": ", ".join(map(str, found))}] if found else []


def _ipxe(test: str, option: str, site: Site) -> Json:
    return {
        "comment": "iPXE gets the boot server's first script.",
        "name": "ipxe",
        "test": test,
        "option-data": [_sent(option, site.script_url)],
    }


def _class4(site: Site, firmware: Firmware) -> Json:
    described = {"comment": firmware.title, "name": firmware.name, "test": _test(firmware, 93, _HTTP4)}
    if firmware.http:
        # Firmware that boots by HTTP ignores answers without the vendor class.
        sent = [_sent("boot-file-name", site.loader_url(firmware)), _sent("vendor-class-identifier", HTTP_CLASS)]
        return {**described, "option-data": sent}
    return {**described, "next-server": str(site.tftp_server(4)), "boot-file-name": site.tftp_file(firmware)}


def _class6(site: Site, firmware: Firmware) -> Json:
    sent = [_sent("bootfile-url", site.firmware_url(firmware))]
    if firmware.http:
        sent.append({**_sent("vendor-class", _VENDOR_CLASS), "csv-format": False})
    test = _test(firmware, 61, _HTTP6)
    return {"comment": firmware.title, "name": firmware.name, "test": test, "option-data": sent}


def _test(firmware: Firmware, option: int, http: str) -> str:
    archs = " or ".join(f"substring(option[{option}].hex,0,2) == 0x{arch:04x}" for arch in firmware.architectures)
    return f"not member('ipxe') and {'' if firmware.http else 'not '}({http}) and ({archs})"


def _sent(name: str, data: str) -> Json:
    """An option that is sent whether the client asks for it or not. Kea splits text at commas, which none here has."""
    return {"name": name, "data": data, "always-send": True}


def _text(site: Site, name: str, server: Json) -> str:
    lines = [
        f"// {name} for network boot, written by metalctl dhcp-config. Run it again instead of changing this file.",
        *(f"// {note}" for note in site.notes),
        "// The hook reports each lease: boot scripts and Ignition are served only to the leased address.",
    ]
    return "\n".join(lines) + "\n" + json.dumps({name: server}, indent=2) + "\n"
