"""The folder where a control plane keeps everything: made private, and used by one process at a time."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from metal.apiserver.auth.tokens import write_private


class Unusable(Exception):
    """The folder cannot be used; the message says why and what to do."""


class InUse(Unusable):
    """Another process has the folder."""


class OtherGroup(Unusable):
    """What is in the folder belongs to another API group."""


@dataclass(frozen=True)
class DataDir:
    """A folder that is ours for now."""

    path: Path
    made: bool
    """It was not there before."""
    empty: bool
    """Nothing was in it."""

    def keep_group(self, group: str) -> None:
        """Remember the API group of what is kept here. Raises OtherGroup, OSError.

        Under another group all that is kept would be invisible: claimed, running machines would be taken for new ones.
        """
        file = self.path / "group"
        if not file.exists():
            write_private(file, f"{group}\n".encode())
            return
        known = file.read_text(errors="replace").strip()
        if known != group:
            way_out = f"give --api-group {known} (or that apiGroup in the configuration), or choose another --data"
            raise OtherGroup(f"{self.path} holds objects of the API group {known}, not of {group}: {way_out}")

    def undo(self) -> None:
        """Leave no half-made folder after a start that failed; what was there before stays."""
        if not self.empty:
            return
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        if self.made:
            self.path.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[DataDir]:
    """Hold the folder, made with mode 0700 when it is new. Raises Unusable."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        empty = all(entry.name == "lock" for entry in folder.iterdir())
        lock = (folder / "lock").open("w")
    except OSError as exc:
        raise Unusable(f"the folder {folder} cannot be used: {exc.strerror}; choose another --data") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"{folder} is in use by another metalctl: stop it, or choose another --data") from None
        yield DataDir(folder, made, empty)
