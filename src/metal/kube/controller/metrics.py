"""Prometheus metrics of controllers, in a registry that the caller owns."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)


class Metrics:
    """One set of metric families; create it once per registry (names must be unique there)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.reconciles = Counter(
            "kube_reconciles", "Reconciles by outcome.", ["controller", "result"], registry=registry
        )
        self.seconds = Histogram(
            "kube_reconcile_seconds", "Duration of one reconcile.", ["controller"], registry=registry, buckets=_BUCKETS
        )
        self.depth = Gauge("kube_queue_depth", "Keys ready and not yet taken.", ["controller"], registry=registry)
        self.events = Counter("kube_events", "Events by outcome of recording.", ["outcome"], registry=registry)

    def watch_depth(self, controller: str, depth: Callable[[], int]) -> None:
        """Read the queue depth of a controller whenever metrics are collected."""
        self.depth.labels(controller).set_function(lambda: float(depth()))
