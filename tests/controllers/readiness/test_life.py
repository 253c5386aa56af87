"""Readiness rules with running controllers."""

import asyncio
from typing import Any

import pytest

from metal.kube.client.errors import Forbidden, Invalid, NotFound
from metal.kube.meta.conditions import is_true
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
TAINT = {"key": "example.com/network", "value": "not-ready", "effect": "NoBind"}


async def _rule(w: World, name: str = "network", mode: str = "Continuous", **spec: Any) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {
            "conditions": [{"type": "NetworkReady", "requiredStatus": "True"}],
            "enforcementMode": mode,
            "taint": TAINT,
            "serverSelector": {"matchLabels": {"rack": "1"}},
            **spec,
        },
    }
    await w.client.create(KINDS.readiness_rule, body)


async def _report(w: World, status: str) -> None:
    """Another component reports on the server's network."""
    server = await w.server()
    found = {"type": "NetworkReady", "status": status, "reason": "Told", "message": "",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    others = [
        {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message,
         "lastTransitionTime": c.last_transition_time}
        for c in server.status.conditions if c.type != "NetworkReady"
    ]  # fmt: skip
    body = {
        "metadata": {"resourceVersion": server.metadata.resource_version}, "status": {"conditions": [*others, found]},
    }  # fmt: skip
    await w.client.patch_status(KINDS.server, "s1", body)


async def _tainted(w: World, tainted: bool, name: str = "s1") -> None:
    await w.until_true(lambda s: bool(s.spec.taints) is tainted, name)


@pytest.mark.behaviour("ServerReadinessRule", "With `Continuous` the taint follows the condition.")
async def test_a_rule_adds_its_taint_and_takes_it_away() -> None:
    """With Continuous this follows each change of the condition; a waiting claim gets the server in between."""
    async with world() as w:
        await _rule(w)
        await w.add_server(labels={"rack": "1"})
        await _tainted(w, True)
        await w.discover()
        await w.add_claim()
        await w.settle()
        waiting = await w.claim()
        await _report(w, "True")
        await _tainted(w, False)
        await w.until_claim(lambda c: c.status.phase == "Bound")
        await _report(w, "False")
        await _tainted(w, True)
        bound = await w.claim()
    assert (waiting.status.phase, bound.status.phase) == ("Unbound", "Bound")


@pytest.mark.behaviour("ServerReadinessRule", "With `BootstrapOnly` the taint is removed once and not added again.")
async def test_a_bootstrap_rule_is_done_once() -> None:
    """Later changes of the condition add no taint."""
    async with world() as w:
        await w.add_server(labels={"rack": "1"})
        await w.discover()
        await _rule(w, mode="BootstrapOnly")
        await _tainted(w, True)
        await _report(w, "True")
        await _tainted(w, False)
        await _report(w, "False")
        await w.settle()
        server = await w.server()
    assert server.spec.taints == ()
    assert server.metadata.annotations["readiness.metal.ironcore.dev/bootstrap-completed-network"] == "true"


@pytest.mark.behaviour(
    "ServerReadinessRule", "A deleted rule removes its taint from all servers; other taints are kept."
)
async def test_a_deleted_rule_takes_its_taint_with_it() -> None:
    """The taint is removed from all selected servers before the rule is deleted; other taints stay."""
    async with world() as w:
        await w.add_server(labels={"rack": "1"}, taints=[{"key": "mine"}])
        await w.add_server("s2", uuid="11111111-2222-3333-4444-555555555502", labels={"rack": "1"})
        await _rule(w)
        await w.until_true(lambda s: len(s.spec.taints) == 2)
        await _tainted(w, True, "s2")
        await w.client.delete(KINDS.readiness_rule, "network")
        await w.settle()
        with pytest.raises(NotFound):
            await w.client.get(KINDS.readiness_rule, "network")
        first, second = await w.server(), await w.server("s2")
    assert [t.key for t in first.spec.taints] == ["mine"]
    assert second.spec.taints == ()


async def test_a_rule_deleted_while_nobody_was_there_is_cleaned_up_later() -> None:
    """Its finalizer keeps it until a manager runs."""
    async with world() as w:
        await w.add_server(labels={"rack": "1"})
        await _rule(w)
        await _tainted(w, True)
        await w.settle()
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.readiness_rule, "network")
        await w.restart()
        await _tainted(w, False)
        assert (await w.client.list(KINDS.readiness_rule)).items == ()


