"""Counts what a listener refused, and logs it at most once a minute for each reason."""

from collections.abc import Callable
from enum import StrEnum

import structlog

from metal.listener.metrics import Metrics

_log = structlog.get_logger("metal.listener")
LOG_INTERVAL = 60.0
"""Seconds between two log lines of one reason."""


class Reason(StrEnum):
    """Why a connection was refused or closed."""

    ADDRESS_LIMIT = "AddressLimit"
    TOTAL_LIMIT = "TotalLimit"
    EVICTED = "Evicted"
    HANDSHAKE_FAILED = "HandshakeFailed"
    HANDSHAKE_TIMEOUT = "HandshakeTimeout"
    FIRST_BYTE_TIMEOUT = "FirstByteTimeout"
    HEAD_TIMEOUT = "HeadTimeout"
    HEAD_TOO_LARGE = "HeadTooLarge"
    MALFORMED = "Malformed"
    BODY_TIMEOUT = "BodyTimeout"
    RESPONSE_STALLED = "ResponseStalled"
    NO_DESCRIPTORS = "NoDescriptors"


class Report:
    """The counters and log lines of one listener. `now`: a clock in seconds that never goes back."""

    def __init__(self, listener: str, now: Callable[[], float], metrics: Metrics | None = None) -> None:
        self._listener, self._now, self._metrics = listener, now, metrics
        self._logged: dict[Reason, float] = {}
        self._unlogged: dict[Reason, int] = {}

    def closed(self, reason: Reason, address: str) -> None:
        """A connection was refused or closed."""
        if self._metrics is not None:
            self._metrics.closed.labels(self._listener, reason.value).inc()
        self._unlogged[reason] = self._unlogged.get(reason, 0) + 1
        now = self._now()
        if now - self._logged.get(reason, float("-inf")) < LOG_INTERVAL:
            return
        self._logged[reason] = now
        count = self._unlogged.pop(reason)
        _log.warning(
            "connections refused or closed", listener=self._listener, reason=reason.value, count=count, latest=address
        )

    def open(self, count: int) -> None:
        """The number of open connections changed."""
        if self._metrics is not None:
            self._metrics.open.labels(self._listener).set(count)
