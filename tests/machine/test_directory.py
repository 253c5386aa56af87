"""Servers by UUID and leases by MAC, from informers and from lists alike."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from metal.api.kinds import kinds
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import Unavailable
from metal.machine.directory import CachedDirectory, Directory, ListingDirectory, plain_ip
from tests.kube.client.fakeapi import FakeAPI
from tests.machineapi.world import MAC, SWAPPED, UUID

KINDS = kinds()
STRANGER = "00000000-0000-0000-0000-000000000000"
pytestmark = pytest.mark.looptime


@pytest.fixture(params=["cached", "listing"])
async def directory(request: pytest.FixtureRequest) -> AsyncIterator[Directory]:
    api = FakeAPI()
    await api.create(KINDS.server, {"metadata": {"name": "s1"}, "spec": {"systemUUID": UUID.upper()}})
    await api.create(KINDS.server, {"metadata": {"name": "s2"}, "spec": {"uuid": UUID}})
    await api.create(KINDS.server, {"metadata": {"name": "s3"}, "spec": {}})
    leases = [(MAC.upper(), "10.0.0.7"), ("52-54-00-00-00-02", "10.0.0.8"), (MAC, None), ("", "10.0.0.9")]
    for number, (mac, ip) in enumerate(leases):
        spec = {"macAddress": mac, "ip": ip}
        await api.create(KINDS.endpoint, {"metadata": {"name": f"e{number}"}, "spec": spec})
    if request.param == "listing":
        yield ListingDirectory(api, KINDS)
        return
    servers, endpoints = Informer(api, KINDS.server), Informer(api, KINDS.endpoint)
    found = CachedDirectory(servers, endpoints)
    tasks = [asyncio.ensure_future(informer.run()) for informer in (servers, endpoints)]
    await asyncio.gather(servers.synced.wait(), endpoints.synced.wait())
    yield found
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_servers_are_found_by_either_field_and_byte_order(directory: Directory) -> None:
    """systemUUID and its older spelling are found, in upper and lower case."""
    assert await directory.servers(UUID) == ["s1", "s2"]
    assert await directory.servers(SWAPPED.upper()) == ["s1", "s2"]
    assert await directory.servers(STRANGER) == []
    with pytest.raises(ValueError, match="UUID"):
        await directory.servers("x")


async def test_leases_are_found_by_mac_however_written(directory: Directory) -> None:
    """Only those of the requested MACs, and only valid addresses."""
    assert await directory.leases([MAC]) == {"10.0.0.7"}
    assert await directory.leases([MAC, "5254.0000.0002"]) == {"10.0.0.7", "10.0.0.8"}
    assert await directory.leases([]) == frozenset()


async def test_what_is_no_mac_is_nobodys(directory: Directory) -> None:
    """Digits are not extracted from other text, and two invalid addresses are not equal."""
    assert await directory.leases(["", "none", f"x{MAC}", "00:00:00:00:00:00", f"{MAC}:00"]) == frozenset()


async def test_caches_that_are_not_current_know_of_no_strangers() -> None:
    """Before the first list, and while the watch fails, a machine that is not found must ask again."""
    api = FakeAPI()
    await api.create(KINDS.server, {"metadata": {"name": "s1"}, "spec": {"systemUUID": UUID}})
    servers, endpoints = Informer(api, KINDS.server), Informer(api, KINDS.endpoint)
    directory = CachedDirectory(servers, endpoints)
    with pytest.raises(Unavailable, match="servers cannot be watched"):
        await directory.servers(UUID)
    with pytest.raises(Unavailable, match="endpoints"):
        await directory.leases([MAC])
    following = asyncio.ensure_future(servers.run())
    await servers.synced.wait()
    await asyncio.sleep(1)
    api.faults.next("watch", *[Unavailable("gone")] * 100)
    api.drop_watches()
    await asyncio.sleep(5)
    assert await directory.servers(UUID) == ["s1"]
    with pytest.raises(Unavailable):
        await directory.servers(STRANGER)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def test_addresses_have_one_spelling() -> None:
    """IPv4-mapped IPv6 is IPv4; zones are removed."""
    assert plain_ip("::ffff:10.0.0.7") == "10.0.0.7"
    assert plain_ip("fe80::1%eth0") == "fe80::1"
    with pytest.raises(ValueError, match="nonsense"):
        plain_ip("nonsense")
