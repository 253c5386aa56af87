"""Explains why a claim has no server or is not Ready. Pure functions of objects of the API."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from metal.api.claim import ServerClaim
from metal.api.common import ObjectRef
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION
from metal.api.server import Server
from metal.cli.objects.events import EventSummary
from metal.cli.why.advice import CLAIMS, MISMATCHES
from metal.cli.why.explanation import Explanation, ago, stamp
from metal.controllers.claim.matching import mismatch, selector_problem
from metal.controllers.claim.reasons import ClaimReason
from metal.controllers.maintenance.queue_order import NEEDED, REASON, is_approved
from metal.controllers.shared.condition_types import RECONCILED
from metal.kube.meta.conditions import find
from metal.kube.meta.selectors import from_object


def explain(
    claim: ServerClaim, servers: Sequence[Server], events: list[EventSummary], names: Kinds, now: datetime
) -> Explanation:
    """Explain the state of a claim, without that of its server."""
    explanation = Explanation(f"claim/{claim.metadata.name}", events=events)
    status = claim.status
    since = f" since {ago(status.since, now).removesuffix(' ago')}" if status.since else ""
    explanation.doing.append(f"It is {status.phase or 'new: no manager has reconciled it yet'}{since}.")
    explanation.facts |= {"phase": status.phase, "since": stamp(status.since)}
    if claim.metadata.deletion_timestamp is not None:
        explanation.doing.append("It is being deleted.")
    if claim.metadata.annotations.get(names.key(OPERATION)) == IGNORE:
        explanation.doing.append(f"It is not managed: its annotation {names.key(OPERATION)} is ignore.")
        explanation.advice.append(f"To manage it again, remove the annotation {names.key(OPERATION)}")
    if status.waiting_for:
        explanation.wait = {"name": "", "text": status.waiting_for, "since": stamp(status.since), "until": None}
        explanation.doing.append(f"It waits for {status.waiting_for}.")
    _boots(explanation, claim)
    _false_conditions(explanation, claim)
    _maintenance(explanation, claim, names)
    if status.phase != "Bound" and not _is_settled(claim):
        _unbound(explanation, claim, servers)
    return explanation


def held(claim: ServerClaim, servers: Iterable[Server]) -> Server | None:
    """Return the server that is bound to the claim, if any."""
    key = (claim.metadata.namespace, claim.metadata.name)
    refs = ((server, server.spec.server_claim_ref) for server in servers)
    return next((server for server, ref in refs if ref is not None and (ref.namespace, ref.name) == key), None)


def _boots(explanation: Explanation, claim: ServerClaim) -> None:
    """Add the requested and the last successful network boot."""
    asked, had = claim.spec.boot_generation, claim.status.boot_generation
    explanation.facts["bootGeneration"] = {"asked": asked, "answered": had}
    if had and asked <= had:
        explanation.doing.append(
            f"Its last network boot was for spec.bootGeneration {had}; a higher value requests another boot."
        )


def _false_conditions(explanation: Explanation, claim: ServerClaim) -> None:
    """Add the conditions with status False, once for each reason."""
    seen = set()
    for condition in claim.status.conditions:
        known = CLAIMS.get(condition.reason)
        if (condition.type, condition.status) == (RECONCILED, "False"):
            explanation.doing.append(f"Reconciled is False ({condition.reason}): {condition.message}.")
            continue
        if condition.status == "True" or condition.reason in seen or known is None:
            continue
        seen.add(condition.reason)
        explanation.doing.append(f"{condition.type} is False ({condition.reason}): {condition.message}.")
        if known.way_out:
            explanation.doing.append(f"Meaning: {known.meaning}.")
        explanation.advise_on(condition.message, known, name=claim.metadata.name)


def _maintenance(explanation: Explanation, claim: ServerClaim, names: Kinds) -> None:
    """Add the maintenance that its server waits for, and whether it is approved."""
    meta = claim.metadata
    if names.key(NEEDED) not in meta.labels:
        return
    reason = meta.annotations.get(names.key(REASON), "")
    approved = is_approved(claim, names.key)
    why = f" ({reason})" if reason else ""
    explanation.doing.append(f"Its server needs maintenance{why}, {'which is' if approved else 'not'} approved.")
    if not approved:
        explanation.advice.append(f"To let the maintenance start: metalctl approve {meta.name}")


def _is_settled(claim: ServerClaim) -> bool:
    """Return True for a claim that no server can satisfy."""
    bound = find(claim.status.conditions, "Bound")
    return bound is not None and bound.reason in (ClaimReason.SERVER_LOST, ClaimReason.NAMESPACE_RESERVED)


def _unbound(explanation: Explanation, claim: ServerClaim, servers: Sequence[Server]) -> None:
    if problem := selector_problem(claim):
        explanation.doing.append(f"{problem}.")
        return
    ref = claim.spec.server_ref
    candidates = [server for server in servers if ref is None or server.metadata.name == ref.name]
    if not candidates:
        explanation.doing.append(f"There is no server {ref.name}." if ref else "There are no servers yet.")
        explanation.advice.append("List what exists: metalctl get servers,bmcs,endpoints")
        return
    _mismatches(explanation, claim, candidates)
    if ref is None:
        _requirements(explanation, claim, candidates)


def _mismatches(explanation: Explanation, claim: ServerClaim, servers: Sequence[Server]) -> None:
    """Add each reason with the number of servers, an example, and what to change."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    holders = {server.metadata.name: server.spec.server_claim_ref for server in servers}
    for server in servers:
        why = mismatch(claim, server)
        found[(why.reason, why.detail) if why else ("", "")].append(server.metadata.name)
    explanation.facts["servers"] = [
        {"reason": reason or "Fits", "detail": detail, "count": len(names), "example": min(names)}
        for (reason, detail), names in sorted(found.items())
    ]
    if fitting := found.pop(("", ""), None):
        what = "fits" if len(fitting) == 1 else "fit"
        example = min(fitting)
        explanation.doing.append(
            f"{_count(len(fitting))} {what}, such as {example}: the manager binds one at its next reconciliation."
        )
    for (reason, detail), names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        example, known = min(names), MISMATCHES.get(reason)
        explanation.doing.append(f"{_count(len(names))} {_verb(len(names))}: {detail} ({reason}), such as {example}.")
        if known is not None:
            explanation.advise(known.way_out.format(name=example, claim=_release(holders[example])))


def _requirements(explanation: Explanation, claim: ServerClaim, servers: Sequence[Server]) -> None:
    """Add the number of servers that match each requirement of the selector."""
    if claim.spec.server_selector is None:
        return
    for one in from_object(claim.spec.server_selector).requirements:
        count = sum(one.matches(server.metadata.labels) for server in servers)
        explanation.doing.append(f"The requirement {one} of its selector matches {_count(count)} of {len(servers)}.")


def _release(holder: ObjectRef | None) -> str:
    return f"{holder.name} -n {holder.namespace}" if holder is not None else "CLAIM"


def _count(number: int) -> str:
    return f"{number} server" if number == 1 else f"{number} servers"


def _verb(number: int) -> str:
    return "does not fit" if number == 1 else "do not fit"
