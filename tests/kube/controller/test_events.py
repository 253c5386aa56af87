"""Recorder: events reach the API once, are counted up, and never hold anybody up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry

from metal.kube.client.errors import ApiError, Forbidden, Unavailable
from metal.kube.controller.events import Recorder
from metal.kube.controller.metrics import Metrics
from metal.kube.meta.clock import LoopClock
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import EVENT, THING, WORLD, thing

pytestmark = pytest.mark.looptime
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def recording(api: FakeAPI, clock: LoopClock, **options: Any) -> AsyncIterator[Recorder]:
    recorder = Recorder(api, EVENT, component="test", clock=clock, **options)
    task = asyncio.ensure_future(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stored(api: FakeAPI) -> list[dict[str, Any]]:
    return [obj for (plural, _, _), obj in api.objects.items() if plural == "events"]


async def test_an_event_says_what_happened_to_what() -> None:
    """The Event lies beside the object and names it by uid."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a", uid="u1"), THING, "Warning", "TooHot", "turn it off")
        await recorder.flush()

    [event] = stored(api)
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("a.")
    assert event["involvedObject"] == {
        "apiVersion": "test.example/v1",
        "kind": "Thing",
        "name": "a",
        "namespace": "ns",
        "uid": "u1",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "TooHot", "turn it off")
    assert (event["count"], event["firstTimestamp"]) == (1, "2026-03-01T12:00:00Z")
    assert event["source"] == {"component": "test"}


async def test_events_of_cluster_scoped_objects_go_to_default() -> None:
    """An object without a namespace has its events in "default"."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a", namespace=""), WORLD, "Normal", "Spins", "round")
        await recorder.flush()

    assert stored(api)[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in stored(api)[0]["involvedObject"]


async def test_the_same_within_ten_minutes_is_counted_up() -> None:
    """Three times the same is one Event with count 3; after a pause of more than ten minutes a new one begins."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        for pause in (540, 540, 660, 0):
            recorder.event(thing("a"), THING, "Normal", "Again", "and again")
            await recorder.flush()
            await asyncio.sleep(pause)

    assert sorted(event["count"] for event in stored(api)) == [1, 3]
    assert {event["lastTimestamp"] for event in stored(api)} == {"2026-03-01T12:18:00Z", "2026-03-01T12:29:00Z"}


async def test_another_reason_or_message_or_object_is_another_event() -> None:
    """Only what is entirely the same is counted up."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a"), THING, "Normal", "One", "text")
        recorder.event(thing("a"), THING, "Normal", "Two", "text")
        recorder.event(thing("a"), THING, "Normal", "One", "other")
        recorder.event(thing("b"), THING, "Normal", "One", "text")
        recorder.event(thing("a", uid="2"), THING, "Normal", "One", "text")
        await recorder.flush()

    assert [event["count"] for event in stored(api)] == [1] * 5


async def test_a_restarted_process_takes_the_series_up() -> None:
    """The name is the same after a restart, so the count continues."""
    api, clock = FakeAPI(), LoopClock(START)
    for _ in range(2):
        async with recording(api, clock) as recorder:
            recorder.event(thing("a"), THING, "Normal", "Again", "and again")
            await recorder.flush()

    assert [event["count"] for event in stored(api)] == [2]


async def test_an_event_that_the_api_forgot_begins_anew() -> None:
    """Events expire in the API; counting up a forgotten one creates it again."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a"), THING, "Normal", "Again", "text")
        await recorder.flush()
        await api.delete(EVENT, stored(api)[0]["metadata"]["name"], "ns")
        recorder.event(thing("a"), THING, "Normal", "Again", "text")
        await recorder.flush()

    assert [event["count"] for event in stored(api)] == [1]


async def test_a_flood_is_dropped_and_counted_not_waited_for() -> None:
    """`event` returns at once with a full queue; the drops are counted and logged once."""
    api = FakeAPI()
    api.faults.before = lambda verb, plural, name: 100.0
    with structlog.testing.capture_logs() as logs:
        async with recording(api, LoopClock(START), limit=10) as recorder:
            for number in range(50):
                recorder.event(thing("a"), THING, "Normal", "Flood", f"drop {number}")

    assert recorder.dropped == 40
    assert len(logs) == 1


async def test_a_short_outage_loses_nothing() -> None:
    """An unreachable API is tried three times."""
    api = FakeAPI()
    api.faults.next("create", Unavailable("down"), Unavailable("down"))
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a"), THING, "Normal", "Reason", "text")
        await recorder.flush()

    assert (len(stored(api)), recorder.dropped) == (1, 0)


@pytest.mark.parametrize("error", [Unavailable("down"), Forbidden("no right to create events")])
async def test_what_cannot_be_written_is_dropped_and_the_next_one_is_tried(error: ApiError) -> None:
    """A refusal costs that event only; one warning when it starts, one line when it is over."""
    api = FakeAPI()
    api.faults.next("create", *[error] * (3 if isinstance(error, Unavailable) else 1))
    with structlog.testing.capture_logs() as logs:
        async with recording(api, LoopClock(START)) as recorder:
            recorder.event(thing("a"), THING, "Normal", "Lost", "text")
            recorder.event(thing("a"), THING, "Normal", "Found", "text")
            await recorder.flush()

    assert ([event["reason"] for event in stored(api)], recorder.dropped) == (["Found"], 1)
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


async def test_an_unexpected_error_costs_that_event_only() -> None:
    """An error that is none of the API's is dropped and counted too; later Events are written."""
    api = FakeAPI()
    api.faults.next("create", ValueError("a defect of a client"))  # type: ignore[arg-type]  # no error of the contract
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("a"), THING, "Normal", "Lost", "text")
        recorder.event(thing("a"), THING, "Normal", "Found", "text")
        async with asyncio.timeout(60):
            await recorder.flush()

    assert ([event["reason"] for event in stored(api)], recorder.dropped) == (["Found"], 1)


async def test_long_texts_and_names_are_cut_to_what_the_api_takes() -> None:
    """Messages end at 1024 characters, names at 253."""
    api = FakeAPI()
    async with recording(api, LoopClock(START)) as recorder:
        recorder.event(thing("n" * 253), THING, "Normal", "Long", "m" * 5000)
        await recorder.flush()

    assert len(stored(api)[0]["message"]) == 1024
    assert len(stored(api)[0]["metadata"]["name"]) == 253


async def test_metrics_tell_written_from_dropped() -> None:
    """Operators see lost events without reading logs."""
    registry = CollectorRegistry()
    api = FakeAPI()
    api.faults.next("create", Forbidden("no"))
    async with recording(api, LoopClock(START), metrics=Metrics(registry)) as recorder:
        for number in range(3):
            recorder.event(thing("a"), THING, "Normal", "Reason", f"text {number}")
        await recorder.flush()

    assert registry.get_sample_value("metal_events_total", {"result": "written"}) == 2
    assert registry.get_sample_value("metal_events_total", {"result": "dropped"}) == 1
