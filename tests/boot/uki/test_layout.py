"""Content of bytes and parts of files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.uki.layout import FilePart, Layout, Part, padded, whole

FILE = bytes(range(256)) * 4


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "file"
    path.write_bytes(FILE)
    return path


@given(data=st.data())
def test_a_cut_has_the_bytes_of_its_range(file: Path, data: st.DataObject) -> None:
    """Also across parts, and when it is empty."""
    layout = Layout(tuple(data.draw(st.lists(st.one_of(st.binary(max_size=40), _file_parts(file)), max_size=5))))
    content = layout.read()
    offset = data.draw(st.integers(0, layout.size))
    length = data.draw(st.integers(0, layout.size - offset))

    cut = layout.cut(offset, length)

    assert (layout.size, cut.size) == (len(content), length)
    assert cut.read() == content[offset : offset + length]


@given(data=st.data())
def test_replaced_bytes_change_nothing_else(file: Path, data: st.DataObject) -> None:
    """The size stays the same."""
    layout = Layout(tuple(data.draw(st.lists(st.one_of(st.binary(max_size=40), _file_parts(file)), max_size=5))))
    offset = data.draw(st.integers(0, layout.size))
    new = data.draw(st.binary(max_size=layout.size - offset))
    expected = bytearray(layout.read())
    expected[offset : offset + len(new)] = new

    assert layout.replaced(offset, new).read() == expected


def _file_parts(file: Path) -> st.SearchStrategy[Part]:
    places = st.tuples(st.integers(0, len(FILE)), st.integers(0, 300))
    return places.map(lambda place: FilePart(file, place[0], min(place[1], len(FILE) - place[0])))


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (0, 11), (11, 0), (10, 1)])
def test_a_range_outside_of_the_content_is_refused(offset: int, length: int) -> None:
    """The caller has compared it with the size before."""
    with pytest.raises(ValueError, match="bytes from"):
        Layout((b"0123456789",)).cut(offset, length)


def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    """No fewer bytes than announced are sent as if they were all."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    layout = whole(path)
    path.write_bytes(b"x" * 99)
    with pytest.raises(OSError, match="shorter"):
        layout.read()


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 8), (8, 8), (9, 16)])
def test_padding_reaches_the_alignment(size: int, expected: int) -> None:
    """Content that is aligned already stays as it is."""
    assert padded(Layout((b"x" * size,)), 8).read() == (b"x" * size).ljust(expected, b"\0")


def test_the_repr_shows_no_content() -> None:
    """The command line of a UKI has a token."""
    assert repr(Layout((b"token", b"more"))) == "<Layout parts=2 size=9>"
