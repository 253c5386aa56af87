"""The SQLite journal: nothing acknowledged is lost, and what is not ours is refused in words."""

import asyncio
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from metal.apiserver.storage.journal import Change, JournalError
from metal.apiserver.storage.sqlite import APPLICATION_ID, FORMAT, TRIM_BYTES, SqliteJournal
from tests.apiserver.widgets import running, seen, widget


def change(name: str, version: int, body: bytes | None = b"{}") -> Change:
    """A write."""
    return Change("g", "things", "", name, version, body)


async def appended(journal: SqliteJournal, *changes: Change) -> None:
    """Append all and wait for the disk; raises what went wrong."""
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in changes]
    for one, future in zip(changes, done, strict=True):

        def settle(error: BaseException | None, future: asyncio.Future[None] = future) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        journal.append(settle, one)
    results = await asyncio.gather(*done, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def limit_pages(journal: SqliteJournal, pages: int) -> None:
    """Make the disk full, or free again, at so many pages."""

    def limit() -> None:
        assert journal._db is not None
        journal._db.execute(f"PRAGMA max_page_count = {pages}")

    await asyncio.get_running_loop().run_in_executor(journal._thread, limit)


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    """Creations, updates and removals are read back, with the newest version even if its object was removed."""
    journal = SqliteJournal(tmp_path / "state.db")
    assert (await journal.open()).resource_version == 0
    await appended(journal, change("a", 1), change("b", 2), change("a", 3, b"[3]"), change("b", 4, None))
    await journal.close()
    again = SqliteJournal(tmp_path / "state.db")
    loaded = await again.open()
    await again.close()
    assert loaded.resource_version == 4
    assert list(loaded.objects) == [change("a", 3, b"[3]")]


async def test_the_file_is_private(tmp_path: Path) -> None:
    """Secrets are in it: mode 0600 for the file and for its write-ahead log."""
    journal = SqliteJournal(tmp_path / "state.db")
    await journal.open()
    await appended(journal, change("a", 1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in _files(tmp_path)}
    await journal.close()
    assert modes == {0o600}


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_writes_that_wait_together_share_a_transaction(tmp_path: Path) -> None:
    """2,000 concurrent writes take a handful of fsyncs, in the order in which they were made."""
    journal = SqliteJournal(tmp_path / "state.db")
    await journal.open()
    order: list[int] = []
    finished = asyncio.get_running_loop().create_future()
    for version in range(1, 2001):

        def settle(error: BaseException | None, version: int = version) -> None:
            assert error is None
            order.append(version)
            if version == 2000:
                finished.set_result(None)

        journal.append(settle, change(f"n{version}", version))
    await asyncio.wait_for(finished, 10)
    assert order == list(range(1, 2001))
    assert journal.transactions <= 5
    await journal.close()


async def test_closing_finishes_what_was_begun(tmp_path: Path) -> None:
    """A write that was appended before close is on the disk after it."""
    journal = SqliteJournal(tmp_path / "state.db")
    await journal.open()
    told: list[BaseException | None] = []
    journal.append(told.append, change("a", 1))
    await journal.close()
    assert told == [None]


async def test_a_full_disk_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    """When the database cannot grow, waiting writes fail with a sentence; once it can, writes work again."""
    journal = SqliteJournal(tmp_path / "state.db")
    await journal.open()
    await appended(journal, change("a", 1))
    await limit_pages(journal, 1)
    with pytest.raises(JournalError, match=r"state.db: .*full.*; check free space"):
        await appended(journal, change("b", 2, b"x" * 100_000), change("c", 3))
    await limit_pages(journal, 1_000_000)
    await appended(journal, change("d", 2))
    await journal.close()
    again = SqliteJournal(tmp_path / "state.db")
    assert [c.name for c in (await again.open()).objects] == ["a", "d"]
    await again.close()


async def test_one_file_has_one_owner(tmp_path: Path) -> None:
    """A second process on the same data folder is refused."""
    journal = SqliteJournal(tmp_path / "state.db")
    await journal.open()
    await appended(journal, change("a", 1))
    with pytest.raises(JournalError, match="in use by another process"):
        await SqliteJournal(tmp_path / "state.db").open()
    await journal.close()


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.executescript(f"CREATE TABLE o (x); PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99;")
    db.close()


def _garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(10_000))


def _torn(path: Path) -> None:
    asyncio.run(_filled(path))
    content = bytearray(path.read_bytes())
    content[4096 : len(content)] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)


