"""Kea's configurations. tests/lab/test_dhcp.py runs them."""

import json
import re
from typing import Any

from metal.boot.dhcp.kea import configuration4, configuration6
from tests.boot.dhcp.sites import ipv4, ipv6


def _read(text: str) -> Any:
    return json.loads(re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))


def test_the_files_are_json_below_comments() -> None:
    """Comments are lines at the top; each file is for one daemon."""
    v4, v6 = _read(configuration4(ipv4(), "/usr/lib/kea")), _read(configuration6(ipv6(), "/usr/lib/kea"))
    assert (list(v4), list(v6)) == (["Dhcp4"], ["Dhcp6"])
    for server in (v4["Dhcp4"], v6["Dhcp6"]):
        (hook,) = server["hooks-libraries"]
        assert hook["library"] == "/usr/lib/kea/libdhcp_run_script.so"
        assert hook["parameters"] == {"name": "/etc/metal/lease-hook", "sync": False}


def test_no_client_is_in_two_classes() -> None:
    """iPXE is in no other class, and a client of HTTP in none of PXE: Kea would mix what they send."""
    for server in (_read(configuration4(ipv4(), "/k"))["Dhcp4"], _read(configuration6(ipv6(), "/k"))["Dhcp6"]):
        ipxe, *others = server["client-classes"]
        assert ipxe["name"] == "ipxe"
        assert all(kind["test"].startswith("not member('ipxe') and ") for kind in others)
        assert all(("and not (" in kind["test"]) != kind["name"].startswith("http-") for kind in others)
        archs = [arch for kind in others for arch in re.findall(r"0x[0-9a-f]{4}", kind["test"])]
        assert len(archs) == len(set(archs))


def test_the_vendor_class_of_dhcpv6_has_an_enterprise_number_and_a_length() -> None:
    """Kea takes it as bytes."""
    server = _read(configuration6(ipv6(), "/k"))["Dhcp6"]
    (kind,) = (kind for kind in server["client-classes"] if kind["name"] == "http-x86-64")
    sent = {option["name"]: option["data"] for option in kind["option-data"]}
    assert bytes.fromhex(sent["vendor-class"]) == b"\x00\x00\x01\x57\x00\x0aHTTPClient"
    assert sent["bootfile-url"] == "http://[2001:db8::1]:8082/httpboot/x86_64.efi"
