"""Error bodies become sentences."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.redfish import BMCError, Response
from metal.redfish.messages import LONGEST, error_for, failed_inside, message_ids, parse, sentence
from tests.redfish.fakes import complaint

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "@Message.ExtendedInfo", "Message", "MessageId", "message", "Severity", "x"]),
            inner,
        )
    ),
    max_leaves=12,
)


def test_specific_messages_win_over_general_ones() -> None:
    """`A general error has occurred` has no information."""
    body = complaint("The value 'Pxx' is not in the list")
    body["error"]["@Message.ExtendedInfo"].append({"MessageId": "Base.1.8.GeneralError", "Message": "A general error"})
    assert sentence(body) == "The value 'Pxx' is not in the list."


def test_several_messages_are_all_said_once() -> None:
    """In order, without repetitions."""
    infos = [{"Message": "One."}, {"Message": "Two"}, {"Message": "One."}]
    assert sentence({"error": {"@Message.ExtendedInfo": infos}}) == "One. Two."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "plain"}}, "plain."),
        ({"error": {"@Message.ExtendedInfo": {"Message": "no list"}}}, "no list."),
        ({"@Message.ExtendedInfo": [{"Message": "flat!"}]}, "flat!"),
        ({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.0.Foo"}]}}, "Base.1.0.Foo."),
        ({"error": {"@Message.ExtendedInfo": [{"MessageId": "X.GeneralError", "Message": "hm"}]}}, "hm."),
        ({"error": {"message": "two\r\nlines\x1b[31m"}}, "two lines [31m."),
        ({"error": "text"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_every_known_shape_gives_its_words(body: object, words: str) -> None:
    """The standard's shape, and deviations of BMCs."""
    assert sentence(body) == words


@given(JSON)
def test_any_body_gives_one_short_printable_line(body: Any) -> None:
    """Any body fits into a condition."""
    words = sentence(body)
    assert len(words) <= LONGEST
    assert words.isprintable()
    assert isinstance(failed_inside(body), bool)
    assert all(isinstance(identity, str) for identity in message_ids(body))


@given(st.integers(300, 999), st.binary(max_size=64) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_failure_is_one_of_our_errors(status: int, body: bytes) -> None:
    """The message begins with the request and the status."""
    error = error_for(Response(status, {}, body), "GET /x on bmc")
    assert isinstance(error, BMCError)
    assert str(error).startswith(f"GET /x on bmc was answered {status}")


@given(st.binary(max_size=200))
def test_parsing_never_raises(body: bytes) -> None:
    """The result is JSON or None."""
    parse(body)
