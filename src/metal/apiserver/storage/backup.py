"""Backups of all objects of an API: saved while it runs, loaded, and restored in place of the current objects.

A backup is a SQLite file in the format of the journal, so a data folder can start from one.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from metal.apiserver.machinery.records import CRDS, ObjectKey, Record, ResourceKey
from metal.apiserver.storage.journal import Change, JournalError, Loaded
from metal.apiserver.storage.sqlite import check_format, create_tables, describe, read_all, write_all
from metal.apiserver.storage.store import Store

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
    """

    def __init__(self, store: Store, loaded: Loaded) -> None:
        self._store = store
        kept = {
            ObjectKey(ResourceKey(change.group, change.plural), change.namespace, change.name): change.body
            for change in loaded.objects
            if change.body is not None
        }
        self._written = {key: _decode(body) for key, body in kept.items() if self._wanted(key)}
        self._written = {key: obj for key, obj in self._written.items() if self._differs(key, obj)}
        self._gone = sorted(key for key in store.every_key() - kept.keys() if key.resource not in (CRDS, LEASES))

    def _wanted(self, key: ObjectKey) -> bool:
        return key.resource != LEASES and not (key.resource == CRDS and self._store.newest(key) is not None)

    def _differs(self, key: ObjectKey, obj: Mapping[str, Any]) -> bool:
        current = self._store.newest(key)
        return current is None or _without_version(current.decode()) != _without_version(obj)

    @property
    def summary(self) -> Restored:
        """The numbers of objects that `run` writes and removes."""
        return Restored(len(self._written), len(self._gone))

    async def run(self) -> Restored:
        """Restore in one transaction. Call it without an await after the constructor. Raises StatusError 503."""
        definitions_first = sorted(self._written, key=lambda key: key.resource != CRDS)
        await self._store.replace(self._gone, [(key.resource, self._written[key]) for key in definitions_first])
        return self.summary


def _without_version(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
