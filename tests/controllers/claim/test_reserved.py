"""The manager's namespace contains the discovery objects, which are named like servers: claims there get no server."""

import asyncio

import pytest

from metal.api.claim import ServerClaim
from metal.kube.client.errors import NotFound
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime


async def _claim(w: World, name: str) -> ServerClaim:
    body = {"metadata": {"name": name, "namespace": NS}, "spec": {"power": "On", "image": "reg/os:1"}}
    return await w.client.create(KINDS.claim, body)


@pytest.mark.behaviour(
    "ServerClaim", "A claim in the manager's namespace gets no server, and does not affect a discovery."
)
async def test_a_claim_named_like_a_server_leaves_its_discovery_alone() -> None:
    """The discovery's boot configuration is unchanged, and the claim reports what to do."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        before = await w.config("s1")
        await _claim(w, "s1")
        await asyncio.sleep(5)
        after = await w.config("s1")
        claim = await w.client.get(KINDS.claim, "s1", NS)
        await w.discover()
    bound = next(c for c in claim.status.conditions if c.type == "Bound")
    assert (before.metadata.uid, before.spec) == (after.metadata.uid, after.spec)
    assert claim.status.phase == "Unbound"
    assert (bound.status, bound.reason) == ("False", "NamespaceReserved")
    assert "another namespace" in bound.message


async def test_a_claim_in_the_managers_namespace_gets_no_free_server() -> None:
    """The name of the claim does not matter; the server is bound to the next claim in another namespace."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await _claim(w, "mine")
        await asyncio.sleep(600)
        free = await w.server()
        with pytest.raises(NotFound):
            await w.config("mine")
        await w.add_claim()
        server = await w.until_true(lambda s: s.spec.server_claim_ref is not None)
    assert free.spec.server_claim_ref is None
    assert server.spec.server_claim_ref is not None
    assert (server.spec.server_claim_ref.namespace, server.spec.server_claim_ref.name) == ("default", "c1")


async def test_a_server_that_was_given_to_such_a_claim_by_hand_keeps_its_discovery_objects() -> None:
    """Nothing is written for the claim; deleting it frees the server."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        before = await w.config("s1")
        await _claim(w, "s1")
        ref = {"namespace": NS, "name": "s1"}
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
        await asyncio.sleep(5)
        after = await w.config("s1")
        await w.client.delete(KINDS.claim, "s1", NS)
        await w.discover()
        await w.until_true(lambda s: s.status.state == "Available" and s.spec.server_claim_ref is None)
    assert (before.metadata.uid, before.spec) == (after.metadata.uid, after.spec)
    assert w.bmc.disk_boots == 0


async def test_a_claim_that_is_refused_is_told_once() -> None:
    """There is one write and one Event."""
    async with world() as w:
        await _claim(w, "mine")
        await asyncio.sleep(5)
        w.tap.writes.clear()
        await asyncio.sleep(900)
        events = [e.reason for e in await w.events()]
    assert w.tap.writes == []
    assert events.count("NamespaceReserved") <= 2
