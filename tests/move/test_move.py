"""All objects move to another API; machines are not affected, and two managers are never active together."""

import asyncio

import msgspec
import pytest

from metal.api import names
from metal.api.core import CONFIG_MAP
from metal.evidence import record
from metal.evidence.chain import HEAD
from metal.evidence.keys import KeyStore, public_keys
from metal.evidence.signing import verify
from metal.evidence.verdict import Verdict
from metal.kube.client.protocol import Client
from metal.move.documents import kinds_in_order
from metal.move.homes import Refused
from metal.move.mover import Mover
from metal.move.pause import MANAGERS, MARK
from tests.move.homes import Killed, Life, TwoHomes, two_homes
from tests.sim.plane import KINDS, is_ready

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime, pytest.mark.life]
UUID = "11111111-2222-3333-4444-555555555501"
CHECKS = 2 * 4 * len(kinds_in_order(KINDS))
"""Writes with which both homes are tried before anything moves: four for each kind."""


async def _acts(site: TwoHomes, *, second: bool) -> None:
    """The claim can be released at this home, and another one is served."""
    client, manager = (site.client2, site.manager2) if second else (site.client, site.manager)
    site.route(manager)
    await client.delete(site.kinds.claim, "c1", "default")
    await asyncio.sleep(300)
    states = {s.metadata.name: s.status.state for s in (await client.list(site.kinds.server)).items}
    assert set(states.values()) == {"Available"}


async def test_objects_with_status_and_owners_come_to_the_other_home_and_no_machine_notices() -> None:
    """The claim stays Bound, Booted and Ready; no power changes for hours; then it can be released."""
    async with two_homes() as site:
        before = site.felt()
        outcome = await site.mover().run()
        await asyncio.sleep(3600)

        assert site.felt() == before
        assert outcome.moved["Server"] == 2
        assert len(outcome.stopped) == 2
        claim = await site.client2.get(site.kinds.claim, "c1", "default")
        assert is_ready(claim)
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (True, False)
        await _acts(site, second=True)


async def _brought_to(site: TwoHomes, state: str) -> None:
    """The claimed server is in this state."""
    (name,) = [s.metadata.name for s in (await site.client.list(KINDS.server)).items if s.spec.server_claim_ref]
    if state == "Maintenance":
        spec = {"policy": "Enforced", "serverRef": {"name": name}}
        body = {"metadata": {"name": "m1", "namespace": "metal-system"}, "spec": spec}
        approved = {"metadata": {"labels": {KINDS.key("maintenance-approved"): "true"}}}
        await site.client.patch(KINDS.claim, "c1", approved, "default")
        await site.client.create(KINDS.maintenance, body)
    if state == "Error":
        failure = {"state": "Reserved", "reason": "EvidenceLost", "message": "m"}
        await site.client.patch_status(KINDS.server, name, {"status": {"state": "Error", "failure": failure}})
    await asyncio.sleep(60)
    assert (await site.client.get(KINDS.server, name)).status.state == state


async def _tenancies(client: Client, *claims: str) -> dict[str, tuple[object, ...]]:
    """Of each Server: data, policy, the whole record, and the copy that outlives its status, without UIDs of claims."""
    found: dict[str, tuple[object, ...]] = {}
    for server in (await client.list(KINDS.server)).items:
        known, kept = server.status.tenancy, server.metadata.annotations[KINDS.key(names.TENANCY)]
        record = msgspec.json.encode((known, server.status.drives)).decode()
        for uid in claims:
            record, kept = record.replace(uid, "UID"), kept.replace(uid, "UID")
        found[server.metadata.name] = known.data, known.policy, record, kept
    return found


