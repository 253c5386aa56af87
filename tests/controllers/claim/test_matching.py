"""Which server a claim may have, case by case."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.claim import ServerClaim, ServerClaimSpec
from metal.api.common import LabelSelector, LabelSelectorRequirement, LocalRef, ObjectRef, Taint, Toleration
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.controllers.claim.candidate_order import CandidateOrder
from metal.controllers.claim.matching import Choice, blocking_taints, mismatch, selector_problem
from metal.controllers.claim.matching import choose as first_that_fits


def _server(name: str = "s", state: str = "Available", power: str = "Off", **spec: object) -> Server:
    labels = spec.pop("labels", {})
    return Server(
        metadata=ObjectMeta(name=name, labels=labels),  # type: ignore[arg-type]  # the tests give a dict
        spec=ServerSpec(**spec),  # type: ignore[arg-type]  # the tests give fields of the spec
        status=ServerStatus(state=state, power_state=power),
    )


def _claim(uid: str = "u", **spec: object) -> ServerClaim:
    meta = ObjectMeta(name="c", namespace="default", uid=uid)
    return ServerClaim(metadata=meta, spec=ServerClaimSpec(**spec))  # type: ignore[arg-type]  # fields of the spec


def choose(claim: ServerClaim, servers: Iterable[Server]) -> Choice:
    """Selects in the claim's order, as the reconciler does."""
    ring, held = CandidateOrder(), {}
    for server in servers:
        ring.update(None, server)
        held[server.metadata.name] = server
    return first_that_fits(claim, [held[name] for name in ring.names(claim)])


K = Taint(key="k", value="v")
LEFT = "metal.example.org/data-not-erased"
X1 = LabelSelector(match_labels={"x": "1"})


@pytest.mark.behaviour("ServerClaim")
@pytest.mark.parametrize(
    ("taints", "tolerations", "blocked"),
    [
        ([], [], False),
        ([K], [], True),
        ([K], [Toleration(key="k", operator="Exists")], False),
        ([K], [Toleration(key="k", operator="Equal", value="v")], False),
        ([K], [Toleration(key="k", operator="Equal", value="w")], True),
        ([K], [Toleration(key="k", value="v")], False),
        ([K], [Toleration(key="k", value="w")], True),
        ([K], [Toleration(key="k", operator="Exists", effect="NoBind")], False),
        ([K], [Toleration(key="k", operator="Exists", effect="Evict")], True),
        ([K], [Toleration(key="other", operator="Exists")], True),
        ([K], [Toleration(key="k", operator="Near", value="v")], True),
        ([Taint(key="k", effect="Evict")], [], False),
        ([Taint(key="k", effect="")], [], True),
        ([K, Taint(key="b")], [Toleration(key="k", operator="Exists")], True),
        ([Taint(key=LEFT, value="default")], [Toleration(key=LEFT, operator="Exists")], False),
        ([Taint(key=LEFT, value="default")], [Toleration(key=LEFT, value="default")], False),
        ([Taint(key=LEFT, value="default")], [], True),
        ([Taint(key=LEFT, value="team-b")], [Toleration(key=LEFT, operator="Exists")], True),
        ([Taint(key=LEFT, value="team-b")], [Toleration(key=LEFT, value="team-b")], True),
        ([Taint(key=LEFT)], [Toleration(key=LEFT, operator="Exists")], True),
        ([K, Taint(key="b")], [Toleration(key="k", operator="Exists"), Toleration(key="b", operator="Exists")], False),
    ],
)
def test_taints_block_unless_tolerated(taints: list[Taint], tolerations: list[Toleration], blocked: bool) -> None:
    """NoBind taints keep a claim away unless one of its tolerations covers each."""
    assert bool(blocking_taints(taints, _claim(tolerations=tuple(tolerations)))) is blocked


