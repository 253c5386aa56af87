"""Sending a report: the request, and the meaning of each response."""

import socket
from collections.abc import Iterator

import pytest

from metal.probe.registry import Malformed, NotAccepted, Refused, Registry
from tests.probe.loopback import serve

UUID = "38947555-7742-3448-3784-823347823834"


@pytest.mark.behaviour("Registry and probe", "The probe sends its report to `/register` with the token of its boot.")
def test_a_report_goes_to_register_with_the_token() -> None:
    """The body has the system UUID beside the data; a path in the URL is kept."""
    with serve(201) as peer:
        Registry(peer.url + "/behind/", UUID, "tok").register({"cpu": []})

    assert peer.paths == ["/behind/register"]
    assert peer.tokens == ["Bearer tok"]
    assert peer.bodies == [{"systemUUID": UUID, "data": {"cpu": []}}]


def test_an_erasure_is_told_beside_it() -> None:
    """The same body and token, at a path of its own."""
    with serve(200) as peer:
        Registry(peer.url, UUID, "tok").sanitized({"done": False})

    assert peer.paths == ["/sanitization"]
    assert peer.tokens == ["Bearer tok"]
    assert peer.bodies == [{"systemUUID": UUID, "data": {"done": False}}]


@pytest.mark.parametrize("status", [401, 403, 410])
def test_a_refused_token_is_final(status: int) -> None:
    """The message has the status, and never the token."""
    with serve(status) as peer, pytest.raises(Refused, match=str(status)) as raised:
        Registry(peer.url, UUID, "s3cret-token").register({})

    assert "s3cret-token" not in str(raised.value)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_report_that_cannot_be_taken_is_final_and_says_why(status: int) -> None:
    """The registry's own message is passed on."""
    with serve(status) as peer, pytest.raises(Malformed, match="said the registry"):
        Registry(peer.url, UUID, "tok").register({})


@pytest.mark.parametrize("status", [302, 307, 404, 429, 500, 503])
def test_everything_else_may_be_better_later(status: int) -> None:
    """A redirect is not followed: the token is for this registry only."""
    with serve(status, headers={"Retry-After": "7", "Location": "http://127.0.0.1:1/elsewhere"}) as peer:
        with pytest.raises(NotAccepted, match=str(status)) as raised:
            Registry(peer.url, UUID, "tok").register({})

        assert len(peer.paths) == 1
    assert raised.value.retry_after == 7


def test_a_retry_after_that_is_a_date_is_ignored() -> None:
    """Only seconds are supported; a machine's clock may be years off."""
    with (
        serve(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) as peer,
        pytest.raises(NotAccepted) as raised,
    ):
        Registry(peer.url, UUID, "tok").register({})

    assert raised.value.retry_after == 0


@pytest.fixture
def closed_port() -> int:
    """A port of the loopback interface without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_nobody_there_may_be_better_later(closed_port: int) -> None:
    """The message has the reason of the refused connection."""
    with pytest.raises(NotAccepted, match="cannot be reached"):
        Registry(f"http://127.0.0.1:{closed_port}", UUID, "tok").register({})


def test_a_registry_that_hangs_is_given_up_in_time(silent_port: int) -> None:
    """The time-out ends the request."""
    with pytest.raises(NotAccepted, match="timed out"):
        Registry(f"http://127.0.0.1:{silent_port}", UUID, "tok", timeout=0.05).register({})


@pytest.mark.parametrize(
    ("url", "token", "named"),
    [
        ("ftp://registry", "tok", "--registry-url"),
        ("registry:10000", "tok", "--registry-url"),
        ("http://", "tok", "--registry-url"),
        ("http://registry", "", "--token"),
        ("http://registry", "a b", "--token"),
        ("http://registry", "a\r\nX-Evil: 1", "--token"),
        ("http://registry", "tökén", "--token"),
    ],
)
def test_options_that_cannot_work_are_named(url: str, token: str, named: str) -> None:
    """A token is never shown, a URL is."""
    with pytest.raises(ValueError, match=named) as raised:
        Registry(url, UUID, token)

    assert not token or token not in str(raised.value).replace("--token", "")
