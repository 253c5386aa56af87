"""Explains the state of a server. Pure functions of objects of the API."""

from datetime import datetime

from metal.api.boot_window import BootWindow, Method
from metal.api.kinds import Kinds
from metal.api.names import OPERATION
from metal.api.server import FailingOperation, PowerRequest, Server, State
from metal.cli.objects.events import EventSummary
from metal.cli.why.advice import FAILURES, WAITS, Advice
from metal.cli.why.explanation import Explanation, ago, deadline, stamp
from metal.cli.why.remedies import remedies
from metal.controllers.server.bmc.inventory import CHANGED as HARDWARE_CHANGED
from metal.controllers.server.duplicates import IN_CHARGE
from metal.controllers.server.finalize import IGNORE
from metal.controllers.server.reasons import ConditionType, purpose_of_retry
from metal.machine import tenancy

_EXPLAINED_ELSEWHERE = ("Ready", "Sanitized", "DriveOwed", ConditionType.BMC_OPERATIONAL)
"""Conditions whose content other sentences have."""
_NORMAL = (HARDWARE_CHANGED,)
"""Conditions that are False in normal operation."""


def explain(server: Server, events: list[EventSummary], names: Kinds, now: datetime) -> Explanation:
    """Explain the state of a server."""
    explanation = Explanation(f"server/{server.metadata.name}", events=events)
    _state(explanation, server, now)
    _unmanaged(explanation, server, names)
    _waiting(explanation, server, now)
    _tried(explanation, server, now)
    _failure(explanation, server)
    _conditions(explanation, server)
    _claimable(explanation, server)
    return explanation


def _state(explanation: Explanation, server: Server, now: datetime) -> None:
    status, claim = server.status, server.spec.server_claim_ref
    state = status.state or "new: no manager has reconciled it yet"
    since = f" since {ago(status.since, now).removesuffix(' ago')}" if status.since else ""
    holder = f"; bound to claim {claim.namespace}/{claim.name}" if claim else ""
    explanation.doing.append(f"It is {state}{since}, power {status.power_state or 'unknown'}{holder}.")
    explanation.facts |= {"state": status.state, "since": stamp(status.since), "power": status.power_state}
    if server.metadata.deletion_timestamp is not None:
        finalizers = ", ".join(server.metadata.finalizers) or "none"
        deleted = ago(server.metadata.deletion_timestamp, now)
        explanation.doing.append(f"It was deleted {deleted}; its finalizers: {finalizers}.")
    if not status.state:
        explanation.advice.append("Check that a manager is running: `metalctl up`, or `metalctl manager` for a cluster")


def _unmanaged(explanation: Explanation, server: Server, names: Kinds) -> None:
    name, key = server.metadata.name, names.key(OPERATION)
    wanted, maintenance = server.metadata.annotations.get(key), server.spec.server_maintenance_ref
    if wanted in IGNORE:
        explanation.doing.append(f"It is not managed: its annotation {key} is {wanted}.")
        explanation.advice.append(f"To manage it again, remove the annotation {key}")
    elif wanted:
        explanation.doing.append(f"The operation {wanted} is requested; the manager has not started it yet.")
    if maintenance is not None:
        explanation.doing.append(f"The maintenance {maintenance.namespace}/{maintenance.name} holds it.")
    if server.status.state == State.PARKED:
        explanation.doing.append("It is parked: the operator does not control its power.")
        explanation.advice.append(f"Manage it again: metalctl unpark {name}")


def _waiting(explanation: Explanation, server: Server, now: datetime) -> None:
    status, wait = server.status, server.status.wait
    if wait is None and not status.waiting_for:
        return
    name = wait.for_ if wait else ""
    known = WAITS.get(name)
    text = status.waiting_for or name
    explanation.wait = {
        "name": name, "text": text,
        "since": stamp(wait.since) if wait else None, "until": stamp(wait.until) if wait else None,
    }  # fmt: skip
    if status.state == State.ERROR:
        return  # it waits for the failure to end, explained below
    when = f", since {ago(wait.since, now).removesuffix(' ago')}, {deadline(wait.until, now)}" if wait else ""
    explanation.doing.append(f"It waits for {text}{when}.")
    _add(explanation, known, text, server)


def _add(explanation: Explanation, known: Advice | None, message: str, server: Server) -> None:
    if known is not None:
        explanation.doing.append(f"Meaning: {known.meaning}.")
    explanation.advise_on(message, known, name=server.metadata.name)


def _tried(explanation: Explanation, server: Server, now: datetime) -> None:
    status = server.status
    if status.boot_attempts:
        explanation.tried.append(f"{status.boot_attempts} consecutive network boots failed.")
    if status.boot_window is not None:
        explanation.tried.append(_boot(status.boot_window, now))
    if status.power_request is not None:
        explanation.tried.append(_power(status.power_request, now))
    _failing(explanation, server, now)
    boot = tenancy.of(server).boot
    if boot is not None and boot.booted_at is not None:
        how = f" (method {boot.method}, trust {boot.trust})" if boot.method and boot.trust else ""
        image = boot.image or "(unknown)"
        explanation.tried.append(f"The claim's image {image} booted {ago(boot.booted_at, now)}{how}.")
        if boot.requested_generation > boot.boot_generation:
            explanation.doing.append(
                f"The claim requests another network boot (bootGeneration {boot.requested_generation})."
            )