async def _filled(path: Path) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    await appended(journal, *(change(f"n{i}", i, b"x" * 3000) for i in range(1, 50)))
    await journal.close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_foreign, "database of another program; name another data folder"),
        (_newer, r"newer version of this program \(format 99, known up to 2\)"),
        (_garbage, "damaged"),
        (_torn, "damaged"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_words(
    tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    """Foreign, newer, overwritten and torn files are named, left alone, and it is said what to do."""
    path = tmp_path / "state.db"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=sentence):
        asyncio.run(_opened_and_closed(path))
    assert path.read_bytes() == before


async def test_a_file_of_the_former_format_is_opened_and_marked(tmp_path: Path) -> None:
    """Format 1 is read whole; afterwards the file is of this format, which the former version refuses."""
    path = tmp_path / "state.db"
    await _filled(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")
    journal = SqliteJournal(path)
    loaded = await journal.open()
    await journal.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,) != (1,)
    assert len(loaded.objects) == 49


async def _opened_and_closed(path: Path) -> None:
    """Cleans up on any exit, as a process does."""
    journal = SqliteJournal(path)
    try:
        await journal.open()
    finally:
        await journal.close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The error names the path."""
    with pytest.raises(JournalError, match=r"missing/state.db: cannot be opened"):
        asyncio.run(SqliteJournal(tmp_path / "missing" / "state.db").open())


async def test_a_restarted_api_is_as_it_was(tmp_path: Path) -> None:
    """Objects, CRDs, owners and versions survive; a watch from before the restart is told to list again."""
    path = tmp_path / "state.db"
    async with running(SqliteJournal(path)) as api:
        root = await api.create(widget("root"))
        child = widget("child")
        child["metadata"]["ownerReferences"] = [
            {"apiVersion": "example.org/v1", "kind": "Widget", "name": "root", "uid": root["metadata"]["uid"]}
        ]
        await api.create(child)
        version = api.backend.store.version
        await api.patch("root", {"spec": {"size": 2}})
    async with running(SqliteJournal(path), crds=False) as api:
        assert await api.names() == ["child", "root"]
        assert api.backend.store.version == version + 1
        with pytest.raises(Exception, match="too old resource version"):
            await anext(api.watch(resource_version=str(version)))
        items = api.watch(resource_version=str(version + 1))
        await api.delete("root")
        async with asyncio.timeout(5):
            assert [seen(await anext(items)) for _ in range(2)] == [("DELETED", "root"), ("DELETED", "child")]


_WRITER = """
import asyncio, sys
from pathlib import Path
from metal.apiserver.storage.sqlite import SqliteJournal
from tests.apiserver.widgets import running, widget

async def main():
    async with running(SqliteJournal(Path(sys.argv[1]))) as api:
        async def write(lane):
            for number in range(10_000):
                await api.create(widget(f"w-{lane}-{number}"))
                print(f"w-{lane}-{number}", flush=True)
        await asyncio.gather(*(write(lane) for lane in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [40, 400])
def test_an_acknowledged_write_survives_kill_9(tmp_path: Path, after: int) -> None:
    """A process killed in the middle of a flood of writes has lost none of those that it had answered."""
    path = tmp_path / "state.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert writer.stdout is not None
    answered = [writer.stdout.readline().strip() for _ in range(after)]
    writer.send_signal(signal.SIGKILL)
    answered += [line.strip() for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    writer.stdout.close()
    writer.wait()
    assert len(answered) >= after
    assert set(answered) <= set(asyncio.run(_names(path)))


async def _names(path: Path) -> list[str]:
    async with running(SqliteJournal(path), crds=False) as api:
        return await api.names()


async def test_space_of_removed_objects_goes_back_to_the_disk(tmp_path: Path) -> None:
    """A flood of objects that are removed again leaves a small file behind, after some more removals."""
    path = tmp_path / "state.db"
    journal = SqliteJournal(path)
    await journal.open()
    many = [change(f"n{i}", i, b"x" * 40_000) for i in range(1, 1001)]
    await appended(journal, *many)
    await checkpoint(journal)
    full = path.stat().st_size
    for begin in range(0, 1000, 50):
        await appended(journal, *(change(c.name, 1001 + c.resource_version, None) for c in many[begin : begin + 50]))
    await checkpoint(journal)
    left = path.stat().st_size
    await journal.close()
    assert full > 40_000_000
    assert left < TRIM_BYTES + 5_000_000


async def checkpoint(journal: SqliteJournal) -> None:
    """Move the write-ahead log into the file."""

    def move() -> None:
        assert journal._db is not None
        journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    await asyncio.get_running_loop().run_in_executor(journal._thread, move)


TMPFS = """
mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" "$3" "$1"
"""


@pytest.mark.needs("unshare")
async def test_a_disk_that_is_really_full_refuses_writes_and_corrupts_nothing(tmp_path: Path) -> None:
    """On a tmpfs of 3 MB what does not fit gets 503 and a sentence; with room made writes go on; nothing is lost."""
    child = Path(__file__).with_name("fulldisk.py")
    (tmp_path / "small").mkdir()
    process = await asyncio.create_subprocess_exec(
        "unshare", "--mount", "--map-root-user", "sh", "-c", TMPFS, "sh", str(tmp_path / "small"), sys.executable,
        str(child), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 50)
    if b"unshare: " in out and os.environ.get("METAL_REQUIRE") != "all":
        pytest.skip("this machine lets nobody mount a tmpfs of his own")
    assert process.returncode == 0, out.decode()
