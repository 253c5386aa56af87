"""Who is admitted, who is closed for another, and when."""

import pytest
import structlog
from prometheus_client import CollectorRegistry

from metal.listener.limits import ConnectionLimits
from metal.listener.metrics import Metrics
from metal.listener.report import LOG_INTERVAL, Reason, Report
from metal.listener.table import Entry, Phase, Table, group_of


class World:
    """A table on a clock that the test sets."""

    def __init__(self, total: int = 100, **limits: float) -> None:
        self.time = 0.0
        self.registry = CollectorRegistry()
        self.closed: list[Entry] = []
        report = Report("test", self.now, Metrics(self.registry))
        keep = {"keep_seconds": 0, "keep_served_seconds": 0}
        allowed = ConnectionLimits(**{**keep, **limits})  # type: ignore[arg-type]  # all are numbers
        self.table = Table(allowed, total, report, self.now)

    def now(self) -> float:
        return self.time

    def connect(self, address: str, phase: Phase = Phase.NEW) -> Entry | None:
        entry = self.table.admit(address)
        if entry is not None:
            entry.close = lambda: self.closed.append(entry)
            entry.enter(phase, self.time)
            self.time += 0.001
        return entry

    def counted(self, reason: Reason) -> float:
        labels = {"listener": "test", "reason": reason.value}
        return self.registry.get_sample_value("metal_http_connections_closed_total", labels) or 0.0


def test_one_address_cannot_have_more_than_its_part() -> None:
    """Beyond its limit an address is refused while all its connections are busy; others are not affected."""
    w = World(per_address=2)
    assert all(w.connect("192.0.2.1", Phase.BUSY) for _ in range(2))
    assert w.connect("192.0.2.1") is None
    assert w.connect("192.0.2.2") is not None
    assert w.counted(Reason.ADDRESS_LIMIT) == 1


def test_what_waits_gives_way_in_order() -> None:
    """A handshake goes first, then a new, an unfinished head, an idle, an unfinished body; the elder of two first."""
    w = World(per_address=6)
    order = [Phase.BODY, Phase.IDLE, Phase.HEAD, Phase.NEW, Phase.HANDSHAKE, Phase.HANDSHAKE]
    held = [w.connect("192.0.2.1", phase) for phase in order]
    for _ in order:
        w.connect("192.0.2.1", Phase.BUSY)
    assert w.closed == [held[4], held[5], *reversed(held[:4])]


@pytest.mark.behaviour(
    "Limits", "A client that is served is not closed for one that never completes a request, behind the same address."
)
def test_a_kept_connection_outlives_unfinished_requests_of_its_address() -> None:
    """A machine polls every 5 s, while others behind its address take all places with a part of a head each."""
    w = World(per_address=8, keep_seconds=2.0, keep_served_seconds=10.0)
    honest = w.connect("192.0.2.1", Phase.IDLE)
    assert honest is not None
    for _ in range(60):
        w.time += 1
        for _ in range(8):
            w.connect("192.0.2.1", Phase.HEAD)
        if int(w.time) % 5 == 0:
            honest.enter(Phase.IDLE, w.time)
    assert honest not in w.closed
    assert len(w.closed) > 100


@pytest.mark.behaviour("Limits", "A report that arrives slowly is not closed for bodies that do not arrive.")
def test_a_body_that_arrives_outlives_those_that_do_not() -> None:
    """Of two unfinished bodies the one of which less was received gives way, although the other is older."""
    w = World(per_address=2)
    report = w.connect("192.0.2.1", Phase.BODY)
    assert report is not None
    for _ in range(10):
        w.time += 3
        report.received += 65536
        w.connect("192.0.2.1", Phase.BODY)
    assert report not in w.closed
    assert len(w.closed) == 9


def test_busy_connections_are_never_closed_for_others() -> None:
    """A full listener whose requests are all being answered refuses the next connection."""
    w = World(total=2)
    held = [w.connect(f"192.0.2.{number}", Phase.BUSY) for number in range(2)]
    assert w.connect("192.0.2.9") is None
    assert w.closed == []
    assert None not in held
    assert w.counted(Reason.TOTAL_LIMIT) == 1


def test_the_address_with_most_connections_makes_room() -> None:
    """An honest idle connection stays, though it is older than all of the flood."""
    w = World(total=10)
    honest = w.connect("192.0.2.1", Phase.IDLE)
    flood = [w.connect("192.0.2.2") for _ in range(9)]
    newcomer = w.connect("192.0.2.3")
    assert newcomer is not None
    assert w.closed == [flood[0]]
    assert honest not in w.closed
    assert len(w.table) == 10


