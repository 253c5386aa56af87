"""Records terminal sessions in asciicast v2: a header, then one line for each piece of output."""

import codecs
import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any


class Recording:
    """Writes the output, never the typed keys, which may be a password. `elapsed` returns seconds since the start."""

    def __init__(
        self, path: Path, title: str, size: tuple[int, int], started: datetime, elapsed: Callable[[], float]
    ) -> None:
        """Create the file with mode 0600. Raises FileExistsError and other OSErrors."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = open(descriptor, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
        self._elapsed = elapsed
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        width, height = size
        self._write({
            "version": 2, "width": width, "height": height, "timestamp": int(started.timestamp()), "title": title,
        })  # fmt: skip

    def shown(self, data: bytes) -> None:
        """Record output; a character may be split between two calls."""
        self._event("o", self._decoder.decode(data))

    def resized(self, size: tuple[int, int]) -> None:
        """Record a new size of the terminal, columns and rows."""
        self._event("r", f"{size[0]}x{size[1]}")

    def close(self) -> None:
        """Write the remaining output and close the file."""
        self._event("o", self._decoder.decode(b"", final=True))
        self._file.close()

    def _event(self, code: str, text: str) -> None:
        if text:
            self._write([round(self._elapsed(), 6), code, text])

    def _write(self, entry: Any) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._file.flush()
