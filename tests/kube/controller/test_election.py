"""Lease election in virtual time: who leads when, and never two."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metal.kube.client.errors import Conflict, Forbidden, ServerError
from metal.kube.controller.election import PREDECESSOR, NotLeader
from tests.kube import virtual
from tests.kube.controller.candidates import KIND, Election, now

pytestmark = pytest.mark.looptime
FIRST = 10.0
"""When the first candidate leads where there was no Lease."""


@pytest.fixture
async def election() -> AsyncIterator[Election]:
    made = Election()
    yield made
    await made.end()


async def test_the_first_candidate_ever_waits_for_a_predecessor_that_may_be_there(election: Election) -> None:
    """A Lease that is not there may have been deleted under a leader: one duration passes before anybody leads."""
    one = election.candidate("one")
    await asyncio.sleep(1)
    assert (election.spec["holderIdentity"], election.leaders) == (PREDECESSOR, [])
    await asyncio.sleep(10)
    assert (one.led, election.spec["leaseTransitions"]) == ([FIRST], 1)


async def test_the_lease_says_who_since_when_and_for_how_long(election: Election) -> None:
    """holderIdentity, whole seconds, and times as MicroTime with six digits, renewed while it leads."""
    election.candidate("one")
    await asyncio.sleep(FIRST + 100)
    spec = election.spec
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("one", 10)
    assert spec["acquireTime"] == "2026-01-01T00:00:10.000000Z"
    assert re.fullmatch(r"2026-01-01T00:01:(48|49|50)\.\d{6}Z", spec["renewTime"])


async def test_a_leader_that_is_killed_is_replaced_after_one_duration(election: Election) -> None:
    """Not before, and with the watch hardly after."""
    one, two = election.candidate("one"), election.candidate("two")
    await asyncio.sleep(40)
    leader, standby = (one, two) if one.elector.leader else (two, one)
    await leader.kill()
    killed = now()
    await asyncio.sleep(15)
    assert 8.0 < standby.led[0] - killed <= 10.2


async def test_a_leader_that_is_stopped_is_replaced_at_once(election: Election) -> None:
    """The Lease is given back with an empty holder, and the standby's watch sees it."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    two = election.candidate("two")
    await asyncio.sleep(20)
    await one.stop()
    stopped = now()
    assert (election.spec["holderIdentity"], election.spec["leaseDurationSeconds"]) == ("", 1)
    await asyncio.sleep(3)
    assert two.led[0] - stopped < 0.5
    assert (election.spec["holderIdentity"], election.spec["leaseDurationSeconds"]) == ("two", 10)


async def test_without_a_watch_the_standby_looks_by_itself(election: Election) -> None:
    """A standby that may not watch, or whose watch is dead, is late by one retry period."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    election.api.faults.queued["watch"] = [Forbidden("no")] * 1000
    election.api.drop_watches()
    two = election.candidate("two")
    await asyncio.sleep(20)
    await one.stop()
    stopped = now()
    await asyncio.sleep(3)
    assert two.led[0] - stopped < 2.0


async def test_a_wrong_clock_changes_nothing(election: Election) -> None:
    """Times in the Lease are never compared: a leader an hour ahead or behind leads, dies and is followed as usual."""
    one = election.candidate("one", skew=-3600)
    await asyncio.sleep(FIRST + 1)
    two = election.candidate("two", skew=3600)
    await asyncio.sleep(60)
    assert (two.led, election.leaders) == ([], ["one"])
    await one.kill()
    killed = now()
    await asyncio.sleep(15)
    assert 8.0 < two.led[0] - killed <= 10.2


async def test_a_leader_cut_off_stops_before_the_lease_can_be_taken(election: Election) -> None:
    """Its requests get no answer: it stops at its deadline, the other leads later, and it comes back as a standby."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    two = election.candidate("two")
    await asyncio.sleep(20)
    one.wire.cut = True
    cut = now()
    await asyncio.sleep(20)
    assert 5.0 < one.lost[0] - cut <= 7.0
    assert two.led[0] - one.lost[0] > 2.5
    one.wire.cut = False
    await asyncio.sleep(60)
    assert (election.leaders, len(one.led), len(two.led)) == (["two"], 1, 1)
    await two.stop()
    await asyncio.sleep(1)
    assert (election.leaders, len(one.led)) == (["one"], 2)


@pytest.mark.parametrize("away", [4.0, 30.0])
async def test_an_api_that_is_away(away: float, election: Election) -> None:
    """A short outage changes nothing. In a long one no process leads, and the last leader leads again afterwards."""
    one, two = election.candidate("one"), election.candidate("two")
    await asyncio.sleep(40)
    for each in (one, two):
        each.wire.refused = True
    await asyncio.sleep(away)
    assert bool(election.leaders) == (away < 5)
    for each in (one, two):
        each.wire.refused = False
    await asyncio.sleep(5)
    assert len(election.leaders) == 1
    assert len(one.led) + len(two.led) == (1 if away < 5 else 2)


