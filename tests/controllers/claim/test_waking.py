"""Which change of a server causes a pass for which claim."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from metal.api.claim import (
    ServerBootConfiguration,
    ServerBootConfigurationSpec,
    ServerBootConfigurationStatus,
    ServerClaim,
    ServerClaimSpec,
    ServerClaimStatus,
)
from metal.api.common import LocalRef, ObjectRef
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.controllers.claim.waiting import WaitingClaims
from metal.controllers.claim.watches import _claims_of, _content_changed, _next_in_line
from metal.controllers.server.watches import _is_order
from metal.controllers.shared.indexes import BY_SERVER, claim_index, server_index
from metal.kube.cache.cache import Cache


class _Deps:
    """The dependencies that the key functions read."""

    def __init__(self, *claims: ServerClaim) -> None:
        self.claims: Cache[ServerClaim] = Cache()
        self.claims.add_index(BY_SERVER, server_index)
        self.waiting = WaitingClaims(lambda claim: claim.status.phase != "Bound")
        self.servers: Cache[Server] = Cache()
        for claim in claims:
            self.claims.put(claim)
            self.waiting.update(None, claim)


def _claim(name: str, server: str = "") -> ServerClaim:
    ref = LocalRef(name=server) if server else None
    meta = ObjectMeta(name=name, namespace="d", uid=name)
    return ServerClaim(metadata=meta, spec=ServerClaimSpec(server_ref=ref))


def _server(state: str = "Available", power: str = "Off", claim: str = "", led: str = "", name: str = "s") -> Server:
    ref = ObjectRef(namespace="d", name=claim) if claim else None
    status = ServerStatus(state=state, power_state=power, indicator_led=led)
    return Server(metadata=ObjectMeta(name=name), spec=ServerSpec(server_claim_ref=ref), status=status)


def _woken(deps: _Deps, old: Server | None, new: Server | None) -> set[str]:
    return {key.name for key in _claims_of(deps, old, new)}  # type: ignore[arg-type]  # only claims are read


@pytest.mark.behaviour("ServerClaim", "A server that becomes free wakes the oldest waiting claim that it fits.")
@pytest.mark.parametrize("before", [None, _server("Discovery"), _server("Cleanup"), _server(claim="gone")])
def test_a_server_that_becomes_free_wakes_the_oldest_claim_that_waits(before: Server | None) -> None:
    """One claim gets a pass, whatever freed the server; of two of the same age the one with the smaller UID."""
    deps = _Deps(_claim("two"), _claim("one"), _claim("other", server="t"))
    assert _woken(deps, before, _server()) - {"gone"} == {"one"}


def test_two_servers_that_become_free_wake_the_two_oldest_claims() -> None:
    """A claim gets one server; the next server is for the claim after it."""
    deps = _Deps(_claim("two"), _claim("one"), _claim("zero"))
    assert _woken(deps, None, _server()) == {"one"}
    assert _woken(deps, None, _server(name="t")) == {"two"}


@pytest.mark.behaviour("ServerClaim", "A free server that stays free wakes no waiting claim.")
def test_a_free_server_that_stays_free_wakes_nobody() -> None:
    """Status updates of a thousand idle servers cause no pass for unbound claims."""
    deps = _Deps(_claim("one"))
    assert _woken(deps, None, _server()) == {"one"}
    assert _woken(deps, _server(), _server(led="Lit")) == set()


def test_a_server_that_no_longer_fits_is_for_the_next_claim_and_its_claim_looks_for_another() -> None:
    """A cordoned server is promised to nobody; uncordoned it goes to the oldest that waits without a promise."""
    deps = _Deps(_claim("one"), _claim("two"))
    assert _woken(deps, None, _server()) == {"one"}
    assert _woken(deps, _server(), _server(power="On")) == {"one"}
    assert _woken(deps, _server(power="On"), _server()) == {"one"}


def test_the_server_of_a_claim_that_no_longer_waits_goes_to_the_next() -> None:
    """The oldest claim is deleted before it took the server that it was to get."""
    deps = _Deps(_claim("one"), _claim("two"))
    deps.servers.put(_server())
    assert _woken(deps, None, _server()) == {"one"}
    assert [key.name for key in _next_in_line(deps, _claim("one"), None)] == ["two"]  # type: ignore[arg-type]  # a cache


@pytest.mark.behaviour("ServerClaim", "A server that is taken wakes only the claim that took it.")
def test_a_server_that_is_taken_wakes_who_took_it_only() -> None:
    """Only the claim that holds it gets a pass."""
    assert _woken(_Deps(_claim("one"), _claim("two")), _server(), _server(claim="one")) == {"one"}


def test_a_server_that_changes_hands_wakes_both_claims() -> None:
    """The former holder gets a pass as well."""
    assert _woken(_Deps(), _server(claim="one"), _server(claim="two")) == {"one", "two"}


def test_a_named_server_wakes_the_claim_that_names_it_in_every_state() -> None:
    """The claim reports the state of its server, also before it is bound and when the server is deleted."""
    deps = _Deps(_claim("one", server="s"), _claim("two"))
    assert _woken(deps, _server("Initial"), _server("Discovery")) == {"one"}
    assert _woken(deps, _server("Discovery"), None) == {"one"}


def test_what_a_claim_says_of_itself_is_no_news_to_its_server() -> None:
    """The claim's status repeats the server's; a pass would only send requests to the BMC."""
    claim = _claim("one", server="s")
    waiting = msgspec.structs.replace(claim, status=ServerClaimStatus(phase="Bound", waiting_for="power On"))
    assert not _is_order(claim, waiting)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": ServerClaimSpec(power="On")},
        {"metadata": ObjectMeta(name="one", namespace="d", uid="another")},
        {
            "metadata": ObjectMeta(
                name="one", namespace="d", uid="one", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
            )
        },
        {"status": ServerClaimStatus(conditions=(Condition(type="Booted", status="True"),))},
    ],
)
def test_what_a_claim_wants_wakes_its_server(change: dict[str, Any]) -> None:
    """Power, UID, deletion and the condition Booted of the claim cause a pass for the server."""
    claim = _claim("one")
    assert _is_order(claim, msgspec.structs.replace(claim, **change))
    assert _is_order(None, claim)
    assert _is_order(claim, None)


def test_a_boot_configuration_wakes_its_claim_only_when_it_asks_for_something_else() -> None:
    """An edit or a deletion causes a pass; readiness reaches the claim through the server."""
    config = ServerBootConfiguration(
        metadata=ObjectMeta(name="one"), spec=ServerBootConfigurationSpec(server_ref=LocalRef(name="s"), image="a")
    )
    ready = msgspec.structs.replace(config, status=ServerBootConfigurationStatus(state="Ready"))
    assert not _content_changed(config, ready)
    assert _content_changed(
        config,
        msgspec.structs.replace(config, spec=ServerBootConfigurationSpec(server_ref=LocalRef(name="s"), image="b")),
    )
    assert _content_changed(config, None)


def test_the_index_of_holders_names_claims_with_their_namespace() -> None:
    """Claims of the same name in two namespaces are two claims."""
    assert list(claim_index(_server(claim="one"))) == ["d/one"]
