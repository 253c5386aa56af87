"""Explains the state of a BMC or an Endpoint. Pure functions of objects of the API."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from metal.api.bmc import BMC
from metal.api.endpoint import Endpoint
from metal.api.meta import Condition
from metal.api.server import Server
from metal.cli.objects.events import EventSummary
from metal.cli.why.advice import DEVICES
from metal.cli.why.explanation import Explanation, ago, stamp
from metal.controllers.bmc.enrolment import duplicates

_DONE = ("Enabled", "Ready", "Ignored")
"""States in which no message is a request to do something."""


def explain_bmc(bmc: BMC, servers: Iterable[Server], events: list[EventSummary], now: datetime) -> Explanation:
    """Explain the state of a BMC, and name its Servers."""
    explanation = _explain("bmc", bmc, bmc.status.ip or "", events, now)
    name = bmc.metadata.name
    own = sorted(one.metadata.name for one in servers if one.spec.bmc_ref is not None and one.spec.bmc_ref.name == name)
    explanation.doing.append(f"Its Servers: {', '.join(own)}." if own else "It has no Server.")
    explanation.facts["servers"] = own
    for one in own:
        explanation.advise(f"For its Server: metalctl why server/{one}")
    return explanation


def explain_endpoint(endpoint: Endpoint, events: list[EventSummary], now: datetime) -> Explanation:
    """Explain the state of an Endpoint."""
    return _explain("endpoint", endpoint, endpoint.spec.ip or "", events, now)


def _explain(kind: str, obj: BMC | Endpoint, ip: str, events: list[EventSummary], now: datetime) -> Explanation:
    status, name = obj.status, obj.metadata.name
    explanation = Explanation(f"{kind}/{name}", events=events)
    explanation.facts |= {"state": status.state, "since": stamp(status.since)}
    state = status.state or "new: no manager has reconciled it yet"
    since = f" since {ago(status.since, now).removesuffix(' ago')}" if status.since else ""
    explanation.doing.append(f"It is {state}{since}, address {ip or 'unknown'}.")
    if obj.metadata.deletion_timestamp is not None:
        explanation.doing.append(f"It was deleted {ago(obj.metadata.deletion_timestamp, now)}.")
    if status.waiting_for:
        explanation.wait = {
            "name": status.state,
            "text": status.waiting_for,
            "since": stamp(status.since),
            "until": None,
        }
        explanation.doing.append(f"It waits for {status.waiting_for.removeprefix('waiting for ')}.")
        explanation.advise_on(status.waiting_for, DEVICES.get(status.state), name=name)
    _conditions(explanation, status.conditions, status.waiting_for, name)
    if not status.state:
        explanation.advise("Check that a manager is running: `metalctl up`, or `metalctl manager` for a cluster")
    elif not explanation.advice and status.state not in _DONE:
        explanation.advise("check its power, cable, address and credentials: metalctl get bmcs,bmcsecrets,mep")
    return explanation


def _conditions(explanation: Explanation, conditions: Sequence[Condition], waiting_for: str, name: str) -> None:
    for condition in conditions:
        duplicate = condition.type == duplicates.CONDITION
        if condition.status == ("False" if duplicate else "True") or not condition.message:
            continue
        if condition.message not in waiting_for:
            explanation.doing.append(
                f"{condition.type} is {condition.status} ({condition.reason}): {condition.message}."
            )
        explanation.advise_on(condition.message, DEVICES.get(condition.type if duplicate else ""), name=name)