@pytest.mark.behaviour(
    "ServerClaim", "Each reason not to fit has a name: state, other claim, labels, taints, cordon, power."
)
@pytest.mark.parametrize(
    ("server", "claim", "reason"),
    [
        (_server(), _claim(), None),
        (_server("a"), _claim(server_ref=LocalRef(name="a")), None),
        (_server("a"), _claim(server_ref=LocalRef(name="b")), "NoMatch"),
        (_server("a", labels={"x": "1"}), _claim(server_ref=LocalRef(name="a"), server_selector=X1), None),
        (_server("a", labels={"x": "2"}), _claim(server_ref=LocalRef(name="a"), server_selector=X1), "NoMatch"),
        (_server("b", labels={"x": "1"}), _claim(server_ref=LocalRef(name="a"), server_selector=X1), "NoMatch"),
        (_server(labels={"x": "1"}), _claim(server_selector=LabelSelector(match_labels={"x": "2"})), "NoMatch"),
        (_server(labels={"x": "1"}), _claim(server_selector=X1), None),
        (_server(state="Discovery"), _claim(), "NotAvailable"),
        (_server(state="Cleanup"), _claim(), "NotAvailable"),
        (_server(power="On"), _claim(), "NotAvailable"),
        (_server(power=""), _claim(), "NotAvailable"),
        (_server(unclaimable=True), _claim(), "Cordoned"),
        (_server("a", unclaimable=True), _claim(server_ref=LocalRef(name="a")), "Cordoned"),
        (_server(unclaimable=True, labels={"x": "1"}), _claim(server_selector=X1), "Cordoned"),
        (_server(server_claim_ref=ObjectRef(namespace="default", name="other")), _claim(), "Claimed"),
        (_server(server_claim_ref=ObjectRef(namespace="default", name="c")), _claim(), None),
        (_server(server_maintenance_ref=ObjectRef(namespace="a", name="m")), _claim(), "NotAvailable"),
        (_server(taints=(K,)), _claim(), "Tainted"),
        (_server(taints=(K,)), _claim(tolerations=(Toleration(key="k", operator="Exists"),)), None),
    ],
)
def test_each_mismatch_has_its_reason(server: Server, claim: ServerClaim, reason: str | None) -> None:
    """A server that a claim cannot have has a CamelCase reason."""
    found = mismatch(claim, server)
    assert (found.reason if found else None) == reason


def test_a_server_whose_bmc_does_not_answer_is_not_given_away() -> None:
    """It could not be powered on."""
    status = ServerStatus(
        state="Available", power_state="Off", conditions=(Condition(type="BMCReachable", status="False"),)
    )
    found = mismatch(_claim(), Server(status=status))
    assert found is not None
    assert found.reason == "BMCUnreachable"


@pytest.mark.behaviour("ServerClaim", "A claim that no server fits counts the servers by reason.")
def test_the_verdict_counts_the_servers_that_did_not_fit() -> None:
    """The message has the number of servers for each reason."""
    servers = [_server("a", state="Discovery"), _server("b", state="Discovery"), _server("c", unclaimable=True)]
    verdict = choose(_claim(), servers)
    assert verdict.server is None
    assert verdict.reason == "NoneFits"
    assert verdict.message == "none of 3 servers fits: 2 in state Discovery; 1 marked unclaimable"


def test_no_servers_at_all_is_a_reason_of_its_own() -> None:
    """An empty fleet has another reason than a fleet without a match."""
    assert choose(_claim(), []).reason == "NoServers"


def test_a_selector_that_makes_no_sense_matches_nothing_and_is_explained() -> None:
    """An unknown operator is reported on the claim and raises no exception."""
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    claim = _claim(server_selector=bad)
    assert mismatch(claim, _server()) is not None
    assert "operator" in selector_problem(claim)


@pytest.mark.behaviour("ServerClaim", "The chosen server does not depend on the order of the list.")
@given(st.sets(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8), st.text(min_size=1, max_size=5))
def test_the_choice_does_not_depend_on_the_order_of_servers(names: set[str], uid: str) -> None:
    """The same claim gets the same server in any order of the cache."""
    servers = [_server(name) for name in sorted(names)]
    one, two = choose(_claim(uid), servers).server, choose(_claim(uid), reversed(servers)).server
    assert one is not None
    assert two is not None
    assert one.metadata.name == two.metadata.name


@pytest.mark.behaviour("ServerClaim", "Different claims prefer different servers.")
def test_different_claims_prefer_different_servers() -> None:
    """A hundred claims over a hundred servers do not all compete for one."""
    servers = [_server(f"s{n}") for n in range(100)]
    chosen = {s.metadata.name for n in range(100) if (s := choose(_claim(f"u{n}"), servers).server)}
    assert len(chosen) > 40
