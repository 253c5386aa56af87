"""Event subscriptions are created once, found again after a crash, removed, and reported."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from metal.bmc.errors import BMCNotSupported, BMCServerError, BMCUnreachable
from metal.bmc.events import Subscription
from metal.machine.boot_window import digest
from tests.controllers.rack import KINDS, Rack, RackBMC, condition, rack, ready, soon

pytestmark = pytest.mark.looptime
URL = "http://192.0.2.100:10001"


async def subscribed(r: Rack) -> Any:
    """Wait for the BMC to have a subscription."""

    async def check() -> Any:
        found = await r.bmc()
        return found if found.status.events_subscription_link else None

    return await soon(check, within=75)


async def event(r: Rack) -> None:
    """Act as the receiver."""
    moment = r.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    await r.client.patch_status(KINDS.bmc, "b1", {"status": {"lastEventTime": moment}})


async def beat(r: Rack, seconds: float, every: float = 200.0) -> None:
    """Deliver events for a period."""
    for _ in range(int(seconds / every)):
        await event(r)
        await asyncio.sleep(every)


async def test_without_a_receiver_nobody_subscribes() -> None:
    """There is no additional request and no condition."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await asyncio.sleep(120)
        told = await r.bmc()
    assert {"subscribe", "subscriptions"} & set(bmc.calls) == set()
    assert [c.type for c in told.status.conditions if c.type == "Events"] == []


@pytest.mark.behaviour(
    "BMC", "An event subscription is made once; its URL holds a token of which only the digest is stored."
)
async def test_a_subscription_is_made_once_and_leads_to_a_path_that_only_the_bmc_knows() -> None:
    """Status holds its link and the digest of its token; the token itself is not stored."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        made = await subscribed(r)
        await asyncio.sleep(3600)
        later, events = await r.bmc(), await r.events()
    (held,) = bmc.destinations
    token = held.destination.removeprefix(f"{URL}/events/b1/")
    assert len(token) >= 32
    assert made.status.event_token_digest == digest(token)
    assert made.status.events_subscription_link == held.uri
    assert held.context == f"metal-operator {made.metadata.uid}"
    assert bmc.calls.count("subscribe") == 1
    assert token not in repr(later)
    assert events.count(("b1", "Subscribed")) == 1
    assert (condition(later, "Events").status, condition(later, "Events").reason) == ("False", "NoEventsYet")
    assert URL in condition(later, "Events").message


async def test_the_digest_is_written_down_before_the_bmc_hears_of_the_token() -> None:
    """After a crash the manager can distinguish its subscription from others."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        known: list[bool] = []
        subscribe = bmc.subscribe

        async def watched(destination: str, context: str) -> str:
            known.append((await r.bmc()).status.event_token_digest == digest(destination.rpartition("/")[2]))
            return await subscribe(destination, context)

        bmc.subscribe = watched  # type: ignore[method-assign]  # what was known when it was asked
        await r.add_bmc(1)
        await subscribed(r)
    assert known == [True]


async def test_a_manager_that_was_killed_before_it_wrote_the_link_finds_it_again() -> None:
    """It is found by destination and context: no second subscription, no new token."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        made = await subscribed(r)
        await r.runtime.stop(grace=0.0)
        await r.client.patch_status(KINDS.bmc, "b1", {"status": {"eventsSubscriptionLink": None}})
        await r.start(2)
        found = await subscribed(r)
    assert bmc.calls.count("subscribe") == 1
    assert found.status.events_subscription_link == made.status.events_subscription_link
    assert found.status.event_token_digest == made.status.event_token_digest


async def test_leftovers_of_ours_are_removed_and_others_are_not_touched() -> None:
    """A subscription with an old token is removed; one with another context belongs to another client and stays."""
    async with rack(started=False, event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        ours = f"metal-operator {(await r.bmc()).metadata.uid}"
        bmc.destinations = [
            Subscription("/s/old", f"{URL}/events/b1/old-token", ours),
            Subscription("/s/foreign", f"{URL}/events/b1/else", "somebody"),
        ]
        await r.start()
        made = await subscribed(r)
    assert {known.uri for known in bmc.destinations} == {"/s/foreign", made.status.events_subscription_link}


async def test_a_bmc_that_came_from_another_home_leaves_no_subscription_behind() -> None:
    """After a move the object has another UID and the receiver another URL; the token identifies the subscription."""
    async with rack(started=False, event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        bmc.destinations = [Subscription("/s/old", "http://192.0.2.55/events/b1/old-token", "metal-operator other-uid")]
        status = {"eventsSubscriptionLink": "/s/old", "eventTokenDigest": digest("old-token")}
        await r.client.patch_status(KINDS.bmc, "b1", {"status": status})
        await r.start()
        await soon(lambda: asyncio.sleep(0, "subscribe" in bmc.calls), within=75)
        await asyncio.sleep(1)
        made = await r.bmc()
    assert [known.uri for known in bmc.destinations] == [made.status.events_subscription_link]
    assert bmc.destinations[0].destination.startswith(URL)


async def test_a_subscription_that_the_bmc_lost_is_made_again() -> None:
    """A factory reset is noticed within a heartbeat, and the new subscription has a new token."""
    async with rack(event_url=URL, event_heartbeat=120.0) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        made = await subscribed(r)
        bmc.destinations.clear()
        await soon(lambda: asyncio.sleep(0, bmc.destinations), within=240)
        await asyncio.sleep(5)
        again = await r.bmc()
    assert bmc.calls.count("subscribe") == 2
    assert again.status.event_token_digest != made.status.event_token_digest


@pytest.mark.parametrize(
    ("failure", "reason"), [(BMCServerError("500"), "SubscriptionFailed"), (BMCNotSupported("none."), "NotSupported")]
)
async def test_a_bmc_without_events_is_ready_all_the_same(failure: Any, reason: str) -> None:
    """It is polled at the usual interval; the condition Events has the reason."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        bmc.refuses["subscriptions"] = failure
        await r.add_bmc(1)
        await asyncio.sleep(5)
        bmc.calls.clear()
        await asyncio.sleep(3600)
        told = await r.bmc()
    assert ready(told) == ("True", "Connected")
    assert (condition(told, "Events").status, condition(told, "Events").reason) == ("False", reason)
    assert 50 <= bmc.calls.count("systems") <= 75
    assert reason != "NotSupported" or bmc.calls.count("subscriptions") <= 15


