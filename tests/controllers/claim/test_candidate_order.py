"""The order in which claims consider servers."""

from hypothesis import given
from hypothesis import strategies as st

from metal.api.claim import ServerClaim
from metal.api.meta import ObjectMeta
from metal.api.server import Server
from metal.controllers.claim.candidate_order import CandidateOrder
from metal.controllers.claim.matching import choose

NAMES = st.lists(st.text("abcd", min_size=1, max_size=3), max_size=12)


def _server(name: str) -> Server:
    return Server(metadata=ObjectMeta(name=name))


def _claim(uid: str) -> ServerClaim:
    return ServerClaim(metadata=ObjectMeta(name="c", uid=uid))


def _ring(names: list[str]) -> CandidateOrder:
    ring = CandidateOrder()
    for name in names:
        ring.update(None, _server(name))
    return ring


@given(NAMES, NAMES, st.text(max_size=5))
def test_a_claim_sees_every_server_once(come: list[str], gone: list[str], uid: str) -> None:
    """After any additions and removals each server is considered exactly once."""
    ring = _ring(come)
    for name in gone:
        ring.update(_server(name), None)
    names = list(ring.names(_claim(uid)))
    assert sorted(names) == sorted(set(come) - set(gone))
    assert len(ring) == len(names)


@given(NAMES, st.randoms(use_true_random=False), st.text(max_size=5))
def test_the_order_does_not_depend_on_who_came_first(names: list[str], rng: object, uid: str) -> None:
    """Two managers consider the same servers in the same order."""
    shuffled = list(names)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random, which hypothesis types as object
    claim = _claim(uid)
    assert list(_ring(names).names(claim)) == list(_ring(shuffled).names(claim))


def test_a_change_of_a_server_leaves_its_place() -> None:
    """Only additions and removals change the order."""
    ring = _ring(["a", "b"])
    before = list(ring.names(_claim("u")))
    ring.update(_server("a"), _server("a"))
    assert list(ring.names(_claim("u"))) == before


def test_claims_begin_at_different_servers() -> None:
    """A hundred claims over a thousand servers seldom compete for one."""
    ring = _ring([f"s{n}" for n in range(1000)])
    assert len({next(ring.names(_claim(f"u{n}"))) for n in range(100)}) > 80


def test_a_search_ends_at_the_first_server_that_fits() -> None:
    """With a thousand free servers a claim considers one of them."""
    looked = []

    def servers() -> object:
        for name in ("a", "b", "c"):
            looked.append(name)
            yield _free(name)

    verdict = choose(_claim("u"), servers())  # type: ignore[arg-type]  # a generator of servers
    assert verdict.server is not None
    assert looked == ["a"]


def _free(name: str) -> Server:
    server = _server(name)
    return server.__class__(
        metadata=server.metadata, status=server.status.__class__(state="Available", power_state="Off")
    )
