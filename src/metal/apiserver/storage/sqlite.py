"""The journal in one SQLite file: WAL, synchronous=FULL, one fsync for all writes that wait at the same time.

`append` queues changes; one thread takes everything that is queued, up to a limit, commits it as one transaction and
calls `done` of each append in the loop's thread. So a single write costs one fsync, and many concurrent writes share
one. When a commit fails, everything that is queued fails with it, because later changes build on the lost ones.

An append fails exactly when its changes are not in the file. After an error the file decides: `newest` has the version
of the last transaction that took effect. A transaction that did not may have left frames in the write-ahead log that a
restart would find (the disk failed after the last of them was written); another transaction that changes nothing
overwrites them, and none is acknowledged before that one succeeded. What follows a commit, such as the return of unused
pages to the disk, concerns no append: its failure is logged.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from metal.apiserver.storage.journal import Change, Done, JournalError, Loaded

T = TypeVar("T")

log = structlog.get_logger("metal.apiserver")

APPLICATION_ID = 0x4D455441
"""`META`, in the header of the file, which identifies our files among SQLite databases."""
FORMAT = 2
"""Increased when a former program must not open the file, as its CRDs would drop what this one records. A file of an
earlier format is read, and marked when it is opened."""
BATCH = 1_000
"""Maximum of appends in one transaction, so that under load the first does not wait for the last."""
STEP = 64
"""Appends that are settled before the event loop runs other tasks: each updates indexes and wakes watchers."""
TRIM_BYTES = 16 << 20
"""The file is vacuumed when more than this, and more than half of it, is unused."""
TRIM_PAGES = 2_000
"""Pages that are vacuumed at a time, so that no write waits long."""
WAL_BYTES = 64 << 20
"""Maximum size of the write-ahead log after a burst of writes."""

_TABLES = """
CREATE TABLE objects (
  grp TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  version INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (grp, plural, namespace, name)
);
CREATE TABLE newest (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
INSERT INTO newest VALUES (1, 0);
"""
_MARKS = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
_PUT = (
    "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (grp, plural, namespace, name) "
    "DO UPDATE SET version = excluded.version, body = excluded.body"
)
_VOID = "UPDATE newest SET version = version"
"""Changes nothing and writes a page all the same, which overwrites what a failed transaction left."""
_CUT = "DELETE FROM objects WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?"


class SqliteJournal:
    """Implements `journal.Journal`. A thread of its own does everything that may wait for the disk."""

    def __init__(self, path: Path, *, connect: Callable[..., sqlite3.Connection] = sqlite3.connect) -> None:
        self._path, self._connect = path, connect
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[tuple[Sequence[Change], Done]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._db: sqlite3.Connection | None = None
        self._reading: sqlite3.Connection | None = None
        self._remnant = self._closed = False
        self._durable = 0
        self.transactions = 0
        """Number of committed transactions."""

    def __repr__(self) -> str:
        return f"<SqliteJournal {self._path} waiting={len(self._waiting)}>"

    async def open(self) -> Loaded:
        """Open or create the file (mode 0600) and read it. Raises JournalError. Ends soon when it is cancelled."""
        try:
            return await self._run(self._open)
        except asyncio.CancelledError:
            if self._reading is not None:
                self._reading.interrupt()
            raise

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def append(self, done: Done, *changes: Change) -> None:
        """Make the changes durable with the next transaction, all or none, then call done."""
        self._waiting.append((changes, done))
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush(), name="journal-flush")

    async def check(self) -> None:
        """Commit a transaction that changes nothing. Raises JournalError."""
        try:
            await self._run(self._void)
        except (sqlite3.Error, JournalError) as error:
            raise describe(error, self._path) from error

    async def close(self) -> None:
        """Finish what was appended and release the file, if it could be opened."""
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        if not self._closed:
            self._closed = True
            await self._run(self._close)
            self._thread.shutdown(wait=False)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                changes = [change for appended, _ in batch for change in appended]
                try:
                    await self._run(partial(self._commit, changes))
                except Exception as error:
                    # Later changes build on the lost ones, so they are lost with them.
                    batch, self._waiting = batch + self._waiting, []
                    _fail(batch, describe(error, self._path))
                else:
                    await _settle(batch)
                    await self._trim(changes)
        finally:
            self._flusher = None

    def _open(self) -> Loaded:
        path = self._path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error.strerror}; check the data folder") from error
        try:
            db = self._reading = self._connect(path, isolation_level=None, check_same_thread=False, timeout=0)
            try:
                return self._prepare(db)
            except BaseException:
                db.close()
                raise
            finally:
                self._reading = None
        except sqlite3.Error as error:
            raise describe(error, path) from error

    def _prepare(self, db: sqlite3.Connection) -> Loaded:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        check_format(db, self._path)
        # SQLite accepts this for a file without tables only; older files keep their size and reuse their pages.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise JournalError(f"{self._path}: this file system cannot keep a write-ahead log; use a local disk")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        if not _number(db, "application_id"):
            create_tables(db)
        elif _number(db, "user_version") < FORMAT:
            db.execute(f"PRAGMA user_version = {FORMAT}")
        loaded = read_all(db)
        self._db, self._durable = db, loaded.resource_version
        return loaded

    def _commit(self, changes: Sequence[Change]) -> None:
        db = self._opened()
        if self._remnant:
            self._void()
        newest = changes[-1].resource_version
        try:
            db.execute("BEGIN IMMEDIATE")
            write_all(db, changes, newest)
            db.execute("COMMIT")
        except BaseException as error:
            if not self._took_effect(newest):
                raise
            log.warning("journal.commit_reported_a_failure", error=str(error), version=newest)
        self._durable = newest
        self.transactions += 1

    def _took_effect(self, newest: int) -> bool:
        """Whether the file has the transaction that raised; if not, what is left of it is overwritten."""
        db = self._opened()
        self._remnant = True
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if _newest(db) == newest:
                self._remnant = False
                return True
            self._void()
        except (sqlite3.Error, JournalError) as error:
            log.warning("journal.not_writable", error=str(error))
        return False

    def _void(self) -> None:
        """Commit a transaction that changes nothing. Raises JournalError when the file has what was refused."""
        db = self._opened()
        db.execute("BEGIN IMMEDIATE")
        try:
            if _newest(db) != self._durable:
                raise JournalError(f"{self._path}: has a write that was answered with an error; restart to load it")
            db.execute(_VOID)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._remnant = False

    async def _trim(self, changes: Sequence[Change]) -> None:
        if all(change.body is not None for change in changes):
            return
        try:
            await self._run(lambda: _trim(self._opened()))
        except (sqlite3.Error, JournalError) as error:
            log.warning("journal.space_not_returned", error=str(describe(error, self._path)))

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            raise JournalError(f"{self._path}: the journal is closed")
        return self._db

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


async def _settle(batch: Sequence[tuple[Sequence[Change], Done]]) -> None:
    for number, (_, done) in enumerate(batch):
        if number and number % STEP == 0:
            await asyncio.sleep(0)
        if (work := done(None)) is not None:
            await work


def _fail(batch: Sequence[tuple[Sequence[Change], Done]], error: BaseException) -> None:
    """Without an await: a write that is staged in between would build on what is lost."""
    for _, done in batch:
        done(error)


def _trim(db: sqlite3.Connection) -> None:
    """Return unused pages to the disk, a limited number at a time."""
    size = _number(db, "page_size")
    unused = _number(db, "freelist_count")
    if unused * size > TRIM_BYTES and unused * 2 > _number(db, "page_count"):
        # As a script, because `execute` makes one step, which is one page.
        db.executescript(f"PRAGMA incremental_vacuum({TRIM_PAGES});")


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables in an empty database. Raises sqlite3.Error."""
    db.executescript(f"BEGIN IMMEDIATE; {_TABLES} {_MARKS} COMMIT;")


def write_all(db: sqlite3.Connection, changes: Iterable[Change], version: int) -> None:
    """Write and remove objects and record the newest resourceVersion, in the transaction of the caller."""
    for c in changes:
        where = (c.group, c.plural, c.namespace, c.name)
        if c.body is None:
            db.execute(_CUT, where)
        else:
            db.execute(_PUT, (*where, c.resource_version, c.body))
    db.execute("UPDATE newest SET version = ?", (version,))


def check_format(db: sqlite3.Connection, path: Path) -> None:
    """Raises JournalError unless the file is empty, or a sound journal in a known format."""
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    owner, version = _number(db, "application_id"), _number(db, "user_version")
    if owner != APPLICATION_ID and (owner or tables):
        raise JournalError(f"{path}: this is a database of another program; name another data folder")
    if version > FORMAT:
        raise JournalError(
            f"{path}: written by a newer version of this program (format {version}, known up to {FORMAT}); upgrade it"
        )
    answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise JournalError(f"{path}: damaged ({answer}); restore a copy, or move the file away to start empty")


def read_all(db: sqlite3.Connection) -> Loaded:
    """Every object in a database."""
    rows = db.execute("SELECT grp, plural, namespace, name, version, body FROM objects")
    objects = [Change(*row) for row in rows]
    return Loaded(_newest(db), objects)


def _newest(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT version FROM newest").fetchone()[0])


def describe(error: Exception, path: Path) -> JournalError:
    """An error of SQLite as a message for an administrator, with the way out."""
    if isinstance(error, JournalError):
        return error
    text = str(error)
    if "locked" in text:
        return JournalError(f"{path}: in use by another process; stop it, or name another data folder")
    if "not a database" in text or "malformed" in text:
        return JournalError(f"{path}: damaged ({text}); restore a copy, or move the file away to start empty")
    return JournalError(f"{path}: {text}; check free space and permissions of the data folder")
