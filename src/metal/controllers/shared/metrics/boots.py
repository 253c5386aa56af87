"""Counts network boots as they end, and how long each of their phases took.

In come changes of Servers from their informer: the boot window in status is written by the boot server and the registry
of any replica, so no single writer sees a whole boot. Only the process that acts counts, or each replica would. Nothing
is remembered; the window itself has the time of each step.
"""

from collections.abc import Callable
from datetime import datetime

from metal.api.boot_window import BootWindow, Method, Phase
from metal.api.server import Server
from metal.controllers.shared.metrics.metrics import NO_TRUST, Metrics
from metal.kube.cache.informer import Informer

_RUNNING = (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)


def observe_boots(servers: Informer[Server], metrics: Metrics, acting: Callable[[], bool]) -> None:
    """Count the boots of these servers while `acting` is true."""

    def handle(old: Server | None, new: Server | None) -> None:
        if old is None or new is None or not acting():
            return
        window, result = new.status.boot_window, result_of(old, new)
        if window is not None and result:
            metrics.boots.labels(window.purpose, window.method or Method.IPXE, window.trust or NO_TRUST, result).inc()
            if result == "succeeded":
                _observe_phases(metrics, window)

    servers.add_handler(handle)


def result_of(old: Server, new: Server) -> str:
    """How the boot window of `new` ended in this very change; empty when it did not."""
    before, after = old.status.boot_window, new.status.boot_window
    if before is None or after is None or before.id != after.id or before.phase == after.phase:
        return ""
    if after.phase == Phase.CONTESTED:
        return "contested"
    if before.phase not in _RUNNING or after.phase in _RUNNING:
        return ""
    if after.phase == Phase.SUCCEEDED:
        return "succeeded"
    return "failed" if new.status.boot_attempts > old.status.boot_attempts else "cancelled"


def _observe_phases(metrics: Metrics, window: BootWindow) -> None:
    steps = (
        ("script", window.opened_at, window.script_served_at),
        ("ignition", window.script_served_at, window.ignition_served_at),
        ("report", window.ignition_served_at, window.reported_at),
    )
    for phase, begin, end in steps:
        if begin is not None and end is not None:
            metrics.boot_seconds.labels(window.purpose, phase).observe(_seconds(begin, end))


def _seconds(begin: datetime, end: datetime) -> float:
    return max(0.0, (end - begin).total_seconds())
