"""A disk that fails at each step of a transaction: what is answered is what a restart finds."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.journal import JournalError
from metal.apiserver.storage.sqlite import SqliteJournal
from tests.apiserver.widgets import Api, running, widget


class Disk:
    """Fails statements of SQLite before or after they take effect; each fault happens once unless it is kept."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        self.broken: set[str] = set()

    def connect(self, *args: Any, **options: Any) -> sqlite3.Connection:
        """A connection with these faults."""
        disk = self

        class Faulty(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if sql in disk.before or sql in disk.broken:
                    disk.before = [other for other in disk.before if other != sql]
                    raise sqlite3.OperationalError("disk I/O error")
                cursor = super().execute(sql, *parameters)
                if sql in disk.after:
                    disk.after.remove(sql)
                    raise sqlite3.OperationalError("disk I/O error")
                return cursor

        return sqlite3.connect(*args, factory=Faulty, **options)


async def tried(api: Api) -> dict[str, bool]:
    """Delete `old` and create `new`, one after the other; whether each was acknowledged."""
    told = {}
    for what, request in (("deleted", api.delete("old")), ("created", api.create(widget("new")))):
        try:
            await request
            told[what] = True
        except StatusError:
            told[what] = False
    return told


FAULTS: dict[str, Callable[[Disk], None]] = {
    "none": lambda disk: None,
    "begin": lambda disk: disk.before.append("BEGIN IMMEDIATE"),
    "commit without effect": lambda disk: disk.before.append("COMMIT"),
    "commit with effect": lambda disk: disk.after.append("COMMIT"),
    "vacuum": lambda disk: disk.broken.add("PRAGMA freelist_count"),
    "commit and rollback": lambda disk: disk.before.extend(("COMMIT", "ROLLBACK")),
}


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "A restart finds each write that was acknowledged and none that was refused, also when the disk fails at a commit.",
)
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_was_answered_is_what_a_restart_finds(tmp_path: Path, fault: str) -> None:
    """For a fault at each step: a committed write is acknowledged and visible, a refused one is in neither place."""
    disk = Disk()
    async with running(SqliteJournal(tmp_path / "state.db", connect=disk.connect)) as api:
        await api.create(widget("old"))
        FAULTS[fault](disk)
        told = await tried(api)
        expected = ([] if told["deleted"] else ["old"]) + (["new"] if told["created"] else [])
        assert await api.names() == sorted(expected)
        version = api.backend.store.version
    async with running(SqliteJournal(tmp_path / "state.db"), crds=False) as api:
        assert await api.names() == sorted(expected)
        assert api.backend.store.version == version
    assert told["deleted"] == (fault in ("none", "commit with effect", "vacuum"))


@pytest.mark.behaviour(
    "Embedded API and assembly", "After a write to the disk has failed, none is acknowledged until one has succeeded."
)
async def test_after_a_failure_the_file_is_written_before_anything_is_acknowledged(tmp_path: Path) -> None:
    """What a failed transaction left is overwritten by one that changes nothing; until that succeeds, writes fail."""
    disk = Disk()
    journal = SqliteJournal(tmp_path / "state.db", connect=disk.connect)
    async with running(journal) as api:
        await journal.check()
        disk.broken |= {"COMMIT"}
        for _ in range(2):
            with pytest.raises(StatusError, match="disk I/O error"):
                await api.create(widget("lost"))
            with pytest.raises(JournalError, match=r"state.db: disk I/O error"):
                await journal.check()
        disk.broken.clear()
        before = journal.transactions
        await api.create(widget("kept"))
        assert journal.transactions == before + 1
        assert await api.names() == ["kept"]
        await journal.check()


async def test_a_file_that_has_a_refused_write_is_not_written(tmp_path: Path) -> None:
    """When it cannot even be read whether a commit took effect, nothing is acknowledged until a restart loads it."""
    disk = Disk()
    journal = SqliteJournal(tmp_path / "state.db", connect=disk.connect)
    async with running(journal) as api:
        disk.after.append("COMMIT")
        disk.broken |= {"SELECT version FROM newest"}
        with pytest.raises(StatusError, match="disk I/O error"):
            await api.create(widget("doubtful"))
        disk.broken.clear()
        for _ in range(2):
            with pytest.raises(StatusError, match="answered with an error; restart to load it"):
                await api.create(widget("next"))
        assert await api.names() == []
    async with running(SqliteJournal(tmp_path / "state.db"), crds=False) as api:
        assert await api.names() == ["doubtful"]