async def test_errors_of_the_api_are_not_hammered(election: Election) -> None:
    """500 and 409 for a while: a few requests a second at most, and the leader stays."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 5)
    asked, begun = one.wire.asked, now()
    election.api.faults.next("patch", ServerError("boom"), ServerError("boom"), Conflict("x"), Conflict("x"))
    await asyncio.sleep(6)
    assert election.leaders == ["one"]
    assert (one.wire.asked - asked) / (now() - begun) < 3
    assert len(one.led) == 1


async def test_whoever_gets_through_to_the_api_again_says_so(election: Election) -> None:
    """Once for each time that it was away: others may be waiting for it."""
    one = election.candidate("one")
    contacts: list[float] = []
    one.elector.on_contact = lambda: contacts.append(now())
    await asyncio.sleep(20)
    for _ in range(2):
        one.wire.refused = True
        await asyncio.sleep(30)
        one.wire.refused = False
        back = now()
        await asyncio.sleep(20)
        assert back <= contacts[-1] < back + 2
    assert len(contacts) == 2


async def test_an_answer_that_is_lost_is_no_lost_lead(election: Election) -> None:
    """A renewal that arrived but was never confirmed looks like a conflict, and is recognised as one's own."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    one.wire.cut = True
    await asyncio.sleep(2)
    one.wire.cut = False
    await asyncio.sleep(30)
    assert (election.leaders, one.lost) == (["one"], [])


async def test_slow_renewals_are_counted_from_their_beginning(election: Election) -> None:
    """A request that took 2 s leaves 5 s: the deadline never depends on when an answer came."""
    one = election.candidate("one", delay=lambda: 1.0)
    await asyncio.sleep(FIRST + 20)
    assert election.leaders == ["one"]
    sent = float(election.spec["renewTime"][17:26])
    one.wire.cut = True
    await asyncio.sleep(sent + 7.0 - now())
    assert not one.elector.leader


async def test_a_lease_edited_by_hand_stays_with_its_leader(election: Election) -> None:
    """A label makes the next renewal conflict; it is read and renewed again."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    await election.api.patch(KIND, "lease", {"metadata": {"labels": {"a": "b"}}}, "ns")
    await asyncio.sleep(20)
    assert (election.leaders, one.lost) == (["one"], [])


async def test_a_lease_given_to_somebody_else_by_hand_is_gone_at_once(election: Election) -> None:
    """The watch tells the leader, who stops without waiting for its next renewal."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    await election.api.patch(KIND, "lease", {"spec": {"holderIdentity": "an-admin"}}, "ns")
    await virtual.settle(50)
    assert (one.lost, election.leaders) == ([FIRST + 1], [])
    await asyncio.sleep(20)
    assert election.leaders == ["one"], "no process renews it, so it expires"


@pytest.mark.parametrize(
    "spec", [{"holderIdentity": ""}, {"leaseDurationSeconds": 1}, {"leaseDurationSeconds": None}], ids=str
)
async def test_a_lease_emptied_or_shortened_by_hand_is_not_taken_from_a_leader_that_does_not_hear_of_it(
    spec: dict[str, Any], election: Election
) -> None:
    """Only a Lease that was given back is free at once: its leader may act until its own deadline."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    election.candidate("two")
    await asyncio.sleep(1)
    one.wire.cut = True
    await asyncio.sleep(0.1)
    await election.api.patch(KIND, "lease", {"spec": spec}, "ns")
    for _ in range(200):
        await asyncio.sleep(0.1)
        election.check()
    assert election.leaders == ["two"]


async def test_a_released_lease_of_an_older_backup_is_not_taken_from_a_leader_that_does_not_hear_of_it(
    election: Election,
) -> None:
    """It was released before its last holder got it, who may act until its own deadline."""
    first = election.candidate("first")
    await asyncio.sleep(FIRST + 1)
    await first.stop()
    released = (await election.api.get(KIND, "lease", "ns")).spec
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    election.candidate("two")
    await asyncio.sleep(1)
    one.wire.cut = True
    await asyncio.sleep(0.1)
    spec = {"holderIdentity": "", "leaseDurationSeconds": released.lease_duration_seconds}
    old = {**spec, "leaseTransitions": released.lease_transitions}
    await election.api.patch(KIND, "lease", {"spec": old}, "ns")
    for _ in range(200):
        await asyncio.sleep(0.1)
        election.check()
    assert (released.holder_identity, election.leaders) == ("", ["two"])


async def test_a_machine_that_was_suspended_leads_no_more_when_it_wakes(election: Election) -> None:
    """The loop's clock has stood still; another one may lead since. It stands by, and may lead again later."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    one.suspended += 30.0
    assert not one.elector.leader
    with pytest.raises(NotLeader):
        one.elector.require()
    await asyncio.sleep(5)
    assert len(one.lost) == 1
    await asyncio.sleep(20)
    assert election.leaders == ["one"]