async def test_a_bmc_that_sends_events_is_asked_less_often_and_again_when_it_falls_silent() -> None:
    """It is polled five times less often, and at the usual interval after fifteen minutes without events."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        await event(r)
        await asyncio.sleep(70)
        bmc.calls.clear()
        await beat(r, 3600)
        flowing, calls = await r.bmc(), list(bmc.calls)
        await asyncio.sleep(1300)
        silent = await r.bmc()
        bmc.calls.clear()
        await asyncio.sleep(3600)
    assert (condition(flowing, "Events").status, condition(flowing, "Events").reason) == ("True", "EventsArrive")
    assert 9 <= calls.count("systems") <= 17
    assert calls.count("send_test_event") == 0
    assert (condition(silent, "Events").status, condition(silent, "Events").reason) == ("False", "EventsStopped")
    assert 50 <= bmc.calls.count("systems") <= 75


async def test_a_silent_bmc_is_asked_for_a_sign_of_life() -> None:
    """A healthy machine sends no events: a test event in each heartbeat shows that delivery works."""
    async with rack(event_url=URL, event_heartbeat=300.0) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        await asyncio.sleep(3600)
    assert 9 <= bmc.calls.count("send_test_event") <= 16


async def test_old_events_of_a_former_subscription_do_not_count() -> None:
    """A new token begins without a last event."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        await event(r)
        assert (await r.bmc()).status.last_event_time is not None
        await asyncio.sleep(400)
        bmc.destinations.clear()
        await soon(lambda: asyncio.sleep(0, bmc.destinations), within=800)
        await asyncio.sleep(5)
        assert (await r.bmc()).status.last_event_time is None


@pytest.mark.behaviour(
    "BMC", "Deleting a BMC removes its event subscription; a hanging BMC does not block the deletion."
)
@pytest.mark.parametrize("dead", [False, True])
async def test_deletion_unsubscribes_and_is_never_held_up(dead: bool) -> None:
    """The subscription on a BMC that hangs stays and has no effect: its token is unknown from then on."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        if dead:
            _hang(bmc)
        started = r.clock()
        await r.user.delete(KINDS.bmc, "b1")
        await soon(lambda: _gone(r), within=20)
        took = r.clock() - started
    assert len(bmc.destinations) == (1 if dead else 0)
    assert took < timedelta(seconds=12)


async def test_a_bmc_whose_secret_went_first_is_unsubscribed_all_the_same() -> None:
    """The objects of a site may be deleted in any order."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        await r.user.delete(KINDS.bmc_secret, "b1")
        await asyncio.sleep(1)
        await r.user.delete(KINDS.bmc, "b1")
        await soon(lambda: _gone(r), within=20)
    assert bmc.destinations == []


async def test_a_receiver_that_is_taken_away_ends_the_subscription() -> None:
    """It is removed from the BMC and from the status."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await subscribed(r)
        await r.runtime.stop(grace=0.0)
        r.bmc_settings = type(r.bmc_settings)(namespace=r.bmc_settings.namespace)
        await r.start(2)
        await asyncio.sleep(5)
        after = await r.bmc()
    assert bmc.destinations == []
    assert (after.status.events_subscription_link, after.status.event_token_digest) == ("", "")
    assert [c.type for c in after.status.conditions if c.type == "Events"] == []


async def test_an_outage_of_the_bmc_is_no_matter_of_its_events() -> None:
    """The condition Ready reports the outage; the subscription is checked after it."""
    async with rack(event_url=URL) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        made = await subscribed(r)
        bmc.failure = BMCUnreachable("dead")
        await asyncio.sleep(1800)
        bmc.failure = None
        await asyncio.sleep(75)
        after = await r.bmc()
    assert after.status.events_subscription_link == made.status.events_subscription_link
    assert ready(after) == ("True", "Connected")


def _hang(bmc: RackBMC) -> None:
    async def never(uri: str) -> None:
        await asyncio.Event().wait()

    bmc.unsubscribe = never  # type: ignore[method-assign]  # the BMC takes the request and says nothing


async def _gone(r: Rack) -> bool:
    return not await r.exists(KINDS.bmc, "b1")
