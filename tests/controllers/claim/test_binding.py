"""Many claims and servers: two claims never hold one server, and each unbound claim reports why it waits."""

import asyncio
from typing import Any

import pytest

from metal.kube.client.errors import NotFound
from tests.controllers.claim.fleet import available, holders
from tests.controllers.world import KINDS, world

pytestmark = pytest.mark.looptime


ASKS = pytest.mark.parametrize(
    "asks", [{}, {"serverSelector": {"matchLabels": {"rack": "0"}}}], ids=["any", "selector"]
)
"""Servers with an even number stand in rack 0."""


@pytest.mark.behaviour(
    "ServerClaim",
    "Ten servers and four claims make exactly four pairs, with and without a selector.",
    issues=(158, 190),
)
@ASKS
async def test_ten_servers_and_four_claims_make_exactly_four_pairs(asks: dict[str, Any]) -> None:
    """Concurrent claims get different servers, with and without a selector."""
    async with world() as w:
        await available(w, 10)
        await asyncio.gather(*(w.add_claim(f"c{n}", power="Off", **asks) for n in range(4)))
        await asyncio.sleep(10)
        held = await holders(w)
    assert sorted(held) == ["c0", "c1", "c2", "c3"]


@pytest.mark.behaviour(
    "ServerClaim", "One server and eight claims make exactly one pair; seven claims name the reason.", issues=(230, 356)
)
@ASKS
async def test_one_server_and_eight_claims_make_exactly_one_pair_and_seven_reasons(asks: dict[str, Any]) -> None:
    """The others stay Unbound and report that the only server is held."""
    async with world() as w:
        await available(w, 1)
        await asyncio.gather(*(w.add_claim(f"c{n}", power="Off", **asks) for n in range(8)))
        await asyncio.sleep(10)
        held = await holders(w)
        claims = (await w.client.list(KINDS.claim, "default")).items
    waiting = [c for c in claims if c.status.phase == "Unbound"]
    assert len(held) == 1
    assert len(waiting) == 7
    for claim in waiting:
        bound = next(c for c in claim.status.conditions if c.type == "Bound")
        assert (bound.status, bound.reason) == ("False", "Claimed")
        assert "none of 1 servers fits: 1 held by another claim" in bound.message


@pytest.mark.behaviour("ServerClaim", issues=(632,))
async def test_a_released_server_goes_to_a_claim_that_waited() -> None:
    """An unbound claim is bound when a matching server becomes free."""
    async with world() as w:
        await available(w, 1)
        await w.add_claim("first", power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound", "first")
        await w.add_claim("second", power="Off")
        await w.until_claim(lambda c: c.status.phase == "Unbound", "second")
        await w.client.delete(KINDS.claim, "first", "default")
        claim = await w.until_claim(lambda c: c.status.phase == "Bound", "second")
    assert claim.spec.server_ref is not None


@pytest.mark.behaviour(
    "ServerClaim", "A selector takes only servers with its labels; a claim that finds none waits and names the reason."
)
async def test_a_selector_takes_only_servers_with_its_labels() -> None:
    """Two servers have the label and three claims select it: the third stays Unbound with the reason."""
    async with world() as w:
        await available(w, 4)
        for n in range(3):
            await w.add_claim(f"c{n}", power="Off", serverSelector={"matchLabels": {"rack": "1"}})
        await asyncio.sleep(10)
        held = await holders(w)
        claims = (await w.client.list(KINDS.claim, "default")).items
    unbound = [c for c in claims if c.status.phase == "Unbound"]
    assert len(held) == 2
    assert len(unbound) == 1
    assert "labels or name do not match" in next(c.message for c in unbound[0].status.conditions if c.type == "Bound")


@pytest.mark.behaviour(
    "ServerClaim", "A claim for a Server that does not exist reports it, and binds when the Server is created."
)
async def test_a_claim_for_a_server_that_does_not_exist_says_so_and_binds_when_it_comes() -> None:
    """serverRef may be set before the server exists."""
    async with world() as w:
        await w.add_claim(power="Off", serverRef={"name": "s0"})
        waiting = await w.until_claim(lambda c: c.status.phase == "Unbound")
        await available(w, 1)
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
    assert next(c.reason for c in waiting.status.conditions if c.type == "Bound") == "ServerNotFound"
    assert claim.spec.server_ref is not None


@pytest.mark.behaviour("ServerClaim", "A claim that never had a server can be deleted.")
async def test_a_claim_that_never_had_a_server_can_be_deleted() -> None:
    """No finalizer holds it, whether it waits for any server or for one that does not exist."""
    async with world() as w:
        await w.add_claim("any")
        await w.add_claim("named", serverRef={"name": "nowhere"})
        for name in ("any", "named"):
            await w.until_claim(lambda c: c.status.phase == "Unbound", name)
            await w.client.delete(KINDS.claim, name, "default")
        await w.settle()
        for name in ("any", "named"):
            with pytest.raises(NotFound):
                await w.claim(name)
        assert (await w.client.list(KINDS.boot_config)).items == ()


@pytest.mark.behaviour("ServerClaim", "A bound claim keeps its server when the server is marked unclaimable.")
async def test_a_bound_claim_survives_a_cordon() -> None:
    """unclaimable keeps new claims away, not the one that holds the server."""
    async with world() as w:
        await available(w, 1)
        await w.add_claim(power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound")
        await w.client.patch(KINDS.server, "s0", {"spec": {"unclaimable": True}})
        await asyncio.sleep(30)
        claim = await w.claim()
    assert claim.status.phase == "Bound"


@pytest.mark.behaviour(
    "ServerClaim",
    "An image changed after the first boot is reported in a condition and not applied.",
    go="Changes the boot configuration of the running server.",
)
async def test_image_changes_after_the_first_boot_are_visible_and_not_applied() -> None:
    """The running tenant is not disturbed; a condition reports the change and how to boot it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        claim = await w.until_claim(
            lambda c: any(x.type == "Current" and x.status == "False" for x in c.status.conditions)
        )
        await asyncio.sleep(120)
        config = await w.config("c1", "default")
    assert next(c.reason for c in claim.status.conditions if c.type == "Current") == "ChangedAfterBoot"
    assert config.spec.image == "reg/os:1"
    assert w.bmc.network_boots == 2


@pytest.mark.behaviour("ServerClaim")
async def test_image_changes_before_the_first_boot_are_taken() -> None:
    """The boot configuration follows the claim until the machine has booted."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(image="reg/os:1")
        await w.until("Reserved")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await asyncio.sleep(5)
        server = await w.boot_claim()
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.image == "reg/os:2"