def test_room_is_made_elsewhere_when_the_largest_address_is_busy() -> None:
    """Eviction goes on with the address that has the next most connections."""
    w = World(total=5)
    for _ in range(3):
        w.connect("192.0.2.1", Phase.BUSY)
    idle = [w.connect("192.0.2.2", Phase.IDLE) for _ in range(2)]
    assert w.connect("192.0.2.3") is not None
    assert w.closed == [idle[0]]


def test_each_phase_has_its_deadline() -> None:
    """What exceeds it is closed and counted by its name; a busy connection has none."""
    limits = {"handshake_seconds": 1, "first_byte_seconds": 2, "head_seconds": 3, "body_seconds": 4, "idle_seconds": 5}
    w = World(**limits)
    phases = [Phase.HANDSHAKE, Phase.NEW, Phase.HEAD, Phase.BODY, Phase.IDLE, Phase.BUSY]
    held = [w.connect("192.0.2.1", phase) for phase in phases]
    for seconds in range(1, 7):
        w.time = seconds + 0.5
        w.table.expire()
        assert w.closed == held[: min(seconds, 5)]
    w.time = 1e9
    w.table.expire()
    assert len(w.table) == 1
    for reason in (
        Reason.HANDSHAKE_TIMEOUT,
        Reason.FIRST_BYTE_TIMEOUT,
        Reason.HEAD_TIMEOUT,
        Reason.BODY_TIMEOUT,
    ):
        assert w.counted(reason) == 1
    assert w.counted(Reason.EVICTED) == 0


def test_a_body_has_the_time_of_its_bytes() -> None:
    """A large upload at the minimum rate is not closed."""
    w = World(body_seconds=10, body_rate=100)
    entry = w.connect("192.0.2.1", Phase.BODY)
    assert entry is not None
    entry.received = 5000
    w.time = 59
    w.table.expire()
    assert w.closed == []
    w.time = 61
    w.table.expire()
    assert w.closed == [entry]


def test_a_response_that_is_not_received_ends() -> None:
    """A busy connection whose client takes no byte for too long is closed; one that takes some is not."""
    w = World(stall_seconds=60)
    stalled, reading = w.connect("192.0.2.1", Phase.BUSY), w.connect("192.0.2.1", Phase.BUSY)
    assert stalled is not None
    assert reading is not None
    stalled.stalled_since, reading.stalled_since = 0.0, 30.0
    w.time = 61
    w.table.expire()
    assert w.closed == [stalled]


def test_a_client_is_an_ipv4_address_or_a_network_of_64_bits() -> None:
    """An IPv6 host owns its /64, so all of it counts as one; a mapped IPv4 address is that address."""
    assert group_of("192.0.2.1") == group_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert group_of("2001:db8::1") == group_of("2001:db8::ffff:1%eth0") == "2001:db8::/64"
    assert group_of("2001:db8:0:1::1") != group_of("2001:db8::1")
    assert group_of("") == ""


def test_a_flood_is_counted_and_logged_once_a_minute() -> None:
    """The next line has the number of connections since the last one."""
    w = World(per_address=0)
    with structlog.testing.capture_logs() as lines:
        for _ in range(1000):
            w.connect("192.0.2.1")
        w.time += LOG_INTERVAL
        w.connect("192.0.2.1")
    assert [line["count"] for line in lines] == [1, 1000]
    assert w.counted(Reason.ADDRESS_LIMIT) == 1001


def test_a_connection_keeps_its_place_for_some_seconds() -> None:
    """A client that connects without pause is refused, and its elder connections are not replaced until then."""
    w = World(per_address=2, keep_seconds=2.0)
    first, _ = w.connect("192.0.2.1"), w.connect("192.0.2.1")
    assert w.connect("192.0.2.1") is None
    w.time = 2.0005
    assert w.connect("192.0.2.1") is not None
    assert w.closed == [first]


def test_running_out_of_descriptors_gives_one_up() -> None:
    """The next connection can be accepted."""
    w = World(keep_seconds=60)
    entry = w.connect("192.0.2.1", Phase.IDLE)
    w.table.exhausted()
    assert w.closed == [entry]
    assert w.counted(Reason.NO_DESCRIPTORS) == 1
