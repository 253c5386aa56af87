"""Metrics carry the names and labels of client-go and controller-runtime."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from metal.kube.controller.controller import Controller, Done, Requeue, Result
from metal.kube.controller.metrics import ClientMetrics, Metrics
from metal.kube.meta.objects import Key

pytestmark = pytest.mark.looptime
QUEUE = {"name": "test", "controller": "test"}


async def test_a_queue_reports_depth_waits_and_work_in_progress() -> None:
    """A key that waits 3 s for the only worker and is worked on for 5 s is visible at each step."""
    registry = CollectorRegistry()

    async def reconcile(_: Key) -> Result:
        await asyncio.sleep(5)
        return Done()

    controller = Controller("test", reconcile, workers=1, metrics=Metrics(registry))
    value = registry.get_sample_value
    controller.queue.add(Key("a"))
    await asyncio.sleep(3)
    assert value("workqueue_depth", QUEUE) == 1
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(2)
    assert value("workqueue_depth", QUEUE) == 0
    assert value("workqueue_unfinished_work_seconds", QUEUE) == 2
    assert value("workqueue_longest_running_processor_seconds", QUEUE) == 2
    assert value("controller_runtime_active_workers", {"controller": "test"}) == 1
    assert value("controller_runtime_max_concurrent_reconciles", {"controller": "test"}) == 1
    await asyncio.sleep(4)
    controller.stop()
    await task
    assert value("workqueue_adds_total", QUEUE) == 1
    assert value("workqueue_queue_duration_seconds_sum", QUEUE) == 3
    assert value("workqueue_work_duration_seconds_sum", QUEUE) == 5
    assert value("controller_runtime_active_workers", {"controller": "test"}) == 0
    assert value("workqueue_longest_running_processor_seconds", QUEUE) == 0


async def test_a_requeue_counts_as_a_retry() -> None:
    """client-go counts every key that is added after a delay."""
    registry = CollectorRegistry()
    results: list[Result] = [Requeue(1), Requeue(1), Done()]

    async def reconcile(_: Key) -> Result:
        return results.pop(0)

    controller = Controller("test", reconcile, metrics=Metrics(registry))
    controller.queue.add(Key("a"))
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(10)
    controller.stop()
    await task
    assert registry.get_sample_value("workqueue_retries_total", QUEUE) == 2


def test_every_result_of_a_controller_starts_at_zero() -> None:
    """The first error is an increase that a rate shows."""
    registry = CollectorRegistry()

    async def reconcile(_: Key) -> Result:
        return Done()

    Controller("test", reconcile, metrics=Metrics(registry))
    for result in ("success", "requeue_after", "requeue", "error"):
        labels = {"controller": "test", "result": result}
        assert registry.get_sample_value("controller_runtime_reconcile_total", labels) == 0


def test_the_leader_is_read_when_metrics_are_collected() -> None:
    """1 on the leader, 0 on a standby, without a write at each change."""
    registry, leads = CollectorRegistry(), [False]
    Metrics(registry).watch_leader("lease", lambda: leads[0])
    assert registry.get_sample_value("leader_election_master_status", {"name": "lease"}) == 0
    leads[0] = True
    assert registry.get_sample_value("leader_election_master_status", {"name": "lease"}) == 1


def test_requests_are_counted_by_code_method_and_host() -> None:
    """A request without an answer has the code <error>, as in client-go."""
    registry = CollectorRegistry()
    metrics = ClientMetrics(registry)
    metrics.observe("GET", "api:443", "200", 0.1)
    metrics.observe("GET", "api:443", "<error>", 5.0)
    for code in ("200", "<error>"):
        labels = {"code": code, "method": "GET", "host": "api:443"}
        assert registry.get_sample_value("rest_client_requests_total", labels) == 1
    assert (
        registry.get_sample_value("rest_client_request_duration_seconds_sum", {"verb": "GET", "host": "api:443"}) == 5.1
    )