@pytest.mark.parametrize("state", ["Reserved", "Maintenance", "Error"])
async def test_the_record_of_tenancy_moves_along(state: str) -> None:
    """Data, policy, drives and the annotation are those of before; record and annotation name the claim by its UID."""
    async with two_homes() as site:
        await _brought_to(site, state)
        old = (await site.client.get(KINDS.claim, "c1", "default")).metadata.uid
        before = await _tenancies(site.client, old)
        await site.mover().run()
        new = (await site.client2.get(KINDS.claim, "c1", "default")).metadata.uid
        copied = await _tenancies(site.client2, old, new)
        records = str([both for _, _, *both in (await _tenancies(site.client2)).values()])
        await asyncio.sleep(3600)
        after = await _tenancies(site.client2, new)
    assert sorted((data, policy) for data, policy, *_ in before.values()) == [("Clean", ""), ("Dirty", "None")]
    assert all("UID" in str(kept) for data, _, _, kept in before.values() if data == "Dirty")
    assert copied == before
    assert (new in records, old in records) == (True, False)
    assert after == before


async def test_what_was_moved_can_be_moved_back() -> None:
    """The old objects of the first home are no longer valid and are replaced."""
    async with two_homes() as site:
        before = site.felt()
        await site.mover().run()
        await asyncio.sleep(300)
        await site.mover(back=True).run()
        await asyncio.sleep(300)

        assert site.felt() == before
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (False, True)
        await _acts(site, second=False)


async def test_killed_after_any_write_it_is_run_again_and_nothing_is_acted_on_by_both() -> None:
    """One site, and a mover that is killed after 1, 2, 3 … writes until one run completes."""
    async with two_homes() as site:
        before, writes = site.felt(), 0
        while True:
            writes += 1
            try:
                await site.mover(Life(writes)).run()
            except Killed:
                await asyncio.sleep(10)
                if (await site.client2.list(site.kinds.server)).items:
                    assert site.manager.pause.paused
                continue
            break
        await asyncio.sleep(600)

        assert writes > 20
        assert site.felt() == before
        await _acts(site, second=True)


async def _killed_at(site: TwoHomes, writes: int) -> None:
    with pytest.raises(Killed):
        await site.mover(Life(writes)).run()
    await asyncio.sleep(10)


@pytest.mark.parametrize("copied", [0, 5])
async def test_an_unfinished_move_is_given_up_by_moving_back(copied: int) -> None:
    """The copy is removed, the first home is active again with all objects, and the second one is empty."""
    async with two_homes() as site:
        before = site.felt()
        await _killed_at(site, CHECKS + 2 + copied)
        await site.mover(back=True).run()
        await asyncio.sleep(60)

        assert site.felt() == before
        assert (await site.client2.list(site.kinds.server)).items == ()
        assert not site.manager.pause.paused
        assert not site.manager2.pause.paused
        await _acts(site, second=False)


async def test_a_move_back_that_is_given_up_leaves_the_old_home_paused() -> None:
    """Its objects were moved before: if it was released, two managers would act on the same machines."""
    async with two_homes() as site:
        await site.mover().run()
        await asyncio.sleep(30)
        with pytest.raises(Killed):
            await site.mover(Life(CHECKS + 6), back=True).run()
        await site.mover().run()
        await asyncio.sleep(60)

        assert site.manager.pause.paused
        assert not site.manager2.pause.paused
        assert len((await site.client2.list(site.kinds.server)).items) == 2


async def test_a_manager_that_starts_while_paused_does_not_begin() -> None:
    """A restart during a move changes nothing."""
    async with two_homes() as site:
        await _killed_at(site, CHECKS + 4)
        await site.restart_manager()
        await site.client.delete(site.kinds.claim, "c1", "default")
        before = site.felt()
        await asyncio.sleep(600)

        assert site.manager.pause.paused
        assert site.felt() == before


async def test_a_manager_that_lives_and_does_not_stop_makes_the_move_refuse() -> None:
    """Its heartbeats never name this move; both homes stay paused for the next attempt."""
    async with two_homes() as site:

        async def stubborn() -> None:
            for number in range(1000):
                said = {"data": {"old-one": f"2026-01-01T00:{number}Z 0.0 -"}}
                await site.client.patch(CONFIG_MAP, MANAGERS, said, "metal-system")
                await asyncio.sleep(2)

        alive = asyncio.ensure_future(stubborn())
        with pytest.raises(Refused, match="old-one at first run"):
            await site.mover().run()
        alive.cancel()
        assert (await site.client2.list(site.kinds.server)).items == ()


