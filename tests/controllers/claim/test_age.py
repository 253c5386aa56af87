"""The oldest waiting claim gets the next free server, in any order of events, and what keeps a server from all."""

import asyncio

import msgspec
import pytest

from metal.api.claim import ServerClaim, ServerClaimSpec
from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerStatus
from metal.controllers.claim.waiting import WaitingClaims
from metal.kube.client.errors import Forbidden
from metal.kube.meta.objects import Key
from tests.controllers.claim.fleet import available, holders
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def _cordon(w: World, count: int, *, cordoned: bool) -> None:
    for number in range(count):
        await w.client.patch(KINDS.server, f"s{number}", {"spec": {"unclaimable": cordoned}})


@pytest.mark.behaviour("ServerClaim", "The oldest waiting claim is served first, also after a restart of the manager.")
@pytest.mark.parametrize("restarted", [False, True])
async def test_the_oldest_claims_get_the_servers_whatever_their_names(restarted: bool) -> None:
    """Three servers become free for six claims that were created against the order of their names."""
    async with world() as w:
        await available(w, 3)
        await _cordon(w, 3, cordoned=True)
        for name in ("f", "e", "d", "c", "b", "a"):
            await w.add_claim(name)
            await asyncio.sleep(2)
        if restarted:
            await w.runtime.stop(grace=0.0)
            await _cordon(w, 3, cordoned=False)
            await w.restart()
        else:
            await _cordon(w, 3, cordoned=False)
        await asyncio.sleep(20)
        assert sorted(await holders(w)) == ["d", "e", "f"]


async def test_an_old_claim_that_the_api_refuses_keeps_one_server_and_no_more() -> None:
    """Younger claims get the other servers."""
    async with world() as w:
        await available(w, 3)
        await _cordon(w, 3, cordoned=True)
        for name in ("old", "b", "c"):
            await w.add_claim(name)
            await asyncio.sleep(2)
        refused: list[str] = []

        async def trap(what: str, when: str) -> None:
            if what.startswith("patch Server ") and when == "before" and (not refused or refused[0] == what):
                refused.append(what)
                raise Forbidden("a webhook refuses this server")

        w.tap.trap = trap
        await _cordon(w, 3, cordoned=False)
        await asyncio.sleep(60)
        while_refused = sorted(await holders(w))
        w.tap.trap = None
        await asyncio.sleep(90)
        assert len(while_refused) == 2
        assert sorted(await holders(w)) == ["b", "c", "old"]


async def test_a_restart_in_the_middle_of_a_promise_keeps_the_order_of_age() -> None:
    """The oldest claim is refused when it reserves its server, and the manager is killed: the claim still gets it."""
    async with world() as w:
        await available(w, 2)
        await _cordon(w, 2, cordoned=True)
        for name in ("z", "a", "b"):
            await w.add_claim(name)
            await asyncio.sleep(2)
        tried: list[str] = []

        async def trap(what: str, when: str) -> None:
            if what.startswith("patch Server s0") and when == "before":
                tried.append(what)
                raise Forbidden("a webhook refuses this server")

        w.tap.trap = trap
        await w.client.patch(KINDS.server, "s0", {"spec": {"unclaimable": False}})
        await asyncio.sleep(5)
        promised = (bool(tried), await holders(w))
        await w.runtime.stop(grace=0.0)
        w.tap.trap = None
        await w.restart()
        await w.until_claim(lambda c: c.status.phase == "Bound", "z")
        await _cordon(w, 2, cordoned=False)
        await w.until_claim(lambda c: c.status.phase == "Bound", "a")
        assert promised == (True, [])
        assert sorted(await holders(w)) == ["a", "z"]


async def test_a_deleted_claim_leaves_its_place_to_the_next() -> None:
    """The server goes to the claim after it within seconds."""
    async with world() as w:
        await available(w, 1)
        await w.add_claim("first")
        await w.until_claim(lambda c: c.status.phase == "Bound", "first")
        await w.add_claim("second")
        await asyncio.sleep(2)
        await w.add_claim("third")
        await asyncio.sleep(2)
        await w.client.delete(KINDS.claim, "second", "default")
        await w.client.delete(KINDS.claim, "first", "default")
        await w.until_claim(lambda c: c.status.phase == "Bound", "third")


@pytest.mark.behaviour("ServerClaim", "A claim is not bound to a server with operation=ignore, and says why it waits.")
async def test_a_claim_does_not_bind_a_server_that_is_ignored() -> None:
    """It is bound when the annotation is removed."""
    async with world() as w:
        await available(w, 1)
        await w.client.patch(KINDS.server, "s0", {"metadata": {"annotations": {KINDS.key("operation"): "ignore"}}})
        await w.add_claim("c1")
        waiting = await w.until_claim(lambda c: bool(c.status.conditions))
        await asyncio.sleep(30)
        unbound = await holders(w)
        await w.client.patch(KINDS.server, "s0", {"metadata": {"annotations": {KINDS.key("operation"): None}}})
        await w.until_claim(lambda c: c.status.phase == "Bound")
    (bound,) = waiting.status.conditions
    assert (bound.reason, bound.message) == (
        "NotManaged", "none of 1 servers fits: 1 not managed (annotation operation=ignore)",
    )  # fmt: skip
    assert unbound == []


async def test_a_bound_claim_says_that_its_server_is_ignored() -> None:
    """What it waits for is never empty: the annotation of the server, and how to remove it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {KINDS.key("operation"): "ignore"}}})
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": {"namespace": "default", "name": "c1"}}})
        await w.add_claim("c1", serverRef={"name": "s1"})
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
    assert claim.status.waiting_for == "server s1, which is not managed"
    (ready,) = [one for one in claim.status.conditions if one.type == "Ready"]
    assert ready.reason == "ServerNotManaged"
    assert "remove it" in ready.message


def _claim(number: int, **spec: object) -> ServerClaim:
    meta = ObjectMeta(name=f"c{number:05}", namespace="d", uid=f"{number:05}")
    return ServerClaim(metadata=meta, spec=msgspec.convert(spec, ServerClaimSpec))


def test_claims_are_found_by_what_they_need() -> None:
    """A named server, a label, any server: each free server finds the oldest claim that it fits."""
    waiting = WaitingClaims(lambda claim: True)
    waiting.update(None, _claim(1, serverRef={"name": "other"}))
    waiting.update(None, _claim(2, serverSelector={"matchLabels": {"rack": "7"}}))
    waiting.update(None, _claim(3, serverSelector={"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}))
    waiting.update(None, _claim(4))
    free = ServerStatus(state="Available", power_state="Off")

    def offered(name: str, **labels: str) -> Key | None:
        return waiting.offer(Server(metadata=ObjectMeta(name=name, labels=labels), status=free))

    assert offered("a", rack="8") == Key("c00004", "d")
    assert offered("b", rack="7", gpu="x") == Key("c00002", "d")
    assert offered("c", rack="7", gpu="x") == Key("c00003", "d")
    assert offered("other", rack="7") == Key("c00001", "d")
    assert offered("d", rack="7") is None
