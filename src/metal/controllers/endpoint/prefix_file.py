"""Keeps the MAC prefix database in step with its file: a changed file is read again, a broken one changes nothing."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog

from metal.controllers.endpoint.mac_prefixes import PrefixError, Prefixes, parse

_log = structlog.get_logger(__name__)
_LARGEST = 4 << 20
"""Bytes; a file beyond is surely something else."""

Stamp = tuple[int, int, int]


class PrefixFile:
    """The database in a file, read at once (raises PrefixError) and again whenever `poll` sees that it changed.

    `problem` is empty, or the sentence that says why the present file is not used; the last good database then stays.
    Args: extra are entries beside the file's, which win where both have a prefix; without a path they are all there is.
    """

    def __init__(self, path: Path | None = None, *, extra: Prefixes | None = None) -> None:
        self.path = path
        self.problem = ""
        self._extra = extra or Prefixes()
        self.prefixes = self._extra
        self._stamp: Stamp | None = None
        self._listeners: list[Callable[[], None]] = []
        if path is not None:
            self._read(path)

    def __repr__(self) -> str:
        return f"<PrefixFile {self.path or '-'} entries={len(self.prefixes)} {'broken' if self.problem else 'ok'}>"

    @property
    def changed_at(self) -> datetime | None:
        """When the file was last modified, None without a file."""
        return datetime.fromtimestamp(self._stamp[1] / 1e9, UTC) if self._stamp else None

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every reload, good or bad."""
        self._listeners.append(listener)

    def poll(self) -> bool:
        """Read the file again if its inode, size or modification time changed; True when it was read."""
        if self.path is None:
            return False
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._read(self.path)
        except PrefixError as exc:
            self.problem = f"{exc}; the entries read before stay in use"
            _log.error("MAC prefix file cannot be used", problem=self.problem)
        else:
            self.problem = ""
            _log.info("MAC prefix file read again", entries=len(self.prefixes))
        for listener in self._listeners:
            listener()
        return True

    async def run(self, interval: float = 5.0) -> None:
        """Poll every `interval` seconds until cancelled."""
        while True:
            await asyncio.sleep(interval)
            self.poll()

    def _read(self, path: Path) -> None:
        own, self._stamp = _load(path)
        self.prefixes = self._extra.overlaid(own)


def _load(path: Path) -> tuple[Prefixes, Stamp | None]:
    stamp = _stamp(path)
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST + 1)
    except OSError as exc:
        raise PrefixError([f"{path}: cannot be read: {exc.strerror}"]) from exc
    except UnicodeDecodeError as exc:
        raise PrefixError([f"{path}: is not UTF-8 text (byte {exc.start})"]) from None
    if len(text) > _LARGEST:
        raise PrefixError([f"{path}: is larger than {_LARGEST >> 20} MiB: it cannot be a MAC prefix file"])
    return parse(text, str(path)), stamp


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
