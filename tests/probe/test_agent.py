"""Retries and exit codes of the probe."""

import random
from typing import Any

import pytest

from metal.probe.agent import DONE, GAVE_UP, MALFORMED, REFUSED, Agent
from metal.probe.registry import Malformed, NotAccepted, Refused


class Stop(Exception):
    """Ends a run that would not end by itself."""


class World:
    """A registry with a list of answers, and a clock that advances only in sleep."""

    def __init__(self, *answers: Exception | None, stop_after: int = 1000) -> None:
        self.answers = list(answers)
        self.reports: list[dict[str, Any]] = []
        self.sleeps: list[float] = []
        self.gathered = 0
        self._stop_after = stop_after

    def agent(self, **options: Any) -> Agent:
        return Agent(self.gather, self.register, self.sleep, self.now, random=random.Random(7), **options)

    def gather(self) -> dict[str, Any]:
        self.gathered += 1
        return {"number": self.gathered}

    def register(self, data: dict[str, Any]) -> None:
        self.reports.append(data)
        answer = self.answers.pop(0) if self.answers else None
        if answer:
            raise answer

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        if len(self.sleeps) >= self._stop_after:
            raise Stop

    def now(self) -> float:
        return sum(self.sleeps)


@pytest.mark.behaviour("Registry and probe", "The probe ends when one report was accepted.", go="Reports every 30 s.")
def test_one_report_taken_ends_the_run() -> None:
    """Without an interval the run ends."""
    world = World(None)

    assert world.agent().run() == DONE
    assert (len(world.reports), world.sleeps) == (1, [])


@pytest.mark.behaviour(
    "Registry and probe", "The probe retries with waits that double from 1 s to 30 s, each shortened by up to half."
)
def test_failures_are_retried_with_growing_spread_waits() -> None:
    """Waits double from one second to thirty, each shortened by up to half, without a limit on attempts."""
    world = World(*[NotAccepted("down")] * 60, stop_after=50)

    with pytest.raises(Stop):
        world.agent().run()

    for attempt, wait in enumerate(world.sleeps):
        longest = min(30, 2**attempt)
        assert longest / 2 <= wait <= longest
    assert len(set(world.sleeps)) > 40


def test_the_same_report_is_sent_again() -> None:
    """Gathering takes time and LLDP frames; the facts have not changed."""
    world = World(NotAccepted("down"), None)

    assert world.agent().run() == DONE
    assert world.reports == [{"number": 1}, {"number": 1}]


def test_a_registry_that_asks_for_patience_gets_it_within_bounds() -> None:
    """Retry-After is honoured up to a bound."""
    world = World(NotAccepted("busy", 60), NotAccepted("busy", 86400), None)

    assert world.agent().run() == DONE
    assert world.sleeps[0] == 60
    assert world.sleeps[1] == 300


@pytest.mark.parametrize(("answer", "code"), [(Refused("spent"), REFUSED), (Malformed("no"), MALFORMED)])
def test_final_answers_end_the_run_with_their_own_code(
    answer: Exception, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the reason; a systemd unit can distinguish the codes."""
    world = World(NotAccepted("down"), answer)

    assert world.agent().run() == code
    assert len(world.reports) == 2
    assert str(answer) in caplog.text


def test_a_deadline_is_kept() -> None:
    """The run ends before a wait that would pass it."""
    world = World(*[NotAccepted("down")] * 100)

    assert world.agent(deadline=20).run() == GAVE_UP
    assert world.now() <= 20


def test_once_means_once() -> None:
    """No second attempt, and no second report even with an interval."""
    failing, fine = World(NotAccepted("down")), World(None)

    assert failing.agent(once=True).run() == GAVE_UP
    assert fine.agent(once=True, interval=30).run() == DONE
    assert failing.sleeps == fine.sleeps == []


@pytest.mark.behaviour("Registry and probe", "With `--interval` the probe reports again until the token is refused.")
def test_an_interval_reports_anew_until_the_token_is_refused() -> None:
    """Each round gathers again."""
    world = World(None, None, Refused("spent"))

    assert world.agent(interval=30).run() == REFUSED
    assert world.reports == [{"number": 1}, {"number": 2}, {"number": 3}]
    assert world.sleeps == [30, 30]
