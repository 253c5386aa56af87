"""Backups of all objects of an API: saved while it runs, loaded, and restored in place of the current objects.

A backup is a SQLite file in the format of the journal, so a data folder can start from one.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from metal.apiserver.machinery.records import CRDS, ObjectKey, Record, ResourceKey, encode
from metal.apiserver.storage.journal import Change, JournalError, Loaded
from metal.apiserver.storage.sqlite import check_format, create_tables, describe, read_all, write_all
from metal.apiserver.storage.store import Newest, Staged, Store

LEASES = ResourceKey("coordination.k8s.io", "leases")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def save(path: Path, version: int, records: Iterable[Record]) -> None:
    """Write a backup to a new file of mode 0600. Blocks: call it in a thread. Raises JournalError."""
    save_changes(path, version, (_change(record) for record in records))


def save_changes(path: Path, version: int, objects: Iterable[Change]) -> None:
    """Like `save`, from the result of `load`."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise JournalError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        db = sqlite3.connect(path, isolation_level=None)
        try:
            create_tables(db)
            db.execute("BEGIN IMMEDIATE")
            write_all(db, objects, version)
            db.execute("COMMIT")
        finally:
            db.close()
    except sqlite3.Error as error:
        path.unlink(missing_ok=True)
        raise describe(error, path) from error


def load(path: Path) -> Loaded:
    """Read a backup. Blocks: call it in a thread. Raises JournalError, also when the file is no backup."""
    if not path.is_file():
        raise JournalError(f"{path}: there is no such file")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            check_format(db, path)
            loaded = read_all(db)
        finally:
            db.close()
    except sqlite3.Error as error:
        raise describe(error, path) from error
    for change in loaded.objects:
        _parsed(path, change)
    return loaded


def _change(record: Record) -> Change:
    resource, namespace, name = record.key
    return Change(resource.group, resource.plural, namespace, name, record.resource_version, record.body)


def _parsed(path: Path, change: Change) -> None:
    try:
        Record.parse(ResourceKey(change.group, change.plural), change.body or b"")
    except (msgspec.MsgspecError, ValueError) as error:
        what = f"{change.plural} {change.namespace}/{change.name}"
        raise JournalError(f"{path}: {what} cannot be read ({error}); restore another copy") from error


@dataclass(frozen=True)
class Restored:
    """How many objects a restore wrote and removed; unchanged objects are not counted."""

    written: int
    removed: int


class Restoration:
    """The changes that make the objects of an API equal to those of a backup.

    CustomResourceDefinitions are only added, because those of the running program match it better than older ones.
    Leases are left unchanged: the current holder of a Lease is not the one in the backup.

    `plan` decodes, compares and encodes in a thread, while the API goes on; the versions of the restored objects are
    known in advance, for they lie behind a gap. `run` plans again, without an await, the few objects that were written
    meanwhile, and writes all changes in one transaction.
    """

    def __init__(self, store: Store, loaded: Loaded) -> None:
        self._store, self._loaded = store, loaded
        self._kept: dict[ObjectKey, bytes] = {}
        self._version = store.reserve(loaded.resource_version)
        self._seen: dict[ObjectKey, Record] = {}
        self._changes: dict[ObjectKey, tuple[Staged, Change]] = {}
        self._newest: dict[ObjectKey, Newest] = {}

    async def plan(self) -> Restored:
        """Find out what is to be done; the numbers of objects that `run` writes and removes."""
        self._seen = await self._store.present()
        return await asyncio.to_thread(self._plan_all)

    async def run(self) -> Restored:
        """Restore in one transaction. Raises StatusError 503."""
        touched = self._store.track()
        done = await self.plan()
        for key in touched:
            self._changes.pop(key, None)
            self._newest.pop(key, None)
            self._plan(key, self._store.newest(key))
        changes = self._changes.values()
        staged, written = [staged for staged, _ in changes], [written for _, written in changes]
        await self._store.replace(staged, written, self._newest)
        return done

    def _plan_all(self) -> Restored:
        self._kept = {
            ObjectKey(ResourceKey(change.group, change.plural), change.namespace, change.name): change.body
            for change in self._loaded.objects
            if change.body is not None
        }
        keys = [*self._kept, *(key for key in self._seen if key not in self._kept)]
        # CustomResourceDefinitions first, for the others need them. Not sorted: that would not let the loop run.
        definitions, others = [k for k in keys if k.resource == CRDS], [k for k in keys if k.resource != CRDS]
        for key in definitions + others:
            self._plan(key, self._seen.get(key))
        written = sum(staged.after is not None for staged, _ in self._changes.values())
        return Restored(written, len(self._changes) - written)

    def _plan(self, key: ObjectKey, current: Record | None) -> None:
        body = self._kept.get(key)
        if key.resource == LEASES or (key.resource == CRDS and current is not None):
            return
        after: Record | None = None
        if body is not None:
            obj = _decode(body)
            if current is not None and _without_version(current.decode()) == _without_version(obj):
                return
            obj["metadata"]["resourceVersion"] = str(self._version + 1)
            after = Record.parse(key.resource, encode(obj))
        shown = after or (current and current.at_version(self._version + 1))
        if shown is not None:
            self._version += 1
            staged = Staged(key, self._version, current, after, shown)
            self._changes[key] = (staged, staged.for_journal())
            self._newest[key] = (staged.version, after)


def _without_version(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
