"""Asynchronous operations: the task behind a 202 answer (DSP0266)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metal.redfish.errors import BMCProtocolError
from metal.redfish.paths import local_path

ENDED = frozenset({"Completed", "Exception", "Killed", "Cancelled"})


@dataclass(frozen=True)
class Task:
    """A task as the BMC first reported it. `monitor` is what to poll, `uri` the Task resource; either may be empty."""

    monitor: str = ""
    uri: str = ""
    state: str = ""
    percent: int | None = None

    @property
    def ended(self) -> bool:
        """True when the task has ended, successfully or not."""
        return self.state in ENDED


def parse_task(headers: Mapping[str, str], body: object) -> Task:
    """The task behind a 202 answer: its monitor from Location, else from the body (HPE), its resource from the body."""
    data: Mapping[str, Any] = body if isinstance(body, dict) else {}
    monitor = path_in(headers.get("location")) or path_in(data.get("TaskMonitor"))
    percent = data.get("PercentComplete")
    return Task(
        monitor=monitor,
        uri=path_in(data.get("@odata.id")),
        state=data["TaskState"] if isinstance(data.get("TaskState"), str) else "",
        percent=percent if isinstance(percent, int) and not isinstance(percent, bool) else None,
    )


def path_in(link: object) -> str:
    """Path of a link on this BMC; empty where the link is unusable."""
    if not isinstance(link, str) or not link:
        return ""
    try:
        return local_path(link)
    except BMCProtocolError:
        return ""