def _failing(explanation: Explanation, server: Server, now: datetime) -> None:
    status = server.status
    said = _said(server)
    for known in status.failing_operations:
        explanation.tried.append(_attempts(known, now, has_message=known.message not in said))
    if status.failing_operations:
        explanation.facts["failingOperations"] = [
            {
                "operation": known.operation, "reason": known.reason, "message": known.message, "count": known.count,
                "firstFailedAt": stamp(known.first_failed_at), "lastFailedAt": stamp(known.last_failed_at),
                "retryAt": stamp(known.retry_at),
            }
            for known in status.failing_operations
        ]  # fmt: skip


def _said(server: Server) -> str:
    """What the explanation of the wait and of the failure contains."""
    status = server.status
    return f"{status.waiting_for} {status.failure.message if status.failure else ''}".strip()


def _attempts(known: FailingOperation, now: datetime, *, has_message: bool) -> str:
    times = "once" if known.count == 1 else f"{known.count} times"
    text = f"The operation {known.operation} failed {times}, first {ago(known.first_failed_at, now)}, last "
    text += f"{ago(known.last_failed_at, now)} ({known.reason})"
    if has_message:
        text += f": {known.message.rstrip('.')}"
    if known.retry_at is not None and known.retry_at > now:
        text += f"; it is not requested again {deadline(known.retry_at, now).replace('until', 'before', 1)}"
    return f"{text}."


def _boot(window: BootWindow, now: datetime) -> str:
    method, minimum = window.method or Method.IPXE, window.minimum_trust
    kind = f"{window.purpose}, {method}, {window.image}" + (f", minimum trust {minimum}" if minimum else "")
    steps = [f"a network boot ({kind}) started {ago(window.opened_at, now)}"]
    if window.script_served_at is not None:
        how = f" with trust {window.trust}" if window.trust else ""
        steps.append(f"the script was served to {window.client_address}{how} {ago(window.script_served_at, now)}")
    if window.ignition_served_at is not None:
        steps.append(f"the Ignition was served {ago(window.ignition_served_at, now)}")
    if window.reported_at is not None:
        steps.append(f"the probe reported {ago(window.reported_at, now)}")
    text = f"{', '.join(steps)}; its phase is {window.phase}."
    return text[0].upper() + text[1:]


def _power(request: PowerRequest, now: datetime) -> str:
    text = f"Power {request.target} was requested {ago(request.requested_at, now)} ({request.reason or 'no reason'})"
    if request.forced_at is not None:
        text += f", forced {ago(request.forced_at, now)}"
    return f"{text}; the deadline is {deadline(request.deadline, now).removeprefix('until ')}."


def _failure(explanation: Explanation, server: Server) -> None:
    failure = server.status.failure
    if server.status.state != State.ERROR or failure is None:
        return
    where = f" in {failure.state}" if failure.state else ""
    explanation.doing.append(f"It failed{where}, {failure.reason}: {failure.message}.")
    explanation.facts["failure"] = {
        "state": failure.state, "operation": failure.operation, "reason": failure.reason, "message": failure.message,
    }  # fmt: skip
    _add(explanation, FAILURES.get(failure.reason), failure.message, server)
    if not any("metalctl retry" in one for one in explanation.advice):
        explanation.advice.append(f"{purpose_of_retry(failure.reason)}: metalctl retry {server.metadata.name}")


def _conditions(explanation: Explanation, server: Server) -> None:
    said = _said(server)
    for condition in server.status.conditions:
        if (condition.type, condition.status) == ("DriveOwed", "True") and not server.status.waiting_for:
            explanation.doing.append(f"DriveOwed ({condition.reason}): {condition.message}.")
        if condition.type == ConditionType.DUPLICATE_SYSTEM and condition.reason == IN_CHARGE:
            explanation.doing.append(f"{condition.message}.")
            explanation.advice.extend(remedies(condition.message))
        explained = condition.type in (*_EXPLAINED_ELSEWHERE, *_NORMAL) or (said and condition.message in said)
        if condition.status == "False" and not explained:
            explanation.doing.append(f"{condition.type} is False ({condition.reason}): {condition.message}.")


def _claimable(explanation: Explanation, server: Server) -> None:
    if server.status.state != State.AVAILABLE:
        return
    name, taints = server.metadata.name, [taint.key for taint in server.spec.taints]
    if server.spec.unclaimable:
        explanation.doing.append("It is cordoned: new claims cannot bind it.")
        explanation.advice.append(f"metalctl uncordon {name}")
    elif server.spec.server_claim_ref is None and server.status.wait is None:
        explanation.doing.append("It can be claimed.")
        explanation.advice.append(f"metalctl claim --server {name} --image IMAGE")
    if taints:
        explanation.doing.append(f"Only claims that tolerate {', '.join(taints)} can bind it.")
