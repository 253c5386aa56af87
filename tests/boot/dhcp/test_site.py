"""The values of a DHCP configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.dhcp import dnsmasq, kea
from metal.boot.dhcp.site import InvalidSite, Site, addresses, prefix, site, subnets
from tests.boot.dhcp.sites import DUAL, ipv4, ipv6

URL = "http://192.0.2.1:8082"
NETS = subnets(["192.0.2.0/24"], [], [])


def test_the_upper_half_of_a_network_is_leased_unless_a_range_says_otherwise() -> None:
    """Ranges and routers belong to the network that has their addresses."""
    one, other = subnets(
        ["192.0.2.0/24", "198.51.100.0/25"], ["198.51.100.10-198.51.100.20"], ["198.51.100.1", "192.0.2.1"]
    )
    assert (str(one.first), str(one.last), str(one.router)) == ("192.0.2.128", "192.0.2.254", "192.0.2.1")
    assert (str(other.first), str(other.last), str(other.router)) == ("198.51.100.10", "198.51.100.20", "198.51.100.1")


def test_the_boot_server_is_the_tftp_server_unless_another_is_given() -> None:
    """In each family that machines use."""
    assert [str(address) for address in ipv4().tftp] == ["192.0.2.1"]
    assert [str(address) for address in ipv6().tftp] == ["2001:db8::1"]
    both = Site(
        "eth1", DUAL, subnets=NETS, prefix=prefix("2001:db8::/64"),
        dns=addresses(["192.0.2.3", "2001:db8::3"], "--dns"),
        tftp=addresses(["192.0.2.2", "2001:db8::2"], "--tftp-server"),
    )  # fmt: skip
    assert [str(address) for address in site(both).tftp] == ["192.0.2.2", "2001:db8::2"]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: subnets(["192.0.2.1/24"], [], []), "--subnet is '192.0.2.1/24': write a network such as 192.0.2.0/24"),
        (lambda: subnets(["192.0.2.0/31"], [], []), "from /8 to /29"),
        (lambda: subnets(["192.0.2.0/24", "192.0.0.0/16"], [], []), "overlap: give each network once"),
        (lambda: subnets(["192.0.2.0/24"], ["192.0.2.5"], []), "--range is '192.0.2.5': write two addresses"),
        (lambda: subnets(["192.0.2.0/24"], ["192.0.3.1-192.0.3.9"], []), "is in no --subnet: add its network"),
        (lambda: subnets(["192.0.2.0/24"], ["192.0.2.9-192.0.2.1"], []), "the lower address first"),
        (lambda: subnets(["192.0.2.0/24"], [], ["router"]), "--router is 'router': write an IP address"),
        (lambda: subnets(["192.0.2.0/24"], [], ["fe80::1"]), "write an IPv4 address"),
        (lambda: prefix("2001:db8::/48"), "--ipv6 is 2001:db8::/48: write a /64"),
        (lambda: prefix("x"), "--ipv6 is 'x': write a network such as"),
        (lambda: addresses(["fe80::1%eth0"], "--dns"), "--dns is 'fe80::1%eth0': write an IP address"),
        (lambda: site(Site("eth0", URL)), "no network is given: add --subnet"),
        (lambda: site(Site("eth0\nport=53", URL, NETS)), "--interface is 'eth0\\nport=53': write the name"),
        (lambda: site(Site("eth0", "ftp://192.0.2.1", NETS)), "--boot-url is 'ftp://192.0.2.1': write the URL"),
        (lambda: site(Site("eth0", URL + "/x,y", NETS)), "--boot-url is"),
        (lambda: site(Site("eth0", "http://192.0.2.1:70000", NETS)), "--boot-url is"),
        (lambda: site(Site("eth0", "http://127.0.0.1:8082", NETS)), "set advertise.boot in the configuration file"),
        (lambda: site(Site("eth0", "http://0.0.0.0:8082", NETS)), "to which machines cannot connect"),
        (lambda: site(Site("eth0", "http://[2001:db8::1]", NETS)), "which clients of --subnet cannot use"),
        (lambda: site(Site("eth0", URL, NETS, prefix("2001:db8::/64"))), "or leave out --ipv6"),
        (lambda: site(Site("eth0", DUAL, NETS)), "add --dns with its IPv4 address"),
        (lambda: ipv4(tftp=addresses(["192.0.2.2", "192.0.2.3"], "--tftp-server")), "has 2 IPv4 addresses: give one"),
        (
            lambda: site(Site("eth0", DUAL, NETS, dns=addresses(["192.0.2.3"], "--dns"))),
            "the TFTP server's IPv4 address is unknown: add --tftp-server",
        ),
        (lambda: ipv4(tftp_root="/srv/a b"), "--tftp-root is '/srv/a b': write an absolute path"),
        (lambda: ipv4(tftp_root="/srv/../etc"), "--tftp-root is"),
        (lambda: ipv4(hook='/x"'), "--hook is"),
        (lambda: ipv4(efi_binary="x.efi"), "write snponly.efi or ipxe.efi"),
        (lambda: ipv4(lease_seconds=1), "--lease-time is 1 s: write at least 10s"),
        (lambda: dnsmasq.configuration(ipv4(lease_seconds=60)), "dnsmasq needs at least 120s"),
        (lambda: ipv4(notes=("a\nport=53",)), "has a control character"),
    ],
)
def test_an_invalid_value_is_refused_with_the_option_and_the_fix(made, sentence: str) -> None:  # type: ignore[no-untyped-def]
    """The sentence says what to write instead."""
    with pytest.raises(InvalidSite) as refused:
        made()
    assert sentence in str(refused.value)


NASTY = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="/a1.:-_\n\r\0\"'\\,#$;% ", max_size=20),
    st.sampled_from(["eth0", "/etc/x", "/a\n", "/a#b", "http://192.0.2.1/a\rb", "http://192.0.2.1/${x}", "eth0,lo"]),
)


@given(interface=NASTY, url=NASTY, root=NASTY, hook=NASTY, note=NASTY)
def test_no_value_leaves_its_line(interface: str, url: str, root: str, hook: str, note: str) -> None:
    """Whatever is accepted, each file has the lines that it has with harmless values."""
    for field, value in (("interface", interface), ("boot_url", url), ("tftp_root", root), ("hook", hook)):
        made = {"interface": "eth0", "boot_url": URL, "subnets": NETS, field: value}
        try:
            accepted = site(Site(**made))  # type: ignore[arg-type]
        except InvalidSite:
            continue
        _same_lines(accepted, ipv4())
    try:
        _same_lines(ipv4(notes=(note,)), ipv4(notes=("x",)))
    except InvalidSite:
        assert not note.isprintable()


def _same_lines(one: Site, other: Site) -> None:
    for text in (dnsmasq.configuration, lambda made: kea.configuration4(made, "/usr/lib/kea")):
        assert len(text(one).splitlines()) == len(text(other).splitlines())
        assert not set(text(one)) & set("\0\r\x0b\x0c\x85\u2028")
