"""Reads and writes kernel files below /sys and /proc, under a root that tests can replace."""

from __future__ import annotations

import os
from pathlib import Path

MAX_FILE = 4 * 1024 * 1024
"""Maximum bytes read from one file; the largest expected one is a DMI table of about 100 KiB."""


class Host:
    """Reads kernel files. A missing or unreadable file reads as empty, because hardware and kernels differ."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """The file or folder with this absolute name, below the root."""
        return self.root / name.lstrip("/")

    def data(self, name: str) -> bytes:
        """A file's bytes, or none."""
        try:
            with open(self.path(name), "rb") as stream:
                return stream.read(MAX_FILE)
        except OSError:
            return b""

    def text(self, name: str) -> str:
        """A file's text without surrounding space, or an empty string."""
        return self.data(name).decode("utf-8", "replace").strip(" \t\r\n\0")

    def number(self, name: str, missing: int = 0) -> int:
        """A file's decimal number, or `missing`."""
        try:
            return int(self.text(name))
        except ValueError:
            return missing

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; none when there is no such folder."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError:
            return []

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return self.path(name).exists()

    def real_parts(self, name: str) -> tuple[str, ...]:
        """The parts of the path that a link leads to: in /sys they name the buses on the way to a device."""
        return self.path(name).resolve().parts

    def put(self, name: str, text: str) -> None:
        """Writes to a kernel file that is there.

        Raises:
            OSError: there is no such file, or the kernel refuses.
        """
        with open(self.path(name), "r+b", buffering=0) as stream:
            stream.write(text.encode())
