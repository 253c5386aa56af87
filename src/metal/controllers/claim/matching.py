"""Decides whether a claim may have a server, and explains why not. Pure functions.

A server matches when name and labels are those that the claim asks for, no other claim holds it, the operator manages
it (no operation=ignore), it is Available and powered off, it is schedulable (not `unclaimable`), its BMC is reachable,
and the claim tolerates its NoBind taints. The taint `data-not-erased` is tolerated by claims of the namespace that left
the data, and by no other.
The checks run in this order, and the first that fails names the reason. When no server matches, the reasons are
counted, and the condition Bound reports the counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from metal.api.boot_window import Phase
from metal.api.claim import ServerClaim
from metal.api.common import Taint, Toleration
from metal.api.names import IGNORING, NOT_ERASED, OPERATION
from metal.api.server import Server
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.traits import traits_of
from metal.kube.meta.selectors import from_object
from metal.machine import tenancy


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """True when the toleration covers the taint."""
    if toleration.key != taint.key or toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def blocking_taints(taints: Iterable[Taint], claim: ServerClaim) -> list[Taint]:
    """The NoBind taints that the claim does not tolerate. An empty effect means NoBind; Evict never blocks."""
    return [t for t in taints if t.effect in ("", "NoBind") and not _accepts(claim, t)]


def _accepts(claim: ServerClaim, taint: Taint) -> bool:
    if is_not_erased(taint.key) and taint.value != claim.metadata.namespace:
        return False
    return any(tolerates(one, taint) for one in claim.spec.tolerations)


def is_not_erased(key: str) -> bool:
    """True for the key of the taint `data-not-erased`. The API group before the name is configurable."""
    return key.rpartition("/")[2] == NOT_ERASED


def selects(claim: ServerClaim, server: Server) -> bool:
    """True when serverRef and selector of the claim allow this server, in any state."""
    ref, selector = claim.spec.server_ref, claim.spec.server_selector
    if ref is not None and ref.name != server.metadata.name:
        return False
    if selector is None:
        return True
    try:
        return from_object(selector).matches(server.metadata.labels)
    except ValueError:
        return False  # selector_problem() reports it


def selector_problem(claim: ServerClaim) -> str:
    """Why the claim's selector is invalid, or empty."""
    if claim.spec.server_selector is None:
        return ""
    try:
        from_object(claim.spec.server_selector)
    except ValueError as exc:
        return f"spec.serverSelector: {exc}"
    return ""


@dataclass(frozen=True)
class Mismatch:
    """Why a claim cannot have a server: a CamelCase reason and a few words."""

    reason: str
    detail: str


def mismatch(claim: ServerClaim, server: Server) -> Mismatch | None:
    """Why the claim cannot have this server, or None when it can."""
    if not selects(claim, server):
        return Mismatch("NoMatch", "labels or name do not match")
    checks = (_held, _ignored, _not_available, _cordoned, _unready)
    for check in checks:
        if (found := check(claim, server)) is not None:
            return found
    return _tainted(claim, server)


def _held(claim: ServerClaim, server: Server) -> Mismatch | None:
    ref = server.spec.server_claim_ref
    if ref is None or (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name):
        return None
    return Mismatch("Claimed", "held by another claim")


def is_ignored(server: Server) -> bool:
    """True while an annotation makes the operator ignore the server. The API group before the name is configurable."""
    notes = server.metadata.annotations
    return any(value in IGNORING and key.rpartition("/")[2] == OPERATION for key, value in notes.items())


def _ignored(claim: ServerClaim, server: Server) -> Mismatch | None:
    return Mismatch("NotManaged", "not managed (annotation operation=ignore)") if is_ignored(server) else None


def _not_available(claim: ServerClaim, server: Server) -> Mismatch | None:
    if server.metadata.deletion_timestamp is not None:
        return Mismatch("NotAvailable", "being deleted")
    if server.spec.server_maintenance_ref is not None:
        return Mismatch("NotAvailable", "in maintenance")
    if not traits_of(server.status.state).claimable:
        return Mismatch("NotAvailable", f"in state {server.status.state or 'Initial'}")
    if server.status.power_state != "Off":
        return Mismatch("NotAvailable", "not powered off yet")
    if tenancy.holds_data(tenancy.of(server)):
        return Mismatch("NotAvailable", "not erased yet")
    if server.status.boot_window is not None and server.status.boot_window.phase == Phase.CONTESTED:
        return Mismatch("NotAvailable", "waiting for rediscovery")
    return None


def _cordoned(claim: ServerClaim, server: Server) -> Mismatch | None:
    return Mismatch("Cordoned", "marked unclaimable") if server.spec.unclaimable else None


def _unready(claim: ServerClaim, server: Server) -> Mismatch | None:
    for condition in server.status.conditions:
        if condition.type == ConditionType.BMC_REACHABLE and condition.status == "False":
            return Mismatch("BMCUnreachable", "its BMC does not answer")
    return None


def _tainted(claim: ServerClaim, server: Server) -> Mismatch | None:
    blocking = blocking_taints(server.spec.taints, claim)
    if not blocking:
        return None
    if any(is_not_erased(t.key) and t.value != claim.metadata.namespace for t in blocking):
        return Mismatch("NotErased", "drives with data of another namespace (taint data-not-erased)")
    keys = ", ".join(sorted(t.key for t in blocking))
    return Mismatch("Tainted", f"taint {keys} is not tolerated")


@dataclass
class Choice:
    """The matching server, or the reasons why none matches, counted."""

    server: Server | None = None
    mismatches: Counter[Mismatch] = field(default_factory=Counter)

    @property
    def reason(self) -> str:
        """CamelCase reason of a condition."""
        if not self.mismatches:
            return "NoServers"
        reasons = {m.reason for m in self.mismatches}
        others = reasons - {"NoMatch"}
        return next(iter(others)) if len(others) == 1 else ("NoMatch" if not others else "NoneFits")

    @property
    def message(self) -> str:
        """How many servers do not match, and why."""
        if not self.mismatches:
            return "there are no servers yet"
        total = sum(self.mismatches.values())
        parts = [
            f"{count} {m.detail}" for m, count in sorted(self.mismatches.items(), key=lambda i: (-i[1], i[0].detail))
        ]
        return f"none of {total} servers fits: " + "; ".join(parts)


def choose(
    claim: ServerClaim, servers: Iterable[Server], is_for_older: Callable[[Server], bool] = lambda _: False
) -> Choice:
    """The first of these servers that matches the claim; if none does, the reasons of all.

    `is_for_older` tells whether an older claim waits for a server.
    """
    choice = Choice()
    for server in servers:
        why = mismatch(claim, server)
        if why is None and is_for_older(server):
            why = Mismatch("OlderClaimFirst", "free, and an older claim waits for it")
        if why is None:
            return Choice(server)
        choice.mismatches[why] += 1
    return choice
