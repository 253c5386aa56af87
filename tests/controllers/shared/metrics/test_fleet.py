"""Gauges over the caches, and boots as they end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from metal.api.bmc import BMC, BMCSpec, BMCStatus, Protocol
from metal.api.boot_window import BootWindow, Phase
from metal.api.claim import ServerClaim, ServerClaimStatus
from metal.api.common import LocalRef, ObjectRef
from metal.api.kinds import kinds
from metal.api.meta import Condition, Kind, ObjectMeta
from metal.api.server import Server, ServerStatus, Wait
from metal.controllers.shared.metrics.boots import observe_boots
from metal.controllers.shared.metrics.fleet import Fleet, FleetCollector
from metal.controllers.shared.metrics.metrics import NO_TRUST, Metrics
from metal.kube.cache.informer import Informer
from tests.kube.client.fakeapi import FakeAPI

KINDS = kinds()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = BMCSpec(bmc_secret_ref=LocalRef(name="secret"), protocol=Protocol(name="Redfish", port=443))
WINDOW = BootWindow(
    id="w1",
    purpose="Discovery",
    config_ref=ObjectRef(namespace="ns", name="boot"),
    opened_at=NOW,
    expires_at=NOW + timedelta(hours=1),
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def informer(kind: Kind[Any], *objects: Any) -> Informer[Any]:
    made: Informer[Any] = Informer(FakeAPI(), kind)
    for obj in objects:
        made.observe(obj)
    return made


def meta(name: str, version: int = 1) -> ObjectMeta:
    return ObjectMeta(name=name, resource_version=str(version))


def server(name: str, state: str, wait: Wait | None = None) -> Server:
    return Server(metadata=meta(name), status=ServerStatus(state=state, wait=wait))


def collected(*servers: Server, claims: tuple[ServerClaim, ...] = (), bmcs: tuple[BMC, ...] = ()) -> CollectorRegistry:
    registry = CollectorRegistry()
    fleet = Fleet(
        informer(KINDS.server, *servers), informer(KINDS.claim, *claims), informer(KINDS.boot_config),
        informer(KINDS.maintenance), informer(KINDS.bmc, *bmcs), informer(KINDS.endpoint),
    )  # fmt: skip
    registry.register(FleetCollector(fleet, lambda: NOW))
    return registry


def test_servers_are_counted_by_state() -> None:
    """States without a server are 0; a server whose status is empty counts as None."""
    registry = collected(server("a", "Available"), server("b", "Available"), server("c", ""))

    value = registry.get_sample_value
    assert value("metal_servers", {"state": "Available"}) == 2
    assert value("metal_servers", {"state": "Error"}) == 0
    assert value("metal_servers", {"state": "None"}) == 1


def test_waits_have_a_number_an_age_and_the_overdue() -> None:
    """A wait is overdue from its deadline on."""
    registry = collected(
        server("a", "Discovery", Wait(for_="ProbeReport", since=ago(60), until=ago(1))),
        server("b", "Discovery", Wait(for_="ProbeReport", since=ago(10), until=NOW + timedelta(seconds=1))),
        server("c", "Error", Wait(for_="Repair", since=ago(5))),
    )

    value = registry.get_sample_value
    assert value("metal_server_waits", {"wait": "ProbeReport"}) == 2
    assert value("metal_server_wait_oldest_seconds", {"wait": "ProbeReport"}) == 60
    assert value("metal_server_waits_overdue", {"wait": "ProbeReport"}) == 1
    assert value("metal_server_waits_overdue", {"wait": "Repair"}) == 0


def test_claims_are_counted_by_phase_with_the_age_of_the_oldest() -> None:
    """How long a tenant has waited is the age of the oldest Unbound claim."""
    claims = tuple(
        ServerClaim(metadata=meta(f"c{age}"), status=ServerClaimStatus(phase="Unbound", since=ago(age)))
        for age in (30, 300)
    )
    registry = collected(claims=claims)

    assert registry.get_sample_value("metal_claims", {"phase": "Unbound"}) == 2
    assert registry.get_sample_value("metal_claim_oldest_seconds", {"phase": "Unbound"}) == 300
    assert registry.get_sample_value("metal_claim_oldest_seconds", {"phase": "Bound"}) == 0


def test_bmcs_are_counted_by_whether_they_answer() -> None:
    """A state of the BMC's own invention counts as Other."""
    ready = Condition(type="Ready", status="False", reason="Timeout", message="no answer")
    bmcs = (
        BMC(metadata=meta("b1"), spec=SPEC, status=BMCStatus(state="Error", conditions=(ready,))),
        BMC(metadata=meta("b2"), spec=SPEC, status=BMCStatus(state="Quiesced")),
    )
    registry = collected(bmcs=bmcs)

    assert registry.get_sample_value("metal_bmcs_reachable", {"status": "False"}) == 1
    assert registry.get_sample_value("metal_bmcs_reachable", {"status": "Unknown"}) == 1
    assert registry.get_sample_value("metal_bmcs", {"state": "Other"}) == 1