async def test_a_deleted_lease_is_made_again_and_two_never_lead(election: Election) -> None:
    """Leader or standby, the second to write sees the first and accepts it."""
    for name in ("one", "two", "three"):
        election.candidate(name, delay=lambda: 0.05)
    await asyncio.sleep(30)
    for _ in range(10):
        await election.api.delete(KIND, "lease", "ns")
        await asyncio.sleep(25)
        assert len(election.leaders) == 1


async def test_it_may_act_to_the_instant_and_no_longer(election: Election) -> None:
    """require refuses as soon as the deadline has passed, also while the process has not noticed yet."""
    one = election.candidate("one")
    with pytest.raises(NotLeader):
        one.elector.require()
    await asyncio.sleep(FIRST + 1)
    one.elector.require()
    one.task.cancel()  # the task that checks deadlines ends
    await virtual.settle()
    with pytest.raises(NotLeader, match="one is not the leader"):
        one.elector.require()


async def test_work_that_does_not_stop_ends_the_election(election: Election) -> None:
    """What on_lose raises surfaces, so that the process can end; it does not lead again."""
    one = election.candidate("one")

    async def stuck() -> None:
        raise RuntimeError("workers do not stop")

    one.elector.on_lose = stuck
    await asyncio.sleep(FIRST + 1)
    one.wire.cut = True
    with pytest.raises(RuntimeError, match="workers do not stop"):
        await one.task
    assert not one.elector.leader
    election.candidates.clear()


async def test_giving_back_what_others_have_changes_nothing(election: Election) -> None:
    """A process that lost its Lease long ago does not take it from its heir when it ends."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    two = election.candidate("two")
    one.wire.cut = True
    await asyncio.sleep(30)
    one.wire.cut = False
    await one.stop()
    assert (election.spec["holderIdentity"], two.elector.leader) == ("two", True)


async def test_giving_back_does_not_wait_for_an_api_that_is_away(election: Election) -> None:
    """A process that has to end ends: after one second the Lease is left to expire."""
    one = election.candidate("one")
    await asyncio.sleep(FIRST + 1)
    one.wire.cut = True
    before = now()
    await one.stop()
    assert now() - before <= 1.0
    assert election.spec["holderIdentity"] == "one"


ACTS = st.lists(
    st.tuples(st.sampled_from(["kill", "stop", "cut", "refuse", "heal", "delete", "edit", "wait"]), st.integers(0, 2),
              st.floats(0.0, 12.0)),
    max_size=15,
)  # fmt: skip


TINY = [("refuse", 2, 1.4e-45), ("edit", 0, 2.8e-277), ("heal", 2, 0.005), ("delete", 2, 0.2466885526270986)]


@settings(max_examples=20)
@example(acts=TINY, seed=238, slow=2.5)  # what is left of the Lease is less than a clock can tell
@given(acts=ACTS, seed=st.integers(0, 1000), slow=st.floats(0.0, 3.0))
def test_never_two_leaders(acts: list[tuple[str, int, float]], seed: int, slow: float) -> None:
    """Three candidates with slow wires that are killed, stopped, cut off and healed, over a Lease that is deleted and
    edited: whenever one becomes the leader no other is, and in the end one leads."""
    virtual.run(_never_two(acts, random.Random(seed), slow))


async def _never_two(acts: list[tuple[str, int, float]], rng: random.Random, slow: float) -> None:
    election = Election()
    made = 0

    def replace(place: int | None = None) -> None:
        nonlocal made
        made += 1
        one = election.candidate(f"c{made}", delay=lambda: rng.uniform(0.0, slow), skew=rng.uniform(-1e5, 1e5))
        if place is not None:
            election.candidates.remove(one)
            election.candidates[place] = one

    for _ in range(3):
        replace()
    for what, place, pause in acts:
        one = election.candidates[place]
        if what in ("kill", "stop"):
            await (one.kill() if what == "kill" else one.stop())
            replace(place)
        elif what in ("cut", "refuse", "heal"):
            one.wire.cut, one.wire.refused = what == "cut", what == "refuse"
        elif what == "delete" and ("leases", "ns", "lease") in election.api.objects:
            await election.api.delete(KIND, "lease", "ns")
        elif what == "edit" and ("leases", "ns", "lease") in election.api.objects:
            await election.api.patch(KIND, "lease", {"metadata": {"labels": {"n": str(now())}}}, "ns")
        await asyncio.sleep(pause)
        election.check()
    for one in election.candidates:
        one.wire.cut = one.wire.refused = False
        one.wire.delay = lambda: 0.0
    await asyncio.sleep(40)
    assert len(election.leaders) == 1
    await election.end()
