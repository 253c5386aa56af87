"""Leases of a DHCP server become Endpoints."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.endpoint import Endpoint
from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.protocol import Client
from metal.machine.directory import ListingDirectory
from metal.machine.leases import canonical_mac, endpoint_name, lease_ended, lease_given
from tests.crds import crds

KINDS = kinds()
MAC, OTHER = "52:54:00:00:00:01", "52:54:00:00:00:02"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of an API with our kinds."""
    api = EmbeddedAPI(None, lambda: datetime(2026, 1, 1, tzinfo=UTC), rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    yield api.client()
    await api.stop()


async def _all(client: Client) -> dict[str, str | None]:
    items: tuple[Endpoint, ...] = (await client.list(KINDS.endpoint)).items
    return {e.spec.mac_address: e.spec.ip for e in items}


async def test_a_lease_makes_an_endpoint_named_by_its_mac(client: Client) -> None:
    """The spelling of the MAC does not matter."""
    made = await lease_given(client, KINDS, "52-54-00-00-00-01", "10.0.0.1")
    assert made.metadata.name == "mac-52-54-00-00-00-01"
    assert await _all(client) == {MAC: "10.0.0.1"}


async def test_a_renewed_lease_changes_nothing_and_a_new_address_is_followed(client: Client) -> None:
    """The Endpoint has the address of the last lease."""
    first = await lease_given(client, KINDS, MAC, "10.0.0.1")
    again = await lease_given(client, KINDS, MAC, "10.0.0.1")
    await lease_given(client, KINDS, MAC, "10.0.0.7")
    assert first.metadata.resource_version == again.metadata.resource_version
    assert await _all(client) == {MAC: "10.0.0.7"}


async def test_an_address_that_goes_to_another_device_is_taken_from_the_first(client: Client) -> None:
    """Otherwise the new holder would be taken for the old machine, and be served its boot script."""
    await lease_given(client, KINDS, MAC, "10.0.0.1")
    await lease_given(client, KINDS, OTHER, "10.0.0.1")
    assert await _all(client) == {MAC: None, OTHER: "10.0.0.1"}


async def test_an_ended_lease_leaves_a_bmc_its_endpoint_without_an_address(client: Client) -> None:
    """The address is removed only if it is still that of the lease."""
    made = await lease_given(client, KINDS, MAC, "10.0.0.1")
    name = {"name": made.metadata.name}
    spec = {"endpointRef": name, "bmcSecretRef": name, "protocol": {"name": "Redfish", "port": 443}}
    await client.create(KINDS.bmc, {"metadata": name, "spec": spec})
    await lease_ended(client, KINDS, MAC, "10.0.0.9")
    before = await _all(client)
    await lease_ended(client, KINDS, MAC, "10.0.0.1")
    assert before == {MAC: "10.0.0.1"}
    assert await _all(client) == {MAC: None}


async def test_an_endpoint_that_was_only_a_lease_goes_with_it(client: Client) -> None:
    """Otherwise a client that requests addresses for ever new MAC addresses would fill the API."""
    for number in range(50):
        mac = f"52:54:00:00:01:{number:02x}"
        await lease_given(client, KINDS, mac, "10.0.0.1")
        await lease_ended(client, KINDS, mac, "10.0.0.1")
    assert await _all(client) == {}


@pytest.mark.parametrize("metadata", [{"name": "node7"}, {"labels": {"rack": "1"}}, {"annotations": {"a": "b"}}])
async def test_an_endpoint_that_somebody_cares_for_outlives_its_lease(client: Client, metadata: dict[str, Any]) -> None:
    """It has a name, a label or an annotation that the lease hook does not set."""
    spec = {"macAddress": MAC, "ip": "10.0.0.1"}
    await client.create(KINDS.endpoint, {"metadata": {"name": endpoint_name(MAC), **metadata}, "spec": spec})
    await lease_ended(client, KINDS, MAC, "10.0.0.1")
    assert await _all(client) == {MAC: None}


async def test_an_endpoint_whose_credentials_were_refused_outlives_its_lease(client: Client) -> None:
    """Otherwise each new lease would try them again until the account is locked."""
    made = await lease_given(client, KINDS, MAC, "10.0.0.1")
    await client.patch_status(KINDS.endpoint, made.metadata.name, {"status": {"state": "Error"}})
    await lease_ended(client, KINDS, MAC, "10.0.0.1")
    assert await _all(client) == {MAC: None}


@pytest.mark.parametrize("ip", ["", "somewhere", "10.0.0.1:80", "10.0.0.300"])
async def test_what_is_no_address_is_refused_with_a_sentence(client: Client, ip: str) -> None:
    """No address is removed from another Endpoint."""
    await lease_given(client, KINDS, OTHER, "10.0.0.1")
    for report in (lease_given, lease_ended):
        with pytest.raises(ValueError, match="is not an IP address"):
            await report(client, KINDS, MAC, ip)
    assert await _all(client) == {OTHER: "10.0.0.1"}


async def test_an_endpoint_that_somebody_named_otherwise_is_updated(client: Client) -> None:
    """One MAC address has one Endpoint, regardless of its name."""
    body = {"metadata": {"name": "node7"}, "spec": {"macAddress": MAC.upper(), "ip": "10.0.0.1"}}
    await client.create(KINDS.endpoint, body)
    await lease_given(client, KINDS, MAC, "10.0.0.2")
    items = (await client.list(KINDS.endpoint)).items
    assert [(e.metadata.name, e.spec.ip) for e in items] == [("node7", "10.0.0.2")]


@pytest.mark.parametrize("text", ["", "52:54", "52:54:00:00:00:zz", "52:54:00:00:00:01:02:03"])
def test_what_is_no_mac_is_refused_with_a_sentence(text: str) -> None:
    """Nothing is recorded for it."""
    with pytest.raises(ValueError, match="is not a MAC address"):
        canonical_mac(text)


@given(st.binary(min_size=6, max_size=6), st.sampled_from(":-"), st.booleans(), st.booleans())
def test_every_spelling_of_a_mac_has_one_name(raw: bytes, separator: str, upper: bool, typed: bool) -> None:
    """Case, separator and dnsmasq's hardware type make no difference."""
    plain = raw.hex(":")
    text = ("06-" if typed else "") + plain.replace(":", separator)
    assert endpoint_name(text.upper() if upper else text) == "mac-" + plain.replace(":", "-")


async def test_a_device_with_addresses_of_both_families_has_an_endpoint_for_each(client: Client) -> None:
    """The boot server accepts both; before, the lease of one family replaced the other, whose requests were refused."""
    await lease_given(client, KINDS, MAC, "10.0.0.1")
    other = await lease_given(client, KINDS, MAC, "2001:db8::1")
    await lease_given(client, KINDS, MAC, "10.0.0.2")
    await lease_given(client, KINDS, MAC, "2001:db8::2")
    assert other.metadata.name == "mac-52-54-00-00-00-01-ipv6"
    assert await ListingDirectory(client, KINDS).leases([MAC]) == {"10.0.0.2", "2001:db8::2"}
    await lease_ended(client, KINDS, MAC, "10.0.0.2")
    assert await _all(client) == {MAC: "2001:db8::2"}
    await lease_given(client, KINDS, MAC, "10.0.0.3")
    assert await ListingDirectory(client, KINDS).leases([MAC]) == {"10.0.0.3", "2001:db8::2"}


async def test_a_lease_ends_also_without_its_mac_address(client: Client) -> None:
    """A DHCPv6 server does not always know it; only the Endpoint with the address is concerned."""
    await lease_given(client, KINDS, MAC, "2001:db8::1")
    await lease_given(client, KINDS, OTHER, "2001:db8::2")
    await lease_ended(client, KINDS, "", "2001:db8::1")
    assert await _all(client) == {OTHER: "2001:db8::2"}


async def test_endpoints_of_fedhcp_are_leases(client: Client) -> None:
    """FeDHCP writes spec.macAddress and spec.ip and no labels, under a name of its own or a generated one.

    The boot server counts them, and our hook beside it changes the same objects instead of adding others.
    """
    generated = {"metadata": {"generateName": "compute-"}, "spec": {"macAddress": MAC.upper(), "ip": "10.0.0.1"}}
    named = {"metadata": {"name": "server-7"}, "spec": {"macAddress": OTHER, "ip": "2001:db8::7"}}
    first = await client.create(KINDS.endpoint, generated)
    await client.create(KINDS.endpoint, named)
    leases = ListingDirectory(client, KINDS).leases
    assert await leases([MAC, OTHER]) == {"10.0.0.1", "2001:db8::7"}
    # FeDHCP's update of an address is a patch of spec.ip alone.
    await client.patch(KINDS.endpoint, first.metadata.name, {"spec": {"ip": "10.0.0.5"}})
    assert await leases([MAC]) == {"10.0.0.5"}
    assert (await lease_given(client, KINDS, MAC, "10.0.0.6")).metadata.name == first.metadata.name
    await lease_ended(client, KINDS, MAC, "10.0.0.6")
    assert first.metadata.name in {e.metadata.name for e in (await client.list(KINDS.endpoint)).items}
    assert await leases([MAC]) == set()
