"""Whether a BMC's events can be counted on: while they come, BMC and Servers need to be looked at less often."""

from datetime import datetime, timedelta

from metal.api.bmc import BMC, BMCStatus
from metal.kube.meta.conditions import is_true


def flowing(status: BMCStatus, now: datetime, max_age: float) -> bool:
    """Whether the BMC sent something within the last `max_age` seconds through a subscription that we hold."""
    last = status.last_event_time
    return bool(status.events_subscription_link) and last is not None and now - last < timedelta(seconds=max_age)


def told(old: BMC | None, new: BMC | None) -> bool:
    """Whether an event came between these two versions of a BMC."""
    return old is not None and new is not None and old.status.last_event_time != new.status.last_event_time


def fell_silent(old: BMC | None, new: BMC | None) -> bool:
    """Whether events were counted on before, and no longer are."""
    was = old is not None and is_true(old.status.conditions, "Events")
    return was and new is not None and not is_true(new.status.conditions, "Events")
