"""Prometheus metrics of the API client, the work queues, the controllers and the election, under the names that
client-go and controller-runtime use, so that dashboards made for Go operators work."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from metal.kube.controller.queue import WorkQueue

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
RESULTS = ("success", "requeue_after", "requeue", "error")
"""Values of the label `result`: done, again after a time, again because of a conflict, failed."""


class Metrics:
    """One set of metric families; create it once per registry (names must be unique there)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by result: success, requeue_after, requeue (a conflict) or error.",
            ["controller", "result"], registry=registry,
        )  # fmt: skip
        self.errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed or exceeded their deadline.",
            ["controller"], registry=registry,
        )  # fmt: skip
        self.timeouts = Counter(
            "controller_runtime_reconcile_timeouts_total", "Reconciles that were cancelled at their deadline.",
            ["controller"], registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "Duration of one reconcile.", ["controller"],
            registry=registry, buckets=_SECONDS,
        )  # fmt: skip
        self.active = Gauge(
            "controller_runtime_active_workers", "Workers that reconcile now.", ["controller"], registry=registry
        )
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of the controller.", ["controller"],
            registry=registry,
        )  # fmt: skip
        self.leader = Gauge(
            "leader_election_master_status", "1 while this process is the leader or runs without election, else 0.",
            ["name"], registry=registry,
        )  # fmt: skip
        self.events = Counter(
            "metal_events_total", "Kubernetes Events by result: written or dropped.", ["result"], registry=registry
        )
        for result in ("written", "dropped"):
            self.events.labels(result)
        self.queues = QueueMetrics(registry)

    def watch_leader(self, name: str, leader: Callable[[], bool]) -> None:
        """Read whether this process leads whenever metrics are collected; `name` is that of the Lease."""
        self.leader.labels(name).set_function(lambda: float(leader()))

    def add_controller(self, name: str, workers: int, queue: WorkQueue[Any]) -> None:
        """Begin to count a controller: every result starts at 0, so that the first failure is an increase."""
        for result in RESULTS:
            self.reconciles.labels(name, result)
        self.errors.labels(name)
        self.timeouts.labels(name)
        self.workers.labels(name).set(workers)
        self.queues.watch(name, queue)


class QueueMetrics:
    """The `workqueue_` families."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["name", "controller"]
        self.depth = Gauge("workqueue_depth", "Keys that are ready and not taken yet.", labels, registry=registry)
        self.adds = Counter("workqueue_adds_total", "Keys added to the queue.", labels, registry=registry)
        self.retries = Counter(
            "workqueue_retries_total", "Keys added after a delay: backoff and requeues.", labels, registry=registry
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds", "Time that a key stays in the queue.", labels, registry=registry,
            buckets=_SECONDS,
        )  # fmt: skip
        self.worked = Histogram(
            "workqueue_work_duration_seconds", "Time that a key is worked on.", labels, registry=registry,
            buckets=_SECONDS,
        )  # fmt: skip
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "Time for which the keys in work have been worked on, in all.", labels,
            registry=registry,
        )  # fmt: skip
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds", "Time for which the oldest key in work is worked on.",
            labels, registry=registry,
        )  # fmt: skip

    def watch(self, name: str, queue: WorkQueue[Any]) -> None:
        """Observe a queue; its gauges are read whenever metrics are collected."""
        queue.observer = _Queue(self, name)
        self.depth.labels(name, name).set_function(lambda: float(len(queue)))
        self.unfinished.labels(name, name).set_function(lambda: sum(queue.working_for()))
        self.longest.labels(name, name).set_function(lambda: max(queue.working_for(), default=0.0))


class _Queue:
    """Observer of one queue."""

    def __init__(self, metrics: QueueMetrics, name: str) -> None:
        self._adds, self._retries = metrics.adds.labels(name, name), metrics.retries.labels(name, name)
        self._waited, self._worked = metrics.waited.labels(name, name), metrics.worked.labels(name, name)

    def added(self) -> None:
        self._adds.inc()

    def delayed(self) -> None:
        self._retries.inc()

    def taken(self, waited: float) -> None:
        self._waited.observe(waited)

    def done(self, worked: float) -> None:
        self._worked.observe(worked)


class ClientMetrics:
    """The `rest_client_` families; create it once per registry, and give `observe` to every HTTPClient."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "rest_client_requests_total", "Requests to the Kubernetes API; code is <error> when none was answered.",
            ["code", "method", "host"], registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "rest_client_request_duration_seconds", "Time until the Kubernetes API answers; watches until they begin.",
            ["verb", "host"], registry=registry, buckets=_SECONDS,
        )  # fmt: skip
        self._series = lru_cache(maxsize=256)(self._find)

    def observe(self, method: str, host: str, code: str, seconds: float) -> None:
        """Count one request."""
        requests, times = self._series(method, host, code)
        requests.inc()
        times.observe(seconds)

    def _find(self, method: str, host: str, code: str) -> tuple[Counter, Histogram]:
        """The series of these labels; finding them costs more than counting."""
        return self._requests.labels(code, method, host), self._seconds.labels(method, host)
