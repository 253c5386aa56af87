"""A small file that is parsed again when it changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog

T = TypeVar("T")
_log = structlog.get_logger(__name__)
_LARGEST = 1 << 20


class FileInvalid(Exception):
    """A file cannot be used. str() names the file and the fix, and nothing of the content."""


class WatchedFile(Generic[T]):
    """The parsed content of a file; `parse` raises ValueError with a message that shows nothing of the content.

    A change is noticed by inode, size and modification time. A changed file that cannot be used is logged once, and the
    former content stays in use.
    """

    def __init__(self, path: Path, parse: Callable[[bytes], T]) -> None:
        self._path, self._parse = path, parse
        self._stamp: tuple[int, int, int] | None = None
        self._value: T | None = None
        self.problem = ""
        """Why the present file is not used; empty if it is."""

    def __repr__(self) -> str:
        return f"<WatchedFile {self._path} {'broken' if self.problem else 'ok'}>"

    def value(self) -> T:
        """The content of the file, or the last one that could be used. Raises FileInvalid if there is none."""
        stamp = self._present()
        if stamp != self._stamp or self._value is None:
            self._stamp = stamp
            self._read()
        if self._value is None:
            raise FileInvalid(self.problem)
        return self._value

    def _read(self) -> None:
        former, self.problem = self.problem, ""
        try:
            self._value = self._parse(_content(self._path))
        except OSError as exc:
            self.problem = f"{self._path} cannot be read ({exc.strerror})"
        except ValueError as exc:
            self.problem = f"{self._path} {exc}"
        if self.problem and self.problem != former:
            _log.error("file cannot be used", problem=self.problem, former_content_in_use=self._value is not None)

    def _present(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ValueError(f"is larger than {_LARGEST >> 20} MiB")
    return raw
