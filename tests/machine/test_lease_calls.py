"""Calls of the lease hook by dnsmasq and Kea."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.machine.lease_calls import LeaseChange, UnknownAction, changes

MAC, IP, IP6 = "52:54:00:77:cc:01", "192.0.2.11", "2001:db8::1000"
UUID_DUID = "00:04:44:45:4c:4c:42:00:10:35:80:52:b4:c0:4f:4a:37:32"
DIRECT = {"QUERY6_REMOTE_ADDR": "fe80::5054:ff:fe77:cc01", "QUERY6_LOCAL_ADDR": "ff02::1:2", "QUERY6_TYPE": "REQUEST"}


@pytest.mark.parametrize(("action", "given"), [("add", True), ("old", True), ("del", False)])
def test_dnsmasq_says_it_in_its_arguments(action: str, given: bool) -> None:
    """A host name at the end is not used."""
    assert changes((action, MAC, IP, "--help"), {}) == (LeaseChange(given, MAC, IP),)


def test_dnsmasq_has_the_mac_address_of_a_dhcpv6_client_in_the_environment() -> None:
    """Its argument is the DUID; after a restart dnsmasq does not know the MAC address. An end has none."""
    environment = {"DNSMASQ_IAID": "1", "DNSMASQ_MAC": MAC}
    assert changes(("add", UUID_DUID, IP6), environment) == (LeaseChange(True, MAC, IP6),)
    assert changes(("old", UUID_DUID, IP6), {"DNSMASQ_IAID": "1"}) == (LeaseChange(True, "", IP6),)
    assert changes(("del", UUID_DUID, IP6), environment) == (LeaseChange(False, "", IP6),)


def test_kea_commits_several_leases_and_ended_ones_come_first() -> None:
    """A client that gets another address has lost the first one."""
    environment = {
        "QUERY4_TYPE": "DHCPREQUEST",
        "LEASES4_SIZE": "1", "LEASES4_AT0_ADDRESS": IP, "LEASES4_AT0_HWADDR": MAC,
        "DELETED_LEASES4_SIZE": "1", "DELETED_LEASES4_AT0_ADDRESS": "192.0.2.9", "DELETED_LEASES4_AT0_HWADDR": MAC,
    }  # fmt: skip
    found = changes(("leases4_committed",), environment)
    assert found == (LeaseChange(False, MAC, "192.0.2.9"), LeaseChange(True, MAC, IP))


@pytest.mark.parametrize(
    ("point", "given"), [("renew", True), ("expire", False), ("release", False), ("decline", False)]
)
def test_kea_names_what_happened_to_one_lease(point: str, given: bool) -> None:
    """An expired lease has no query."""
    assert changes((f"lease4_{point}",), {"LEASE4_ADDRESS": IP, "LEASE4_HWADDR": MAC}) == (LeaseChange(given, MAC, IP),)


def test_a_discover_leases_nothing() -> None:
    """Kea calls lease4_renew for it, too; anybody can send one in another's name."""
    environment = {"LEASE4_ADDRESS": IP, "LEASE4_HWADDR": MAC, "QUERY4_TYPE": "DHCPDISCOVER"}
    assert changes(("lease4_renew",), environment) == ()


@pytest.mark.parametrize(
    ("more", "mac"),
    [
        ({"LEASES6_AT0_HWADDR": MAC}, MAC),
        ({"LEASES6_AT0_DUID": f"00:03:00:01:{MAC}"}, MAC),
        ({"LEASES6_AT0_DUID": f"00:01:00:01:2a:2b:2c:2d:{MAC}"}, MAC),
        ({"LEASES6_AT0_DUID": f"00:03:00:06:{MAC}"}, ""),
        (DIRECT, MAC),
        (DIRECT | {"QUERY6_LOCAL_ADDR": "2001:db8::1"}, ""),
        (DIRECT | {"QUERY6_REMOTE_ADDR": "fe80::1"}, ""),
        (DIRECT | {"QUERY6_REMOTE_ADDR": "2001:db8::5054:ff:fe77:cc01"}, ""),
        (DIRECT | {"QUERY6_REMOTE_ADDR": "nonsense"}, ""),
    ],
)
def test_the_mac_address_over_dhcpv6_is_keas_or_the_duids_or_of_the_link_local_address(
    more: dict[str, str], mac: str
) -> None:
    """A relay's address is not the client's."""
    lease = {"LEASES6_SIZE": "1", "LEASES6_AT0_ADDRESS": IP6, "LEASES6_AT0_TYPE": "IA_NA", "LEASES6_AT0_HWADDR": ""}
    environment = lease | {"LEASES6_AT0_DUID": UUID_DUID} | more
    assert changes(("leases6_committed",), environment) == (LeaseChange(True, mac, IP6),)


def test_delegated_prefixes_are_no_leases_of_addresses() -> None:
    """IA_PD."""
    environment = {"LEASE6_ADDRESS": "2001:db8:1::", "LEASE6_TYPE": "IA_PD", "LEASE6_DUID": UUID_DUID}
    assert changes(("lease6_renew",), environment) == ()


@pytest.mark.parametrize("action", ["init", "tftp", "arp-add", "relay-snoop", "lease4_recover"])
def test_other_calls_change_nothing(action: str) -> None:
    """dnsmasq and Kea make them."""
    assert changes((action, MAC, IP), {}) == ()


@pytest.mark.parametrize("action", ["steal", "lease4_steal", "lease5_renew", ""])
def test_an_unknown_action_is_refused(action: str) -> None:
    """The sentence lists what is known."""
    with pytest.raises(UnknownAction, match="ACTION is"):
        changes((action,), {})


@given(size=st.text(max_size=12))
def test_a_size_is_no_way_to_make_it_work_for_ever(size: str) -> None:
    """Only the leases that are there count."""
    environment = {"LEASES4_SIZE": size, "LEASES4_AT0_ADDRESS": IP, "LEASES4_AT0_HWADDR": MAC}
    assert len(changes(("leases4_committed",), environment)) <= 1
