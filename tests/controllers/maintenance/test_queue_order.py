"""Which maintenance is next, and why others wait."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.claim import ServerClaim
from metal.api.common import LocalRef, ObjectRef
from metal.api.maintenance import ServerMaintenance, ServerMaintenanceSpec
from metal.api.meta import ObjectMeta
from metal.api.server import Failure, Server, ServerSpec, ServerStatus, Wait
from metal.controllers.maintenance import queue_order
from metal.controllers.maintenance.queue_order import ApprovalRules

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def key(name: str) -> str:
    return f"g/{name}"


RULES = ApprovalRules(key, ("a", "b"))


def _one(name: str = "m", *, age: int = 0, namespace: str = "a", **spec: Any) -> ServerMaintenance:
    meta = ObjectMeta(
        name=name, namespace=namespace, uid=f"{namespace}-{name}", creation_timestamp=NOW - timedelta(seconds=age)
    )
    return ServerMaintenance(metadata=meta, spec=ServerMaintenanceSpec(server_ref=LocalRef(name="s"), **spec))


def _claim(**labels: str) -> ServerClaim:
    return ServerClaim(
        metadata=ObjectMeta(name="c", namespace="a", labels={key(k.replace("_", "-")): v for k, v in labels.items()})
    )


def _server(state: str = "Available", **spec: Any) -> Server:
    return Server(metadata=ObjectMeta(name="s"), spec=ServerSpec(**spec), status=ServerStatus(state=state))


@pytest.mark.behaviour("ServerMaintenance", "Maintenances are ordered by priority, policy, age, namespace and name.")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_one("z", priority=1), _one("a", age=9)),
        (_one("z", policy="Enforced"), _one("a", age=9)),
        (_one("z", age=1), _one("a")),
        (_one("z", namespace="a"), _one("a", namespace="b")),
        (_one("a"), _one("b")),
        (_one("z", priority=0), _one("a", priority=-1, policy="Enforced", age=9)),
    ],
)
def test_priority_then_policy_then_age_then_name(first: ServerMaintenance, second: ServerMaintenance) -> None:
    """Each criterion decides only when those before it are equal."""
    assert RULES.rank(first) < RULES.rank(second)
    assert queue_order.first([second, first], None, RULES) is first


MAINTENANCES = st.builds(
    _one,
    st.sampled_from("abcdef"),
    age=st.integers(0, 3),
    namespace=st.sampled_from("ab"),
    priority=st.integers(-2, 2),
    policy=st.sampled_from(["Enforced", "OwnerApproval"]),
)


@pytest.mark.behaviour(
    "ServerMaintenance", "Of several maintenances exactly one has a server, unless all lack approval."
)
@given(st.lists(MAINTENANCES, min_size=1, max_size=6, unique_by=lambda m: m.metadata.uid), st.randoms(), st.booleans())
def test_exactly_one_of_several_may_have_a_server(found: list[ServerMaintenance], rng: Any, approved: bool) -> None:
    """In any order of the list one is next, unless all lack their approval."""
    claim = _claim(maintenance_approved="true") if approved else _claim()
    shuffled = list(found)
    rng.shuffle(shuffled)
    free = [m for m in found if queue_order.obstacle(m, _server(), claim, shuffled, RULES) is None]
    waits_for_owner = not approved and all(m.spec.policy == "OwnerApproval" for m in found)
    assert len(free) == (0 if waits_for_owner else 1)
    assert queue_order.first(shuffled, claim, RULES) == (free[0] if free else None)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (_server(server_maintenance_ref=ObjectRef(namespace="x", name="other")), "Queued"),
        (_server("Cleanup"), "ServerInCleanup"),
        (_server("Parked"), "ServerParked"),
        (_server("Initial"), None),
        (_server("Error"), None),
    ],
)
def test_each_obstacle_has_its_reason(server: Server, reason: str | None) -> None:
    """Assigned to another one, in Cleanup, or Parked. Error and Initial are no obstacles."""
    found = queue_order.obstacle(_one(policy="Enforced"), server, None, [], RULES)
    assert (found.reason if found else None) == reason


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A server that waits for the decision whose data is on its drives is given to an Enforced maintenance only.",
)
@pytest.mark.parametrize(
    "status",
    [
        ServerStatus(state="Discovery", wait=Wait(for_="DriveOwed")),
        ServerStatus(state="Reserved", wait=Wait(for_="FormerTenant")),
        ServerStatus(
            state="Error", failure=Failure(state="Discovery", reason="FormerTenant"), wait=Wait(for_="Repair")
        ),
    ],
)
def test_a_server_with_data_of_an_undecided_owner_is_not_given_away(status: ServerStatus) -> None:
    """A claim that does not hold the server cannot approve; one that may not enforce does not delay one that may."""
    server = msgspec.structs.replace(_server(), status=status)
    plain, foreign, own = _one("m", priority=9), _one("f", policy="Enforced", namespace="t"), _one(policy="Enforced")
    rivals = [plain, foreign, own]
    for one in (plain, foreign):
        found = queue_order.obstacle(one, server, None, rivals, RULES)
        assert found is not None
        assert found.reason == "DataOwnerUndecided"
    assert queue_order.obstacle(own, server, None, rivals, RULES) is None


def test_a_missing_approval_says_how_it_is_given_and_holds_up_nobody() -> None:
    """The message has the command; an Enforced one of lower priority is next until then."""
    high, low = _one("high", priority=9), _one("low", policy="Enforced")
    found = queue_order.obstacle(high, _server(), _claim(), [high, low], RULES)
    assert found is not None
    assert "kubectl label serverclaims -n a c g/maintenance-approved=true" in found.awaited
    assert queue_order.obstacle(low, _server(), _claim(), [high, low], RULES) is None


def test_enforced_outside_the_named_namespaces_waits_for_the_owner_and_names_the_ways_out() -> None:
    """It waits with a reason of its own, behind one of policy Enforced that is allowed; with approval it is next."""
    foreign, own = _one("m", policy="Enforced", namespace="team", age=9), _one("n", policy="Enforced")
    found = queue_order.obstacle(foreign, _server(), _claim(), [foreign], RULES)
    assert found is not None
    assert found.reason == "EnforcedNotAllowed"
    assert "create the maintenance in namespace a, or add team to maintenance.enforcedNamespaces" in found.awaited
    assert "kubectl label serverclaims -n a c g/maintenance-approved=true" in found.awaited
    assert RULES.rank(own) < RULES.rank(foreign)
    approved = _claim(maintenance_approved="true")
    assert queue_order.obstacle(foreign, _server(), approved, [foreign], RULES) is None
    assert queue_order.obstacle(foreign, _server(), None, [foreign], RULES) is None


@pytest.mark.parametrize(("value", "approved"), [("true", True), ("", True), ("false", False)])
def test_the_label_itself_is_the_approval(value: str, approved: bool) -> None:
    """As in the Go operator the label's presence counts; only "false" revokes it."""
    assert queue_order.is_approved(_claim(maintenance_approved=value), key) is approved
