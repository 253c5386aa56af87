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
from metal.controllers.claim.watches import UNBOUND, _claims_of, _content_changed, unbound_index
from metal.controllers.server.watches import _is_order
from metal.controllers.shared.indexes import BY_SERVER, claim_index, server_index
from metal.kube.cache.cache import Cache


class _Deps:
    """The dependencies that the key functions read."""

    def __init__(self, *claims: ServerClaim) -> None:
        self.claims: Cache[ServerClaim] = Cache()
        self.claims.add_index(BY_SERVER, server_index)
        self.claims.add_index(UNBOUND, unbound_index)
        for claim in claims:
            self.claims.put(claim)


def _claim(name: str, server: str = "") -> ServerClaim:
    ref = LocalRef(name=server) if server else None
    meta = ObjectMeta(name=name, namespace="d", uid=name)
    return ServerClaim(metadata=meta, spec=ServerClaimSpec(server_ref=ref))


def _server(state: str = "Available", power: str = "Off", claim: str = "", led: str = "") -> Server:
    ref = ObjectRef(namespace="d", name=claim) if claim else None
    status = ServerStatus(state=state, power_state=power, indicator_led=led)
    return Server(metadata=ObjectMeta(name="s"), spec=ServerSpec(server_claim_ref=ref), status=status)


def _woken(deps: _Deps, old: Server | None, new: Server | None) -> set[str]:
    return {key.name for key in _claims_of(deps, old, new)}  # type: ignore[arg-type]  # only claims are read


def test_a_server_that_becomes_free_wakes_the_claims_that_wait_for_one() -> None:
    """Each unbound claim gets a pass, whatever freed the server."""
    deps = _Deps(_claim("one"), _claim("two"), _claim("other", server="t"))
    assert _woken(deps, None, _server()) == {"one", "two"}
    assert _woken(deps, _server("Discovery"), _server()) == {"one", "two"}
    assert _woken(deps, _server(power="On"), _server()) == {"one", "two"}
    assert _woken(deps, _server(claim="gone"), _server()) == {"one", "two", "gone"}


@pytest.mark.behaviour("ServerClaim", "A free server that stays free wakes no waiting claim.")
def test_a_free_server_that_stays_free_wakes_nobody() -> None:
    """Status updates of a thousand idle servers cause no pass for unbound claims."""
    assert _woken(_Deps(_claim("one")), _server(), _server(led="Lit")) == set()


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
