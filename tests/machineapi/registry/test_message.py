"""Requests to the registry: what is decoded before the token is verified, and what only after it."""

import json

import pytest

from metal.machine.boot_window import Refused
from metal.machineapi.registry import message
from metal.machineapi.registry.limits import Limits, Malformed

UUID = "00000000-0000-0000-0000-00000000000a"


def body(**more: object) -> bytes:
    return json.dumps({"systemUUID": UUID, **more}).encode()


def test_the_header_counts_before_the_body() -> None:
    """Without the scheme Bearer, the token in the body is used."""
    assert message.parse("bearer  one ", body(token="two")).token == "one"
    assert message.parse("Basic one", body(token=" two ")).token == "two"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "JSON"), (b"[]", "JSON"), (b"\xff", "JSON"), (b"{}", "systemUUID"), (b'{"systemUUID":7}', "systemUUID"),
        (b'{"systemUUID":"x","data":' + b"[" * 1_000_000, "JSON"),
        (b'{"systemUUID":"x","token":[]}', "JSON"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(raw: bytes, says: str) -> None:
    """The message says what is expected, and quotes nothing."""
    with pytest.raises(Malformed, match=says):
        message.parse("Bearer t", raw)


@pytest.mark.parametrize(("authorization", "token"), [("", None), ("", " "), ("Bearer ", "t"), ("Basic t", None)])
def test_a_request_needs_a_token(authorization: str, token: str | None) -> None:
    """Nothing else is decoded without one."""
    with pytest.raises(Refused) as refused:
        message.parse(authorization, body(token=token))
    assert refused.value.reason == "TokenMissing"


def test_a_report_is_read_only_when_it_is_asked_for() -> None:
    """A client without a token cannot make the process decode hundreds of thousands of values."""
    hostile = message.parse("Bearer t", body(data={"a": [0] * 5000}))
    with pytest.raises(Malformed, match="4096 entries"):
        hostile.report(Limits())
    with pytest.raises(Malformed, match="data must be an object"):
        message.parse("Bearer t", body()).report(Limits())


def test_a_report_is_kept_in_compact_and_stable_form() -> None:
    """The order of members makes no difference."""
    one, two = body(data={"b": 1, "a": [2]}), body(data={"a": [2], "b": 1})
    assert {message.parse("Bearer t", raw).report(Limits()) for raw in (one, two)} == {b'{"a":[2],"b":1}'}


def test_a_message_tells_neither_token_nor_report() -> None:
    """Its repr may be logged."""
    assert "hunter" not in repr(message.parse("Bearer hunter2", body(data={"p": "hunter3"})))
