"""One manager's part in a pause: it reports that it has stopped only after it did, and heartbeats before it starts."""

import asyncio
from datetime import UTC, datetime

import pytest

from metal.api.core import CONFIG_MAP, EVENT
from metal.kube.client.errors import Forbidden
from metal.kube.controller.runtime import Runtime
from metal.move.pause import HEARTBEAT_TIMEOUT, INTERVAL, MANAGERS, MARK, SILENCE, Mark, Pause
from tests.kube.client.fakeapi import FakeAPI

pytestmark = pytest.mark.looptime
SPACE = "metal-system"
OURS = Mark("move-1", "source", "peer")


class Site:
    """A manager's pause over an API with faults."""

    def __init__(self) -> None:
        self.api = FakeAPI()
        self.runtime = Runtime(self.api)
        self.pause = Pause(self.api, SPACE, self.runtime, "me", lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def mark(self) -> None:
        """A move starts at once."""
        meta = {"name": MARK, "namespace": SPACE, "uid": "u", "resourceVersion": "1"}
        self.api.objects[CONFIG_MAP.plural, SPACE, MARK] = {"metadata": meta, "data": OURS.as_data()}

    @property
    def said(self) -> str:
        """The manager's last entry: the pause for which it has stopped."""
        found = self.api.objects.get((CONFIG_MAP.plural, SPACE, MANAGERS))
        return "" if found is None else str(found["data"]["me"]).split()[-1]


async def test_a_write_that_outlasts_everything_is_waited_for_before_it_says_that_it_stopped() -> None:
    """Also when one read timed out meanwhile: the write could still arrive after the objects were copied."""
    site = Site()
    await site.pause.begin()
    slow = SILENCE * 2 + INTERVAL
    site.api.faults.before = lambda verb, plural, name: slow if plural == EVENT.plural else 0.0
    body = {"metadata": {"name": "e", "namespace": "default"}}
    write = asyncio.ensure_future(site.pause.client.create(EVENT, body))
    running = asyncio.ensure_future(site.pause.run())
    site.mark()

    await asyncio.sleep(slow - 1)
    assert (write.done(), site.pause.paused, site.said) == (False, True, "-")
    await asyncio.sleep(SILENCE + INTERVAL * 2)
    assert (write.done(), site.said) == (True, OURS.id)
    running.cancel()


async def test_a_pause_that_begins_with_its_first_sign_of_life_is_seen() -> None:
    """Either the move finds the manager's heartbeat, or the manager finds the pause."""
    site = Site()

    def pausing(verb: str, plural: str, name: str) -> float:
        if name == MANAGERS:
            site.mark()
        return 0.0

    site.api.faults.before = pausing
    await site.pause.begin()
    assert (site.pause.paused, site.said) == (True, OURS.id)


async def test_a_manager_that_cannot_be_heard_stops_before_it_is_taken_for_dead() -> None:
    """It sees no pause, but a move would not wait for it."""
    site = Site()
    await site.pause.begin()
    before = site.pause.paused
    running = asyncio.ensure_future(site.pause.run())

    def mute(verb: str, plural: str, name: str) -> float:
        if name == MANAGERS:
            raise Forbidden("no patch for you")
        return 0.0

    site.api.faults.before = mute
    await asyncio.sleep(SILENCE - INTERVAL)
    meanwhile = site.pause.paused
    await asyncio.sleep(HEARTBEAT_TIMEOUT - SILENCE)
    assert (before, meanwhile, site.pause.paused) == (False, False, True)
    running.cancel()