def booted(before: BootWindow, after: BootWindow, *, attempts: int = 0, acting: bool = True) -> CollectorRegistry:
    """The metrics after a server's window went from one to the other."""
    registry = CollectorRegistry()
    servers = informer(KINDS.server)
    observe_boots(servers, Metrics(registry), lambda: acting)
    for version, (window, failures) in enumerate(((before, 0), (after, attempts)), 1):
        status = ServerStatus(state="Discovery", boot_window=window, boot_attempts=failures)
        servers.observe(Server(metadata=meta("a", version), status=status))
    return registry


def count(registry: CollectorRegistry, result: str) -> float | None:
    labels = {"purpose": "Discovery", "method": "IPXE", "trust": NO_TRUST, "result": result}
    return registry.get_sample_value("metal_boots_total", labels)


def test_a_boot_that_succeeds_is_counted_with_its_phases() -> None:
    """Each phase lasts from the step before it to its own."""
    steps = {"script_served_at": ago(-100), "ignition_served_at": ago(-130), "reported_at": ago(-190)}
    done = msgspec.structs.replace(WINDOW, phase=Phase.SUCCEEDED, **steps)
    registry = booted(WINDOW, done)

    assert count(registry, "succeeded") == 1
    for phase, seconds in (("script", 100), ("ignition", 30), ("report", 60)):
        labels = {"purpose": "Discovery", "phase": phase}
        assert registry.get_sample_value("metal_boot_phase_seconds_sum", labels) == seconds


@pytest.mark.parametrize(
    ("before", "after", "attempts", "result"),
    [
        (Phase.OPEN, Phase.CLOSED, 1, "failed"),
        (Phase.SCRIPT_SERVED, Phase.CLOSED, 0, "cancelled"),
        (Phase.SCRIPT_SERVED, Phase.CONTESTED, 0, "contested"),
        (Phase.SUCCEEDED, Phase.CONTESTED, 0, "contested"),
    ],
)
def test_a_boot_that_does_not_succeed_says_how_it_ended(
    before: Phase, after: Phase, attempts: int, result: str
) -> None:
    """A window that closes without a failed attempt was no longer needed."""
    change = msgspec.structs.replace
    registry = booted(change(WINDOW, phase=before), change(WINDOW, phase=after), attempts=attempts)

    assert count(registry, result) == 1


def test_a_standby_counts_no_boots() -> None:
    """Every replica sees the change; only the leader counts it."""
    registry = booted(WINDOW, msgspec.structs.replace(WINDOW, phase=Phase.SUCCEEDED), acting=False)

    assert count(registry, "succeeded") == 0


def test_a_contested_boot_that_is_closed_counts_once() -> None:
    """The controller closes what the boot server has stopped."""
    contested = msgspec.structs.replace(WINDOW, phase=Phase.CONTESTED)
    registry = booted(contested, msgspec.structs.replace(WINDOW, phase=Phase.CLOSED), attempts=1)

    assert count(registry, "failed") == 0
