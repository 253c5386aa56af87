"""Ranges of composed content, without sockets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.uki.layout import Layout
from metal.machineapi.http.ranges import ranged
from metal.machineapi.http.response import Content, Response

WHOLE = bytes(range(200))
CONTENT = Content(Layout((WHOLE[:70], WHOLE[70:71], WHOLE[71:])))


def ask(**headers: str) -> Response:
    return ranged(CONTENT, "t", {name.replace("_", "-"): value for name, value in headers.items()}, "application/efi")


def body(answer: Response) -> bytes:
    assert answer.content is not None
    return answer.content.layout.read()


@given(first=st.integers(0, 199), more=st.integers(0, 300))
def test_a_range_has_its_bytes_and_says_which(first: int, more: int) -> None:
    """Also one that ends behind the content."""
    answer = ask(Range=f"bytes={first}-{first + more}")
    assert (answer.status, body(answer)) == (206, WHOLE[first : first + more + 1])
    assert answer.headers["Content-Range"] == f"bytes {first}-{min(first + more, 199)}/200"


@given(length=st.integers(1, 300))
def test_the_last_bytes_can_be_requested(length: int) -> None:
    """More than there are is everything."""
    answer = ask(Range=f"bytes=-{length}")
    assert (answer.status, body(answer)) == (206, WHOLE[-length:])


@pytest.mark.parametrize("header", ["", "bytes=", "bytes=5-3", "bytes=1-2,4-5", "lines=1-2"])
def test_a_header_that_is_not_one_range_is_ignored(header: str) -> None:
    """The whole content, with the type that firmware wants."""
    answer = ask(Range=header)
    assert (answer.status, body(answer), answer.content_type) == (200, WHOLE, "application/efi")
    assert answer.headers == {"ETag": '"t"', "Accept-Ranges": "bytes"}


def test_a_range_behind_the_content_is_416() -> None:
    """With the size."""
    answer = ask(Range="bytes=200-")
    assert (answer.status, answer.content, answer.headers["Content-Range"]) == (416, None, "bytes */200")