@pytest.mark.parametrize("step", ["_await_managers", "_copy"])
async def test_a_pause_that_was_ended_makes_the_move_refuse(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source acts again, so the target is not released: a second run moves what the source has then."""
    async with two_homes() as site:
        work = getattr(Mover, step)

        async def then_ended(self: Mover, *args: object) -> object:
            done = await work(self, *args)
            await site.client.delete(CONFIG_MAP, MARK, "metal-system")
            return done

        with monkeypatch.context() as patched:
            patched.setattr(Mover, step, then_ended)
            with pytest.raises(Refused, match="first was ended by another client"):
                await site.mover().run()
        await asyncio.sleep(30)
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (False, True)

        await site.mover().run()
        await asyncio.sleep(30)
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (True, False)


async def test_a_target_with_objects_of_its_own_is_refused_and_nothing_is_paused() -> None:
    """Two sites are not merged."""
    async with two_homes() as site:
        own = {"metadata": {"name": "mine"}, "spec": {"macAddress": "00:00:5e:00:53:01", "ip": "192.0.2.1"}}
        await site.client2.create(site.kinds.endpoint, own)
        with pytest.raises(Refused, match="Endpoint mine"):
            await site.mover().run()
        await asyncio.sleep(10)
        assert not site.manager.pause.paused


async def test_evidence_moves_with_its_keys_and_holds_in_the_new_home() -> None:
    """Earlier evidence is verified there, new evidence is signed with the same key, and continues the same chain."""
    async with two_homes() as site:
        spec = {"serverRef": {"name": "s1"}, "policy": "Clear", "claimUID": "gone", "systemUUID": UUID}
        made = await site.client.create(site.kinds.evidence, {"metadata": {"name": "e1"}, "spec": spec})
        key = await KeyStore(site.client, site.kinds, "metal-system", "key").signing_key()
        await record.conclude(site.client, site.kinds, made, Verdict(), key, site.clock())
        await site.mover().run()

        moved = await site.client2.get(site.kinds.evidence, "e1")
        verify(moved, public_keys((await site.client2.list(CONFIG_MAP, "metal-system")).items))
        again = await KeyStore(site.client2, site.kinds, "metal-system", "key").signing_key()
        assert again.public.id == key.public.id
        head = await site.client2.get(CONFIG_MAP, f"{HEAD}-{UUID}", "metal-system")
        assert "e1" in head.data.values()


async def test_a_home_that_was_left_is_not_moved_a_second_time() -> None:
    """Its objects are no longer valid."""
    async with two_homes() as site:
        await site.mover().run()
        with pytest.raises(Refused, match="were moved to second"):
            await site.mover().run()


async def test_an_object_that_is_being_deleted_makes_the_plan_refuse() -> None:
    """A deletion cannot be moved, and would not end while the managers are paused."""
    async with two_homes() as site:
        await site.client.patch(site.kinds.claim, "c1", {"metadata": {"finalizers": ["example.org/wait"]}}, "default")
        await site.client.delete(site.kinds.claim, "c1", "default")
        with pytest.raises(Refused, match="ServerClaim default/c1"):
            await site.mover().plan()


async def test_a_boot_under_way_moves_along_and_ends_in_the_new_home() -> None:
    """The window is the same, its machine finds the new boot server, and the claim becomes Ready."""
    async with two_homes() as site:
        await site.client.delete(site.kinds.claim, "c1", "default")
        await site.until_available(2)
        await site.add_claim("c2")
        await site.until(lambda servers: any(s.status.boot_window and s.spec.server_claim_ref and
                                             s.status.boot_window.phase == "Open" for s in servers))  # fmt: skip
        before = {s.metadata.name: s.status.boot_window and s.status.boot_window.id for s in await site.servers()}
        await site.mover().run()
        site.route(site.manager2)
        await asyncio.sleep(1200)

        after = (await site.client2.list(site.kinds.server)).items
        assert {s.metadata.name: s.status.boot_window and s.status.boot_window.id for s in after} == before
        assert is_ready(await site.client2.get(site.kinds.claim, "c2", "default"))
