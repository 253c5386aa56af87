"""Files that are parsed again when they change."""

from pathlib import Path

import pytest

from metal.boot.registry.watched_file import FileInvalid, WatchedFile


def number(raw: bytes) -> int:
    try:
        return int(raw)
    except ValueError:
        raise ValueError("is no number") from None


def test_a_changed_file_is_parsed_again_and_a_broken_one_is_not_used(tmp_path: Path) -> None:
    """The last content that could be used stays in use, and the problem names the file."""
    path = tmp_path / "f"
    path.write_text("1")
    file = WatchedFile(path, number)
    assert (file.value(), file.problem) == (1, "")
    path.write_text("many")
    assert (file.value(), file.problem) == (1, f"{path} is no number")
    path.unlink()
    assert (file.value(), file.problem) == (1, f"{path} cannot be read (No such file or directory)")
    path.write_text("22")
    assert (file.value(), file.problem) == (22, "")


def test_a_file_is_parsed_once_for_each_change(tmp_path: Path) -> None:
    """A mounted Secret is replaced as a whole, so that the inode changes."""
    path, parsed = tmp_path / "f", list[bytes]()

    def parse(raw: bytes) -> int:
        parsed.append(raw)
        return len(parsed)

    path.write_text("1")
    file = WatchedFile(path, parse)
    assert [file.value(), file.value()] == [1, 1]
    (tmp_path / "g").write_text("2")
    (tmp_path / "g").rename(path)
    assert [file.value(), file.value()] == [2, 2]


@pytest.mark.parametrize("content", ["x", "1" * (1 << 20) + "1"])
def test_without_any_usable_content_there_is_an_error(tmp_path: Path, content: str) -> None:
    """A file that was never usable, also one that is too large."""
    path = tmp_path / "f"
    path.write_text(content)
    with pytest.raises(FileInvalid, match=r"f (is no number|is larger than 1 MiB)"):
        WatchedFile(path, number).value()
