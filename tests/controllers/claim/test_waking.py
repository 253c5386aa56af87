"""Which change of a server wakes which claim."""

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
from metal.controllers.claim.watches import UNBOUND, _claims_of, _is_another, unbound_index
from metal.controllers.server.watches import _is_order
from metal.controllers.shared.indexes import BY_SERVER, claim_index, server_index
from metal.kube.cache.cache import Cache


class _Deps:
    """What the mapping reads of the reconciler's dependencies."""

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
    """It may be what they wait for, however it became free."""
    deps = _Deps(_claim("one"), _claim("two"), _claim("other", server="t"))
    assert _woken(deps, None, _server()) == {"one", "two"}
    assert _woken(deps, _server("Discovery"), _server()) == {"one", "two"}
    assert _woken(deps, _server(power="On"), _server()) == {"one", "two"}
    assert _woken(deps, _server(claim="gone"), _server()) == {"one", "two", "gone"}


@pytest.mark.behaviour("ServerClaim", "A free server that stays free wakes no waiting claim.")
def test_a_free_server_that_stays_free_wakes_nobody() -> None:
    """A thousand idle servers that report their LEDs are no news to those who wait for a server."""
    assert _woken(_Deps(_claim("one")), _server(), _server(led="Lit")) == set()


@pytest.mark.behaviour("ServerClaim", "A server that is taken wakes only the claim that took it.")
def test_a_server_that_is_taken_wakes_who_took_it_only() -> None:
    """Those who did not get it look for another by themselves; all others never wanted this one."""
    assert _woken(_Deps(_claim("one"), _claim("two")), _server(), _server(claim="one")) == {"one"}


def test_a_server_that_changes_hands_wakes_both_claims() -> None:
    """The former holder has to notice."""
    assert _woken(_Deps(), _server(claim="one"), _server(claim="two")) == {"one", "two"}


def test_a_named_server_wakes_the_claim_that_names_it_in_every_state() -> None:
    """The claim says what its server does, also before it can have it and when the server is deleted."""
    deps = _Deps(_claim("one", server="s"), _claim("two"))
    assert _woken(deps, _server("Initial"), _server("Discovery")) == {"one"}
    assert _woken(deps, _server("Discovery"), None) == {"one"}


def test_what_a_claim_says_of_itself_is_no_news_to_its_server() -> None:
    """Its status repeats what the server said; a look at the BMC for that would be in vain."""
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
    """Another power, another claim of the name, its deletion, and that its image has booted."""
    claim = _claim("one")
    assert _is_order(claim, msgspec.structs.replace(claim, **change))
    assert _is_order(None, claim)
    assert _is_order(claim, None)


def test_a_boot_configuration_wakes_its_claim_only_when_it_asks_for_something_else() -> None:
    """Somebody edited or deleted it; its readiness reaches the claim through the server."""
    config = ServerBootConfiguration(
        metadata=ObjectMeta(name="one"), spec=ServerBootConfigurationSpec(server_ref=LocalRef(name="s"), image="a")
    )
    ready = msgspec.structs.replace(config, status=ServerBootConfigurationStatus(state="Ready"))
    assert not _is_another(config, ready)
    assert _is_another(
        config,
        msgspec.structs.replace(config, spec=ServerBootConfigurationSpec(server_ref=LocalRef(name="s"), image="b")),
    )
    assert _is_another(config, None)


def test_the_index_of_holders_names_claims_with_their_namespace() -> None:
    """Claims of the same name in two namespaces are two claims."""
    assert list(claim_index(_server(claim="one"))) == ["d/one"]
