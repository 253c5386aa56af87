"""What readiness rules make of one server's taints and annotations. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from metal.api.common import Taint
from metal.api.readiness import EnforcementMode, RuleTaint, ServerReadinessRule
from metal.api.server import Server
from metal.kube import conditions
from metal.kube.selectors import from_object

PREFIX = "readiness.metal.ironcore.dev"
TAINTED_BY = f"{PREFIX}/tainted-by"
"""Annotation with the names of the rules whose taints the server has, so that they go when a selector moves on."""


@dataclass(frozen=True)
class Outcome:
    """Taints and annotations as they are to be. An annotation of None is removed."""

    taints: tuple[Taint, ...]
    annotations: dict[str, str | None]


def completed(rule: ServerReadinessRule) -> str:
    """The annotation that says that a rule with enforcementMode BootstrapOnly is done with a server."""
    return f"{PREFIX}/bootstrap-completed-{rule.metadata.name}"


def problem(rule: ServerReadinessRule) -> str:
    """Why the rule cannot be applied, or nothing."""
    if rule.spec.taint is None:
        return "spec.taint is missing: say which taint servers get that are not ready"
    try:
        from_object(rule.spec.server_selector)
    except ValueError as exc:
        return f"spec.serverSelector: {exc}"
    return ""


def selects(rule: ServerReadinessRule, server: Server) -> bool:
    """True when the rule is in force and its selector matches the server's labels."""
    if rule.metadata.deletion_timestamp is not None or problem(rule):
        return False
    return from_object(rule.spec.server_selector).matches(server.metadata.labels)


def holds(rule: ServerReadinessRule, server: Server) -> bool:
    """True when each condition is there and has the status that is asked for."""
    found = ((conditions.find(server.status.conditions, one.type), one) for one in rule.spec.conditions)
    return all(known is not None and known.status == one.required_status for known, one in found)


def judge(rules: Iterable[ServerReadinessRule], server: Server) -> Outcome:
    """What the server is to have. Taints of users stay; those that a rule names belong to the rule where it selects."""
    notes = server.metadata.annotations
    before = set(filter(None, notes.get(TAINTED_BY, "").split(",")))
    wanted: dict[str, RuleTaint] = {}
    dropped: list[RuleTaint] = []
    changes: dict[str, str | None] = {}
    for rule in sorted(rules, key=lambda one: one.metadata.name):
        taint, name = rule.spec.taint, rule.metadata.name
        if taint is None:
            continue
        if selects(rule, server) and not _is_satisfied(rule, server, changes):
            wanted[name] = taint
        elif name in before or selects(rule, server):
            dropped.append(taint)
    by = ",".join(wanted) or None
    if by != (notes.get(TAINTED_BY) or None):
        changes[TAINTED_BY] = by
    return Outcome(_taints(server.spec.taints, list(wanted.values()), dropped), changes)


def _is_satisfied(rule: ServerReadinessRule, server: Server, changes: dict[str, str | None]) -> bool:
    """True when the rule asks for no taint; notes that a rule of BootstrapOnly is done."""
    once = rule.spec.enforcement_mode == EnforcementMode.BOOTSTRAP_ONLY
    if once and server.metadata.annotations.get(completed(rule)):
        return True
    if not holds(rule, server):
        return False
    if once:
        changes[completed(rule)] = "true"
    return True


def _taints(present: tuple[Taint, ...], wanted: list[RuleTaint], dropped: list[RuleTaint]) -> tuple[Taint, ...]:
    """Key, effect and value tell taints apart; of one key and effect there can be only one, and a rule's wins."""
    slots = {(one.key, one.effect) for one in wanted}
    gone = {(one.key, one.effect, one.value) for one in dropped}
    kept = [
        one for one in present if (one.key, one.effect) not in slots and (one.key, one.effect, one.value) not in gone
    ]
    unique = {(one.key, one.effect): Taint(key=one.key, value=one.value, effect=one.effect) for one in wanted}
    fresh = [one for one in unique.values() if one not in present]
    stay = [one for one in unique.values() if one in present]
    return tuple(one for one in present if one in kept or one in stay) + tuple(fresh)
