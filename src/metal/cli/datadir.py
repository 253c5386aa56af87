"""The folder where a control plane keeps everything: made private, and used by one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InUse(Exception):
    """Another process has the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, made with mode 0700 when it is new. Raises InUse, OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"{folder} is in use by another metalctl: stop it, or choose another --data") from None
        yield
