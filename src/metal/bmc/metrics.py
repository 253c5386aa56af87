"""Metrics of requests to BMCs. Vendors and operations are labels, BMCs and servers are not."""

import re
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30)
_VENDORS = (
    ("Dell", r"\bdell\b"),
    ("HPE", r"\bhpe?\b|hewlett"),
    ("Lenovo", r"\blenovo\b"),
    ("Supermicro", r"super ?micro"),
    ("Fujitsu", r"\bfujitsu\b|\bfsas\b"),
    ("Cisco", r"\bcisco\b"),
    ("Huawei", r"\bhuawei\b|\bxfusion\b"),
    ("Inspur", r"\binspur\b|\bieit\b"),
    ("Gigabyte", r"\bgiga ?(byte|computing)\b"),
    ("ASRockRack", r"\basrock"),
    ("ASUS", r"\basus"),
    ("Quanta", r"\bquanta\b|\bqct\b"),
    ("Intel", r"\bintel\b"),
)
UNKNOWN, OTHER = "unknown", "other"


def vendor_label(manufacturer: str) -> str:
    """The label for what a BMC reports as manufacturer, which is any text: one of a few names, or `other`."""
    found = (label for label, pattern in _VENDORS if re.search(pattern, manufacturer, re.IGNORECASE))
    return next(found, OTHER) if manufacturer else UNKNOWN


class Metrics:
    """One set of metric families; create it once per registry (names must be unique there)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "metal_redfish_requests_total",
            "Requests sent to BMCs. operation is the method of the BMC protocols that sent it (a login counts to "
            "the one that needed it, a logout to close); result is 2xx to 5xx, a reason of failure, or cancelled.",
            ["vendor", "operation", "method", "result"], registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "metal_redfish_request_duration_seconds", "Duration of one request to a BMC.", ["vendor", "operation"],
            registry=registry, buckets=_SECONDS,
        )  # fmt: skip
        self.writes = Counter(
            "metal_bmc_writes_total",
            "Operations that changed something on a BMC, or failed to. result is ok or the reason of the failure.",
            ["vendor", "operation", "result"], registry=registry,
        )  # fmt: skip
        self.sessions = Gauge("metal_bmc_sessions", "Redfish sessions that are open on BMCs.", registry=registry)
        self.silent = Gauge(
            "metal_bmcs_silent", "BMCs that did not answer their last request; requests to them share a budget.",
            registry=registry,
        )  # fmt: skip
        self.paused = Gauge(
            "metal_bmcs_paused", "BMCs that get no request, as they asked with Retry-After.", registry=registry
        )

    def watch_sessions(self, count: Callable[[], int]) -> None:
        """Read the number of open sessions whenever metrics are collected."""
        self.sessions.set_function(lambda: float(count()))

    def watch_quiet(self, silent: Callable[[], int], paused: Callable[[], int]) -> None:
        """Read how many BMCs do not answer, and how many are paused, whenever metrics are collected."""
        self.silent.set_function(lambda: float(silent()))
        self.paused.set_function(lambda: float(paused()))
