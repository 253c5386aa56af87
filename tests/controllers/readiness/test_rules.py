"""The taints that readiness rules give a server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.common import LabelSelector, LabelSelectorRequirement, Taint
from metal.api.meta import Condition, ObjectMeta
from metal.api.readiness import ConditionRequirement, RuleTaint, ServerReadinessRule, ServerReadinessRuleSpec
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.controllers.readiness import rules

KEYS = rules.Keys("g")
OURS = Taint(key="x/not-ready", value="net")


def _rule(
    name: str = "r", *, mode: str = "Continuous", labels: dict[str, str] | None = None, **more: Any
) -> ServerReadinessRule:
    wanted = (ConditionRequirement(type="NetworkReady", required_status="True"),)
    taint = RuleTaint(key=OURS.key, value=OURS.value)
    spec = {"conditions": wanted, "enforcement_mode": mode, "taint": taint, **more}
    selector = LabelSelector(match_labels=labels or {})
    return ServerReadinessRule(
        metadata=ObjectMeta(name=name), spec=ServerReadinessRuleSpec(server_selector=selector, **spec)
    )


def _server(status: str = "", *, taints: tuple[Taint, ...] = (), **notes: str) -> Server:
    found = (Condition(type="NetworkReady", status=status),) if status else ()
    meta = ObjectMeta(name="s", labels={"rack": "1"}, annotations={k.replace("_", "/"): v for k, v in notes.items()})
    return Server(metadata=meta, spec=ServerSpec(taints=taints), status=ServerStatus(conditions=found))


def _applied(server: Server, outcome: rules.Outcome) -> Server:
    notes = {k: v for k, v in {**server.metadata.annotations, **outcome.annotations}.items() if v is not None}
    meta = ObjectMeta(name="s", labels=server.metadata.labels, annotations=notes)
    return Server(metadata=meta, spec=ServerSpec(taints=outcome.taints), status=server.status)


@pytest.mark.behaviour("ServerReadinessRule", "A condition that is missing or has another status is not ready.")
@pytest.mark.parametrize(("status", "tainted"), [("", True), ("False", True), ("Unknown", True), ("True", False)])
def test_a_condition_that_is_missing_or_otherwise_is_not_ready(status: str, tainted: bool) -> None:
    """Only the required status removes the taint."""
    assert rules.evaluate([_rule()], _server(status), KEYS).taints == ((OURS,) if tainted else ())


def test_taints_of_users_stay_and_keep_their_place() -> None:
    """The rule's taint is added and removed behind them."""
    mine = Taint(key="mine")
    before = _server(taints=(mine,))
    tainted = _applied(before, rules.evaluate([_rule()], before, KEYS))
    ready = Server(metadata=tainted.metadata, spec=tainted.spec, status=_server("True").status)
    assert tainted.spec.taints == (mine, OURS)
    assert rules.evaluate([_rule()], ready, KEYS).taints == (mine,)


def test_a_taint_that_another_operator_left_belongs_to_the_rule() -> None:
    """It has key, effect and value of the rule, and is removed when the server is ready."""
    assert rules.evaluate([_rule()], _server("True", taints=(OURS,)), KEYS).taints == ()


def test_the_same_taint_on_a_server_that_no_rule_selects_is_the_users() -> None:
    """Once the rule has tainted the server, the taint is removed with the labels."""
    elsewhere = _rule(labels={"rack": "2"})
    by_hand = _server(taints=(OURS,))
    by_rule = _applied(_server(), rules.evaluate([_rule()], _server(), KEYS))
    assert rules.evaluate([elsewhere], by_hand, KEYS).taints == (OURS,)
    assert rules.evaluate([elsewhere], by_rule, KEYS).taints == ()
    assert rules.evaluate([elsewhere], by_rule, KEYS).annotations == {KEYS.tainted_by: None}


def test_bootstrap_only_is_done_once_it_has_held() -> None:
    """The annotation records it; later changes of the condition have no effect."""
    rule = _rule(mode="BootstrapOnly")
    first = rules.evaluate([rule], _server("True"), KEYS)
    later = rules.evaluate([rule], _applied(_server("False"), first), KEYS)
    assert first.annotations == {"readiness.g/bootstrap-completed-r": "true"}
    assert (first.taints, later.taints, later.annotations) == ((), (), {})


def test_two_rules_with_one_taint_both_have_to_agree() -> None:
    """It stays as long as one of them is not satisfied."""
    other = _rule("q", conditions=(ConditionRequirement(type="DiskReady", required_status="True"),))
    assert rules.evaluate([_rule(), other], _server("True"), KEYS).taints == (OURS,)


def test_a_selector_that_cannot_be_read_taints_nobody() -> None:
    """The rule itself reports the error."""
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="rack", operator="In"),))
    rule = _rule()
    rule = ServerReadinessRule(
        metadata=rule.metadata,
        spec=ServerReadinessRuleSpec(
            conditions=rule.spec.conditions, enforcement_mode="Continuous", taint=rule.spec.taint, server_selector=bad
        ),
    )
    assert "serverSelector" in rules.problem(rule)
    assert rules.evaluate([rule], _server(), KEYS).taints == ()


TAINTS = st.builds(Taint, key=st.sampled_from(["x/not-ready", "mine"]), value=st.sampled_from(["", "net"]),
                   effect=st.sampled_from(["NoBind", "Evict"]))  # fmt: skip


@pytest.mark.behaviour("ServerReadinessRule", "Applying the rules twice changes nothing more.")
@given(
    st.sampled_from(["", "True", "False"]),
    st.lists(TAINTS, max_size=3, unique_by=lambda t: (t.key, t.effect)),
    st.lists(st.sampled_from(["Continuous", "BootstrapOnly"]), max_size=3),
)
def test_judging_twice_changes_nothing_more(status: str, taints: list[Taint], modes: list[str]) -> None:
    """The result is a fixed point, keys and effects stay unique, other taints stay."""
    found = [_rule(f"r{number}", mode=mode) for number, mode in enumerate(modes)]
    before = _server(status, taints=tuple(taints))
    after = _applied(before, rules.evaluate(found, before, KEYS))
    again = rules.evaluate(found, after, KEYS)
    slots = [(t.key, t.effect) for t in after.spec.taints]
    assert (again.taints, again.annotations) == (after.spec.taints, {})
    assert len(slots) == len(set(slots))
    assert [t for t in after.spec.taints if t.key == "mine"] == [t for t in taints if t.key == "mine"]
