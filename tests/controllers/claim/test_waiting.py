"""The waiting claims and what is promised to them, in any order of events."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from metal.api.claim import ServerClaim, ServerClaimSpec
from metal.api.common import LocalRef, Taint, Toleration
from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.controllers.claim.waiting import WaitingClaims
from metal.kube.meta.objects import Key, key_of

START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = st.tuples(st.sampled_from(["create", "again", "delete", "offer", "withdraw", "take"]), st.integers(0, 3))


def claim(number: int) -> ServerClaim:
    """Claims 0 to 2 take any server, claim 3 only s0; the higher the number, the older."""
    meta = ObjectMeta(
        name=f"c{number}", namespace="n", uid=f"u{number}", creation_timestamp=START - timedelta(seconds=number)
    )
    return ServerClaim(metadata=meta, spec=ServerClaimSpec(server_ref=LocalRef(name="s0") if number == 3 else None))


def server(number: int) -> Server:
    """A free server."""
    return Server(metadata=ObjectMeta(name=f"s{number}"), status=ServerStatus(state="Available", power_state="Off"))


def play(waiting: WaitingClaims, there: set[int], what: str, number: int) -> None:
    """One event of the watch, or one look of a reconciler."""
    one = claim(number)
    if what == "create":
        waiting.update(one if number in there else None, one)
        there.add(number)
    elif what == "again" and number in there:
        waiting.update(None, one)
    elif what == "delete":
        waiting.update(one, None)
        there.discard(number)
    elif what == "offer":
        waiting.offer(server(number))
    elif what == "withdraw":
        waiting.withdraw(f"s{number}")
    elif what == "take":
        waiting.may_take(one, server(0))


@given(st.lists(EVENTS, max_size=40))
def test_each_claim_is_known_once_whatever_is_repeated(events: list[tuple[str, int]]) -> None:
    """Claims that are gone get no server, no server is promised twice, and the oldest without a promise is next."""
    waiting, there = WaitingClaims(lambda one: True), set[int]()
    for what, number in events:
        play(waiting, there, what, number)
        assert len(waiting) == len(there)
        promises = {f"s{n}": waiting.getting(f"s{n}") for n in range(4)}
        given_to = [key for key in promises.values() if key is not None]
        assert len(set(given_to)) == len(given_to)
        assert set(given_to) <= {key_of(claim(n)) for n in there}
    unpromised = [n for n in there if n != 3 and not waiting.promised(key_of(claim(n)))]
    wanted = key_of(claim(max(unpromised))) if unpromised else None
    assert waiting.offer(server(9)) == wanted


def test_a_claim_that_is_listed_again_has_one_place() -> None:
    """A new leader is given every object once more."""
    waiting = WaitingClaims(lambda one: True)
    waiting.update(None, claim(1))
    waiting.update(None, claim(1))
    waiting.update(claim(1), None)
    assert waiting.offer(server(1)) is None


def test_the_namespace_decides_where_a_claim_tolerates_data_that_was_not_erased() -> None:
    """Claims of two namespaces with the same tolerations need different servers, and are not one group."""
    left = "metal.ironcore.dev/data-not-erased"
    waiting = WaitingClaims(lambda one: True)
    spec = ServerClaimSpec(tolerations=(Toleration(key=left, operator="Exists"),))
    for number, namespace in enumerate(("team-a", "team-b")):
        meta = ObjectMeta(name="c", namespace=namespace, uid=namespace, creation_timestamp=START)
        waiting.update(None, ServerClaim(metadata=meta, spec=spec))
        assert len(waiting) == number + 1
    tainted = msgspec.structs.replace(server(1), spec=ServerSpec(taints=(Taint(key=left, value="team-b"),)))
    assert waiting.offer(tainted) == Key("c", "team-b")
