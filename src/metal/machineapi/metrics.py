"""Metrics of what machines and BMCs ask for, and of what they are refused."""

from prometheus_client import CollectorRegistry, Counter


def refusals(registry: CollectorRegistry) -> Counter:
    """Refused requests; create it once per registry."""
    return Counter(
        "metal_boot_refusals_total",
        "Requests of machines and BMCs that were refused, by endpoint and reason.",
        ["endpoint", "reason"], registry=registry,
    )  # fmt: skip


def event_deliveries(registry: CollectorRegistry) -> Counter:
    """Accepted deliveries of events; create it once per registry."""
    return Counter(
        "metal_bmc_event_deliveries_total", "Deliveries of events by BMCs that were accepted.", registry=registry
    )
