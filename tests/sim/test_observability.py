"""What an operator sees of a server's life: log lines, Events and metrics, from a lease to a tenant and back."""

from typing import Any

import pytest
import structlog

from metal.api.core import EVENT
from metal.bmc.metrics import Metrics as BMCMetrics
from metal.boot.metrics import CacheMetrics
from metal.codegen import metrics
from metal.kube.controller.metrics import ClientMetrics
from metal.listener.metrics import Metrics as ListenerMetrics
from tests.sim.plane import KINDS, PASSWORD, Plane, is_ready, plane

pytestmark = pytest.mark.looptime


async def _life(world: Plane) -> list[Any]:
    """The log of one server that is enrolled, discovered, claimed and given back."""
    with structlog.testing.capture_logs() as logs:
        await world.announce()
        await world.until_available(1)
        await world.add_claim()
        await world.until_claim(is_ready)
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until_available(1)
    return logs


async def test_each_transition_is_one_line_in_the_words_of_its_event() -> None:
    """Lines form a chain without gaps, and say what the Event of the transition says."""
    async with plane(1) as world:
        logs = await _life(world)
        await world.manager.recorder.flush()
        events = {(e.reason, e.message) for e in (await world.client.list(EVENT)).items}
    lines = [line for line in logs if line["event"] == "transition"]
    servers = [line for line in lines if line["kind"] == "Server"]
    assert [line["to"] for line in servers] == [
        "Initial", "Discovery", "Available", "Reserved", "Cleanup", "Available"
    ]  # fmt: skip
    assert [line["from"] for line in servers[1:]] == [line["to"] for line in servers[:-1]]
    assert all(line["name"] and line["since"] and line["reason"] and line["message"] for line in servers)
    assert {(line["reason"], line["message"]) for line in servers[1:]} <= events
    assert {line["kind"] for line in lines} >= {
        "Endpoint", "BMC", "Server", "ServerClaim", "ServerBootConfiguration", "IPXEBootConfig"
    }  # fmt: skip


async def test_each_bmc_write_is_one_line_that_says_why() -> None:
    """Power and boot override of the whole life are there, with the server and its state, and without secrets."""
    async with plane(1) as world:
        logs = await _life(world)
        (server,) = await world.servers()
    lines = [line for line in logs if line["event"] == "BMC write" and line["changes"]]
    assert {"set_network_boot", "power_on", "power_off"} <= {line["operation"] for line in lines}
    assert all(line["bmc"] and line["system"] and line["result"] == "ok" for line in lines)
    assert all(line["why"].startswith(f"Server {server.metadata.name} in ") for line in lines)
    assert PASSWORD not in repr(logs)


async def test_every_metric_of_a_manager_is_documented_and_the_reverse() -> None:
    """docs/metrics.md has what /metrics has. A simulated site replaces BMC pool, image cache,
    API client and listeners."""
    documented = {row.name for rows in metrics.sections().values() for row in rows}
    async with plane(1) as world:
        registry = world.manager.parts.registry
        for replaced in (BMCMetrics, CacheMetrics, ClientMetrics, ListenerMetrics):
            replaced(registry)
        families = list(registry.collect())
    exported = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    assert exported == documented


async def test_the_life_of_a_server_is_counted() -> None:
    """Servers, claims, boots and transitions agree with what happened."""
    async with plane(1) as world:
        await _life(world)
        value = world.manager.parts.registry.get_sample_value
        assert value("metal_servers", {"state": "Available"}) == 1
        assert value("metal_claims", {"phase": "Bound"}) == 0
        assert value("metal_bmcs_reachable", {"status": "True"}) == 1
        for purpose in ("Discovery", "Claim"):
            labels = {"purpose": purpose, "method": "IPXE", "trust": "Lease", "result": "succeeded"}
            assert value("metal_boots_total", labels) == 1
        assert value("metal_boot_phase_seconds_count", {"purpose": "Discovery", "phase": "report"}) == 1
        labels = {"kind": "Server", "from": "Reserved", "to": "Cleanup"}
        assert value("metal_transitions_total", labels) == 1
        assert value("metal_state_seconds_count", {"kind": "Server", "state": "Available"}) == 1
        assert value("leader_election_master_status", {"name": world.config.election.lease}) == 1
        assert value("metal_events_total", {"result": "dropped"}) == 0
        assert value("controller_runtime_reconcile_total", {"controller": "server", "result": "success"}) is not None
