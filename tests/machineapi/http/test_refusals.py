"""Every refusal is counted; Events are rate-limited."""

import pytest
from prometheus_client import CollectorRegistry

from metal.api.meta import ObjectMeta
from metal.api.server import Server
from metal.machineapi.http.refusals import Refusals
from tests.machineapi.world import Clock

SERVERS = [Server(metadata=ObjectMeta(name=f"s{number}")) for number in range(3)]


@pytest.fixture
def told() -> list[tuple[str, str, str, str]]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def refusals(clock: Clock, metrics: CollectorRegistry, told: list[tuple[str, str, str, str]]) -> Refusals:
    return Refusals(clock, event=lambda server, *rest: told.append((server.metadata.name, *rest)), registry=metrics)


@pytest.mark.parametrize(
    ("reason", "status", "body"),
    [
        ("UnknownMachine", 404, b"not found\n"),
        ("TokenInvalid", 403, b"forbidden\n"),
        ("Malformed", 400, b"bad request\n"),
    ],
)
def test_the_status_follows_from_the_reason(refusals: Refusals, reason: str, status: int, body: bytes) -> None:
    """The body never contains the message."""
    answer = refusals.refuse("script", reason, "10.0.0.1", "secret detail")
    assert (answer.status, answer.body) == (status, body)
    assert refusals.refuse("x", reason, "10.0.0.1", "secret detail", status=401).status == 401


def test_every_refusal_is_counted(refusals: Refusals, metrics: CollectorRegistry) -> None:
    """Also those without an Event."""
    for _ in range(5):
        refusals.refuse("script", "TokenInvalid", "10.0.0.1", "no", SERVERS[0])
    labels = {"endpoint": "script", "reason": "TokenInvalid"}
    assert metrics.get_sample_value("metal_boot_refusals_total", labels) == 5


def test_an_event_a_minute_for_server_reason_and_client(
    refusals: Refusals, clock: Clock, told: list[tuple[str, str, str, str]]
) -> None:
    """A change of any of the three allows another Event."""
    for server, reason, client in [(0, "A", "1"), (0, "A", "1"), (1, "A", "1"), (0, "B", "1"), (0, "A", "2")]:
        refusals.refuse("script", reason, client, "no", SERVERS[server])
    assert [(name, reason) for name, _, reason, _ in told] == [("s0", "A"), ("s1", "A"), ("s0", "B"), ("s0", "A")]
    clock.advance(61)
    refusals.refuse("script", "A", "1", "no", SERVERS[0])
    assert len(told) == 5


def test_a_client_with_many_addresses_does_not_drown_other_servers(
    refusals: Refusals, told: list[tuple[str, str, str, str]]
) -> None:
    """IPv6 clients can use any number of addresses."""
    for number in range(1000):
        refusals.refuse("script", "A", f"fd00::{number:x}", "no", SERVERS[0])
    assert len(told) == 12
    refusals.refuse("script", "A", "fd00::1", "no", SERVERS[1])
    assert told[-1][0] == "s1"


def test_without_a_server_nobody_is_told(refusals: Refusals, told: list[tuple[str, str, str, str]]) -> None:
    """Without a Server there is no object for an Event."""
    refusals.refuse("script", "UnknownMachine", "10.0.0.1", "no")
    assert told == []
