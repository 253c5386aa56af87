"""Evaluates readiness rules for one server: the taints and annotations that it gets. Pure functions.

A rule selects servers by labels and taints those whose conditions it does not accept. The annotation `tainted-by` names
the rules that have tainted a server, so that their taints are removed when its labels change and it is no longer
selected. A rule with enforcementMode BootstrapOnly is annotated as completed once a server satisfies it, and then no
longer evaluated for that server. Taints of users stay.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from metal.api.common import Taint
from metal.api.readiness import EnforcementMode, RuleTaint, ServerReadinessRule
from metal.api.server import Server
from metal.kube.meta import conditions
from metal.kube.meta.selectors import from_object


class Keys:
    """Annotations and the finalizer of readiness rules, under an API group."""

    def __init__(self, group: str) -> None:
        self._prefix = f"readiness.{group}"
        self.finalizer = f"{self._prefix}/cleanup-taints"
        self.tainted_by = f"{self._prefix}/tainted-by"
        """Names of the rules that have tainted a server."""

    def completed(self, rule: ServerReadinessRule) -> str:
        """Marks a rule with enforcementMode BootstrapOnly as completed for a server."""
        return f"{self._prefix}/bootstrap-completed-{rule.metadata.name}"

    def tainting(self, server: Server) -> set[str]:
        """The rules that have tainted a server."""
        return set(filter(None, server.metadata.annotations.get(self.tainted_by, "").split(",")))


@dataclass(frozen=True)
class Outcome:
    """The desired taints and annotations. An annotation of None is removed."""

    taints: tuple[Taint, ...]
    annotations: dict[str, str | None]


def problem(rule: ServerReadinessRule) -> str:
    """Why the rule is invalid, or empty."""
    if rule.spec.taint is None:
        return "spec.taint is missing: set the taint of servers that are not ready"
    try:
        from_object(rule.spec.server_selector)
    except ValueError as exc:
        return f"spec.serverSelector: {exc}"
    return ""


def selects(rule: ServerReadinessRule, server: Server) -> bool:
    """True when the rule is valid, not being deleted, and its selector matches the server's labels."""
    if rule.metadata.deletion_timestamp is not None or problem(rule):
        return False
    return from_object(rule.spec.server_selector).matches(server.metadata.labels)


def is_satisfied(rule: ServerReadinessRule, server: Server) -> bool:
    """True when each condition of the rule exists and has the required status."""
    found = ((conditions.find(server.status.conditions, one.type), one) for one in rule.spec.conditions)
    return all(known is not None and known.status == one.required_status for known, one in found)


def evaluate(rules: Iterable[ServerReadinessRule], server: Server, keys: Keys) -> Outcome:
    """The taints and annotations of the server. Taints of users stay, except those that a rule selecting it names."""
    before = keys.tainting(server)
    wanted: dict[str, RuleTaint] = {}
    dropped: list[RuleTaint] = []
    changes: dict[str, str | None] = {}
    for rule in sorted(rules, key=lambda one: one.metadata.name):
        taint, name = rule.spec.taint, rule.metadata.name
        if taint is None:
            continue
        if selects(rule, server) and not _needs_no_taint(rule, server, keys, changes):
            wanted[name] = taint
        elif name in before or selects(rule, server):
            dropped.append(taint)
    if before != wanted.keys():
        changes[keys.tainted_by] = ",".join(wanted) or None
    return Outcome(_taints(server.spec.taints, list(wanted.values()), dropped), changes)


def _needs_no_taint(rule: ServerReadinessRule, server: Server, keys: Keys, changes: dict[str, str | None]) -> bool:
    """True when the rule requires no taint; adds the annotation that completes a BootstrapOnly rule to `changes`."""
    once = rule.spec.enforcement_mode == EnforcementMode.BOOTSTRAP_ONLY
    if once and server.metadata.annotations.get(keys.completed(rule)):
        return True
    if not is_satisfied(rule, server):
        return False
    if once:
        changes[keys.completed(rule)] = "true"
    return True


def _taints(present: tuple[Taint, ...], wanted: list[RuleTaint], dropped: list[RuleTaint]) -> tuple[Taint, ...]:
    """A taint is identified by key, effect and value; of one key and effect only one can exist, and a rule's wins."""
    slots = {(one.key, one.effect) for one in wanted}
    gone = {(one.key, one.effect, one.value) for one in dropped}
    kept = [
        one for one in present if (one.key, one.effect) not in slots and (one.key, one.effect, one.value) not in gone
    ]
    unique = {(one.key, one.effect): Taint(key=one.key, value=one.value, effect=one.effect) for one in wanted}
    fresh = [one for one in unique.values() if one not in present]
    stay = [one for one in unique.values() if one in present]
    return tuple(one for one in present if one in kept or one in stay) + tuple(fresh)