@pytest.mark.behaviour("ServerReadinessRule", "A server whose labels no longer match loses the taint of the rule.")
async def test_labels_that_change_take_the_server_out_of_the_rule() -> None:
    """The taint is removed with the label."""
    async with world() as w:
        await w.add_server(labels={"rack": "1"})
        await _rule(w)
        await _tainted(w, True)
        await w.client.patch(KINDS.server, "s1", {"metadata": {"labels": {"rack": "2"}}})
        await _tainted(w, False)


async def test_a_rule_says_whether_it_is_applied() -> None:
    """An invalid selector is named."""
    async with world() as w:
        bad = {"matchExpressions": [{"key": "rack", "operator": "In", "values": []}]}
        await _rule(w, serverSelector=bad)
        await _rule(w, "good")
        await w.settle()
        broken = await w.client.get(KINDS.readiness_rule, "network")
        good = await w.client.get(KINDS.readiness_rule, "good")
    assert (broken.status.state, good.status.state) == ("Error", "Active")
    assert "spec.serverSelector" in broken.status.waiting_for
    assert is_true(good.status.conditions, "Valid")


@pytest.mark.behaviour(
    "ServerReadinessRule", "A change of taints that the API refuses is reported in an Event on each rule of the server."
)
async def test_a_refused_change_of_taints_is_an_event_on_the_rule() -> None:
    """The Event names the server and the API's words; the taint is set once the API accepts it."""

    async def refuse(write: str, when: str) -> None:
        if write == "patch Server s1" and when == "before":
            raise Forbidden("a webhook denies taints")

    async with world() as w:
        await _rule(w, serverSelector={"matchLabels": {"rack": "9"}}, name="other")
        await w.add_server(labels={"rack": "1"})
        await w.discover()
        w.tap.trap = refuse
        await _rule(w)
        await asyncio.sleep(30)
        events = [one for one in await w.events() if one.reason == "Forbidden"]
        w.tap.trap = None
        await w.until_true(lambda s: bool(s.spec.taints))
    (event,) = events
    assert (event.involved_object.kind, event.involved_object.name) == ("ServerReadinessRule", "network")
    assert "to change the taints of Server s1: a webhook denies taints" in event.message


@pytest.mark.behaviour(
    "ServerReadinessRule", "The spec of a rule is immutable, and its name is limited to 43 characters."
)
async def test_a_rule_does_not_change_and_its_name_fits_an_annotation() -> None:
    """spec is immutable; a name of 44 characters would make an invalid annotation."""
    async with world() as w:
        await _rule(w)
        with pytest.raises(Invalid, match="spec is immutable"):
            await w.client.patch(KINDS.readiness_rule, "network", {"spec": {"enforcementMode": "BootstrapOnly"}})
        await _rule(w, "n" * 43, "BootstrapOnly")
        with pytest.raises(Invalid, match="at most 43 characters"):
            await _rule(w, "n" * 44, "BootstrapOnly")


async def test_an_event_storm_of_a_server_writes_nothing() -> None:
    """Changes that rules do not evaluate cause no pass, and an unchanged result is not written."""
    async with world() as w:
        await w.add_server(labels={"rack": "1"})
        await _rule(w)
        await _tainted(w, True)
        before = w.passes("readiness")
        await w.discover()
        spent = w.passes("readiness") - before
    assert spent <= 15
