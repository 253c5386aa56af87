"""Reloading the MAC prefix file."""

import asyncio
import os
from pathlib import Path

import pytest

from metal.controllers.endpoint.mac_prefixes import PrefixError, parse
from metal.controllers.endpoint.prefix_file import PrefixFile

GOOD = "macPrefixes: [{macPrefix: 23, defaultCredentials: [{username: a, password: b}]}]"
BETTER = "macPrefixes: [{macPrefix: 24, defaultCredentials: [{username: a, password: b}]}]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "prefixes.yaml"
    path.write_text(GOOD)
    return path


def replace(path: Path, text: str) -> None:
    """Replace the file by rename, as editors and ConfigMap mounts do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


def knows(file: PrefixFile, digits: str) -> bool:
    return file.prefixes.lookup(digits.ljust(12, "0")) is not None


def test_a_changed_file_is_read_again(path: Path) -> None:
    """A replaced file is read at the next poll, an unchanged one is not."""
    file = PrefixFile(path)
    assert knows(file, "23")
    assert not file.poll()
    replace(path, BETTER)
    assert file.poll()
    assert knows(file, "24")
    assert not knows(file, "23")
    assert not file.poll()


def test_a_file_of_the_same_length_and_time_is_told_by_its_inode(path: Path) -> None:
    """Two files can have the same size and modification time; a replaced file has another inode."""
    file = PrefixFile(path)
    before = path.stat()
    kept = path.with_suffix(".kept")
    path.rename(kept)
    path.write_text(BETTER)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert file.poll()
    assert knows(file, "24")


@pytest.mark.parametrize("broken", ["macPrefixes: 3", "", None, b"\xff\xfe"], ids=["bad", "empty", "gone", "binary"])
def test_a_broken_file_keeps_the_last_good_one(path: Path, broken: str | bytes | None) -> None:
    """The problem is a sentence; an empty file is valid and has no entries."""
    file = PrefixFile(path)
    path.unlink()
    if isinstance(broken, str):
        path.write_text(broken)
    elif broken is not None:
        path.write_bytes(broken)
    assert file.poll()
    assert knows(file, "23") == (broken != "")
    assert bool(file.problem) == (broken != "")
    replace(path, GOOD)
    assert file.poll()
    assert file.problem == ""


def test_the_first_read_must_work(tmp_path: Path) -> None:
    """At the start there are no earlier entries: a missing file is an error with its name."""
    with pytest.raises(PrefixError, match=r"prefixes\.yaml: cannot be read"):
        PrefixFile(tmp_path / "prefixes.yaml")


def test_a_huge_file_is_refused(path: Path) -> None:
    """A wrong path does not fill the memory."""
    path.write_text("#" * (5 << 20))
    with pytest.raises(PrefixError, match="larger than 4 MiB"):
        PrefixFile(path)


def test_without_a_path_nothing_is_known() -> None:
    """Without a file the database is empty and never changes."""
    file = PrefixFile()
    assert not file.poll()
    assert file.changed_at is None
    assert len(file.prefixes) == 0


@pytest.mark.looptime
async def test_polling_tells_listeners(path: Path) -> None:
    """Listeners are called after each reload, successful or not, within one interval."""
    file = PrefixFile(path)
    heard: list[str] = []
    file.on_change(lambda: heard.append(file.problem))
    task = asyncio.create_task(file.run(interval=5.0))
    await asyncio.sleep(20)
    replace(path, "macPrefixes: 3")
    await asyncio.sleep(5)
    replace(path, BETTER)
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(heard) == 2
    assert "must be a list" in heard[0]
    assert heard[1] == ""


def test_extra_entries_stand_beside_the_files_which_win(path: Path) -> None:
    """A simulated fleet's entry is added to the file's entries, also after a reload, and never replaces one."""
    extra = parse(
        "macPrefixes: [{macPrefix: 02b3c0, defaultCredentials: [{username: s, password: s}]},"
        " {macPrefix: 23, manufacturer: Wrong, defaultCredentials: [{username: s, password: s}]}]"
    )
    file = PrefixFile(path, extra=extra)
    assert knows(file, "02b3c0")
    found = file.prefixes.lookup("23".ljust(12, "0"))
    assert found is not None
    assert found.manufacturer == ""
    replace(path, BETTER)
    assert file.poll()
    assert knows(file, "02b3c0")
    assert knows(file, "24")
