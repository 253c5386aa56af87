"""The data folder of a control plane: private, and used by one process at a time."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from metal.apiserver.auth.tokens import write_private


class Unusable(Exception):
    """The folder cannot be used. The message has the reason and the way out."""


class InUse(Unusable):
    """Another process uses the folder."""


class OtherGroup(Unusable):
    """The objects in the folder belong to another API group."""


@dataclass(frozen=True)
class DataDir:
    """A data folder that this process has locked."""

    path: Path
    made: bool
    """True if this process created the folder."""
    empty: bool
    """True if the folder was empty."""

    def keep_group(self, group: str) -> None:
        """Record the API group of the objects in the folder. Raises OtherGroup, OSError.

        Under another group the stored objects would be invisible, and claimed servers would be enrolled as new ones.
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
        """Remove what a failed start created; what existed before stays."""
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
    """Lock the folder, created with mode 0700 if it does not exist. Raises Unusable."""
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
