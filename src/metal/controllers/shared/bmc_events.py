"""Whether a BMC's events arrive: while they do, BMC and Servers are polled less often."""

from datetime import datetime, timedelta

from metal.api.bmc import BMC, BMCStatus
from metal.controllers.shared.condition_types import EVENTS
from metal.kube.meta.conditions import is_true


def received_recently(status: BMCStatus, now: datetime, max_age: float) -> bool:
    """Whether the BMC sent an event within the last `max_age` seconds through the manager's subscription."""
    last = status.last_event_time
    if last is None or not status.events_subscription_link:
        return False
    return abs(now - last) < timedelta(seconds=max_age)  # in the future after the clock was set back


def event_received(old: BMC | None, new: BMC | None) -> bool:
    """Whether an event arrived between these two versions of a BMC."""
    return old is not None and new is not None and old.status.last_event_time != new.status.last_event_time


def events_stopped(old: BMC | None, new: BMC | None) -> bool:
    """Whether the condition Events was True and no longer is."""
    was = old is not None and is_true(old.status.conditions, EVENTS)
    return was and new is not None and not is_true(new.status.conditions, EVENTS)
