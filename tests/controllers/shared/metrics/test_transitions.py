"""Transitions are logged and counted in the words of the status."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import structlog
from prometheus_client import CollectorRegistry

from metal.api.bmc import BMCStatus
from metal.api.claim import ServerClaim, ServerClaimStatus
from metal.api.kinds import kinds
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import Server, ServerStatus
from metal.controllers.shared.metrics import transitions
from metal.controllers.shared.metrics.metrics import Metrics
from metal.kube.controller.transitions import words

KINDS = kinds()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = ServerStatus(state="Available", since=NOW)
NEW = msgspec.structs.replace(
    OLD, state="Error", since=NOW + timedelta(seconds=90),
    conditions=(
        Condition(type="BMCReachable", status="False", reason="Timeout", message="no answer"),
        Condition(type="Ready", status="False", reason="PowerTimeout", message="the power did not go off"),
    ),
)  # fmt: skip


def record(old: Any, new: Any) -> tuple[CollectorRegistry, list[Any]]:
    registry = CollectorRegistry()
    server = Server(metadata=ObjectMeta(name="s1"))
    with structlog.testing.capture_logs() as logs:
        transitions.record(Metrics(registry), KINDS.server, server, old, new)
    return registry, logs


def test_a_transition_is_one_line_with_the_words_of_its_condition() -> None:
    """Object, from, to, reason, message and since are fields; Error is a warning."""
    _, logs = record(OLD, NEW)

    assert logs == [
        {
            "event": "transition", "log_level": "warning", "kind": "Server", "namespace": None, "name": "s1",
            "from": "Available", "to": "Error", "reason": "PowerTimeout", "message": "the power did not go off",
            "since": "2026-01-01T00:01:30+00:00", "seconds": 90.0,
        }
    ]  # fmt: skip


def test_a_transition_is_counted_with_the_time_in_the_former_state() -> None:
    """No label names the object."""
    registry, _ = record(OLD, NEW)

    labels = {"kind": "Server", "from": "Available", "to": "Error"}
    assert registry.get_sample_value("metal_transitions_total", labels) == 1
    assert registry.get_sample_value("metal_state_seconds_sum", {"kind": "Server", "state": "Available"}) == 90


def test_a_change_within_a_state_is_no_transition() -> None:
    """Another condition or wait is not logged."""
    _, logs = record(NEW, msgspec.structs.replace(NEW, conditions=(), waiting_for="the power"))

    assert logs == []


def test_the_first_state_comes_from_none_and_has_no_duration() -> None:
    """A new object was in no state."""
    registry, logs = record(ServerStatus(), msgspec.structs.replace(OLD, state="Initial"))

    assert [(line["from"], line["to"], line["seconds"]) for line in logs] == [("", "Initial", None)]
    labels = {"kind": "Server", "from": "None", "to": "Initial"}
    assert registry.get_sample_value("metal_transitions_total", labels) == 1


def test_a_claims_phase_is_its_state() -> None:
    """Kinds with status.phase have transitions, too, with their namespace."""
    bound = Condition(type="Bound", status="True", reason="ServerBound", message="bound to server s1")
    old, new = ServerClaimStatus(phase="Unbound"), ServerClaimStatus(phase="Bound", conditions=(bound,))
    claim = ServerClaim(metadata=ObjectMeta(name="c1", namespace="team"))
    with structlog.testing.capture_logs() as logs:
        transitions.record(Metrics(CollectorRegistry()), KINDS.claim, claim, old, new)

    assert [(line["kind"], line["namespace"], line["to"], line["reason"]) for line in logs] == [
        ("ServerClaim", "team", "Bound", "ServerBound")
    ]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), ("", "the BMC")),
        ((Condition(type="Ready", status="False", reason="Old", message="old"),), ("Old", "old")),
    ],
)
def test_without_a_changed_condition_the_status_says_what_is_awaited(
    conditions: tuple[Condition, ...], expected: tuple[str, str]
) -> None:
    """An unchanged main condition comes before status.waitingFor."""
    old = ServerStatus(state="Initial", conditions=conditions)
    new = msgspec.structs.replace(old, state="Discovery", waiting_for="the BMC")

    assert words(old, new, ("Ready",)) == expected


def test_a_bmc_cannot_add_series_with_states_of_its_own() -> None:
    """A state that Redfish does not know counts as Other; the log line has it as it is."""
    registry = CollectorRegistry()
    metrics, states = Metrics(registry), ("Enabled", "state-1", "state-2", "Quiesced")
    bmc = Server(metadata=ObjectMeta(name="b1"))  # the kind is an argument of its own
    with structlog.testing.capture_logs() as logs:
        for old, new in pairwise(states):
            before, after = (BMCStatus(state=state, since=NOW) for state in (old, new))
            transitions.record(metrics, KINDS.bmc, bmc, before, after)
    counted = {
        (sample.labels["from"], sample.labels["to"])
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "metal_transitions_total"
    }
    assert counted == {("Enabled", "Other"), ("Other", "Other"), ("Other", "Quiesced")}
    assert [line["to"] for line in logs] == ["state-1", "state-2", "Quiesced"]
