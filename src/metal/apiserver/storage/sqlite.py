"""The journal in one SQLite file: WAL, synchronous=FULL, one fsync for all writes that wait at the same time.

`append` queues changes; one thread takes everything that is queued, up to a limit, commits it as one transaction and
calls `done` of each append in the loop's thread. So a single write costs one fsync, and many concurrent writes share
one. When a commit fails, everything that is queued fails with it, because later changes build on the lost ones.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from metal.apiserver.storage.journal import Change, Done, JournalError, Loaded

APPLICATION_ID = 0x4D455441
"""`META`, in the header of the file, which identifies our files among SQLite databases."""
FORMAT = 1
BATCH = 1_000
"""Maximum of appends in one transaction, so that under load the first does not wait for the last."""
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
_CUT = "DELETE FROM objects WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?"


class SqliteJournal:
    """Implements `journal.Journal`. A thread of its own does everything that may wait for the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[tuple[Sequence[Change], Done]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._db: sqlite3.Connection | None = None
        self.transactions = 0
        """Number of committed transactions."""

    def __repr__(self) -> str:
        return f"<SqliteJournal {self._path} waiting={len(self._waiting)}>"

    async def open(self) -> Loaded:
        """Open or create the file (mode 0600) and read it. Raises JournalError."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        except JournalError:
            self._thread.shutdown(wait=False)
            raise

    def append(self, done: Done, *changes: Change) -> None:
        """Make the changes durable with the next transaction, all or none, then call done."""
        self._waiting.append((changes, done))
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush(), name="journal-flush")

    async def close(self) -> None:
        """Finish what was appended and release the file. Does nothing when the file could not be opened."""
        if self._db is None:
            self._thread.shutdown(wait=False)
            return
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                try:
                    await loop.run_in_executor(self._thread, self._commit, [c for changes, _ in batch for c in changes])
                except Exception as error:
                    # Later changes build on the lost ones, so they are lost with them.
                    batch, self._waiting = batch + self._waiting, []
                    _settle(batch, describe(error, self._path))
                else:
                    _settle(batch, None)
        finally:
            self._flusher = None

    def _open(self) -> Loaded:
        path = self._path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error.strerror}; check the data folder") from error
        try:
            db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
            try:
                return self._prepare(db)
            except BaseException:
                db.close()
                raise
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
        loaded = read_all(db)
        self._db = db
        return loaded

    def _commit(self, changes: Sequence[Change]) -> None:
        db = self._db
        if db is None:
            raise JournalError(f"{self._path}: the journal is closed")
        db.execute("BEGIN IMMEDIATE")
        try:
            write_all(db, changes, changes[-1].resource_version)
            db.execute("COMMIT")
            self.transactions += 1
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        if any(c.body is None for c in changes):
            _trim(db)

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _settle(batch: Sequence[tuple[Sequence[Change], Done]], error: BaseException | None) -> None:
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
    return Loaded(db.execute("SELECT version FROM newest").fetchone()[0], objects)


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
