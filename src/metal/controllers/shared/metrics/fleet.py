"""Gauges over all objects, computed from the caches whenever metrics are collected.

In come the informers of the manager; nothing is remembered between two collections, so a gauge cannot drift from the
objects. Every replica reports them, because every replica has the caches: aggregate them with max, not with sum. Labels
are states, phases and names of waits, which the code bounds, and never names of objects.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metal.api.bmc import BMC
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.maintenance import MaintenanceState, ServerMaintenance
from metal.api.server import Server, State
from metal.controllers.shared.metrics.transitions import NEW, OTHER
from metal.kube.cache.informer import Informer
from metal.kube.controller.transitions import state_of
from metal.kube.meta import conditions
from metal.kube.meta.clock import Clock


@dataclass(frozen=True)
class Fleet:
    """Informers of all kinds that are counted."""

    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]
    maintenances: Informer[ServerMaintenance]
    bmcs: Informer[BMC]
    endpoints: Informer[Endpoint]


class FleetCollector(Collector):
    """Register it with a CollectorRegistry. Without a fleet it describes its families, and has no samples."""

    def __init__(self, fleet: Fleet | None, clock: Clock) -> None:
        self._fleet, self._clock = fleet, clock

    def collect(self) -> Iterator[Metric]:
        """All families, as the caches are now."""
        families = _Families()
        if self._fleet is not None:
            now = self._clock()
            _states(families, self._fleet)
            _waits(families, self._fleet.servers.items(), now)
            _claims(families, self._fleet.claims.items(), now)
            _bmcs(families, self._fleet.bmcs.items())
        yield from vars(families).values()

    def describe(self) -> Iterable[Metric]:
        """Families without samples: registering must not read the clock."""
        return vars(_Families()).values()


class _Families:
    """Makes empty families; each collection fills its own."""

    def __init__(self) -> None:
        gauge = GaugeMetricFamily
        self.servers = gauge("metal_servers", "Servers by state.", labels=["state"])
        self.claims = gauge("metal_claims", "ServerClaims by phase.", labels=["phase"])
        self.bmcs = gauge("metal_bmcs", "BMCs by state.", labels=["state"])
        self.endpoints = gauge("metal_endpoints", "Endpoints by state.", labels=["state"])
        self.configs = gauge("metal_boot_configurations", "ServerBootConfigurations by state.", labels=["state"])
        self.maintenances = gauge("metal_maintenances", "ServerMaintenances by state.", labels=["state"])
        self.reachable = gauge(
            "metal_bmcs_reachable", "BMCs by their condition Ready: True, False, or Unknown.", labels=["status"]
        )
        self.waits = gauge("metal_server_waits", "Servers by the name of what they wait for.", labels=["wait"])
        self.wait_age = gauge(
            "metal_server_wait_oldest_seconds", "Age of the oldest wait of this name.", labels=["wait"]
        )
        self.overdue = gauge(
            "metal_server_waits_overdue", "Servers whose wait of this name has passed its deadline.", labels=["wait"]
        )
        self.claim_age = gauge(
            "metal_claim_oldest_seconds", "Age of the claim that is in this phase for the longest time.",
            labels=["phase"],
        )  # fmt: skip


def _states(families: _Families, fleet: Fleet) -> None:
    """Known states are always present, so that a query for one that no object has returns 0 and not nothing."""
    _count(families.servers, fleet.servers.items(), tuple(State))
    _count(families.claims, fleet.claims.items(), ("Bound", "Unbound"))
    _count(families.bmcs, fleet.bmcs.items(), ("Enabled", "Pending", "Error"))
    _count(families.endpoints, fleet.endpoints.items(), ("Pending", "Ready", "Ignored", "Error"))
    _count(families.configs, fleet.configs.items(), ("Pending", "Ready", "Error"))
    _count(families.maintenances, fleet.maintenances.items(), tuple(MaintenanceState))


def _count(family: GaugeMetricFamily, objects: Iterable[Any], known: tuple[str, ...]) -> None:
    """What a BMC reports as its own state is any text, so an unknown state counts as Other."""
    found: Counter[str] = Counter({str(state): 0 for state in known})
    for obj in objects:
        state = state_of(obj.status) or NEW
        found[state if state in found or state == NEW else OTHER] += 1
    for state, number in found.items():
        family.add_metric([state], number)


def _waits(families: _Families, servers: Iterable[Server], now: datetime) -> None:
    waits = [server.status.wait for server in servers if server.status.wait is not None]
    ages: defaultdict[str, list[float]] = defaultdict(list)
    late: Counter[str] = Counter()
    for wait in waits:
        ages[wait.for_].append(_age(wait.since, now))
        late[wait.for_] += wait.until is not None and now >= wait.until
    for name, found in ages.items():
        families.waits.add_metric([name], len(found))
        families.wait_age.add_metric([name], max(found))
        families.overdue.add_metric([name], late[name])


def _claims(families: _Families, claims: Iterable[ServerClaim], now: datetime) -> None:
    oldest = {"Bound": 0.0, "Unbound": 0.0}
    for claim in claims:
        phase = claim.status.phase
        if phase in oldest:
            oldest[phase] = max(oldest[phase], _age(claim.status.since, now))
    for phase, age in oldest.items():
        families.claim_age.add_metric([phase], age)


def _bmcs(families: _Families, bmcs: Iterable[BMC]) -> None:
    found: Counter[str] = Counter({"True": 0, "False": 0, "Unknown": 0})
    for bmc in bmcs:
        ready = conditions.find(bmc.status.conditions, "Ready")
        found[ready.status if ready is not None and ready.status in found else "Unknown"] += 1
    for status, number in found.items():
        families.reachable.add_metric([status], number)


def _age(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
