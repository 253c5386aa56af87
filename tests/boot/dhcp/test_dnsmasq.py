"""dnsmasq's configuration. tests/lab/test_dhcp.py runs it."""

from metal.boot.dhcp.dnsmasq import configuration, tftp_configuration
from tests.boot.dhcp.sites import ipv4, ipv6

KEYS = {
    "port", "interface", "except-interface", "bind-dynamic", "enable-tftp", "tftp-root", "dhcp-script",
    "dhcp-ignore-clid", "dhcp-authoritative", "dhcp-userclass", "dhcp-range", "dhcp-option", "dhcp-vendorclass",
    "dhcp-match", "dhcp-boot", "dhcp-option-force", "enable-ra",
}  # fmt: skip


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_each_line_is_an_option_that_the_file_is_meant_to_have() -> None:
    """In both families."""
    for made in (ipv4(), ipv6()):
        assert {line.partition("=")[0] for line in _lines(configuration(made))} <= KEYS


def test_only_ipxe_gets_the_script_and_only_http_firmware_a_url() -> None:
    """Each offer names the tags that its client must have, and those that it must not have."""
    boots = [line.removeprefix("dhcp-boot=") for line in _lines(configuration(ipv4())) if line.startswith("dhcp-boot=")]
    assert boots[0] == "tag:ipxe,http://192.0.2.1:8082/ipxe"
    assert all(line.startswith("tag:!ipxe,tag:http-boot,") == ("/httpboot/" in line) for line in boots[1:])
    assert all(line.startswith("tag:!ipxe,tag:!http-boot,") == line.endswith(",,192.0.2.1") for line in boots[1:])


def test_clients_get_only_the_routers_and_name_servers_that_were_given() -> None:
    """By itself dnsmasq would name its own address as both."""
    text = configuration(ipv4())
    assert "\ndhcp-option=tag:net-192-0-2-0,option:router\n" in text
    assert "\ndhcp-option=option:dns-server\n" in text


def test_without_ipv6_nothing_is_advertised() -> None:
    """And without IPv4 no IPv4 address is leased."""
    assert "enable-ra" not in configuration(ipv4())
    assert "192.0.2" not in configuration(ipv6())
    assert "dhcp-boot" not in configuration(ipv6())


def test_tftp_alone_answers_no_dhcp() -> None:
    """Kea is the DHCP server then."""
    assert not [line for line in _lines(tftp_configuration(ipv4())) if "dhcp" in line]


def test_another_efi_binary_is_offered_for_both_architectures_by_tftp_only() -> None:
    """Firmware that boots by HTTP gets what the boot server has."""
    text = configuration(ipv4(efi_binary="ipxe.efi"))
    assert "ipxe.efi,,192.0.2.1" in text
    assert "arm64-efi/ipxe.efi,,192.0.2.1" in text
    assert "snponly" not in text
