"""Shows on stderr what a command waits for: one live line on a terminal, else one line for each change."""

import os
import shutil
import sys
from typing import TextIO

from metal.cli.support.table import printable

_ERASE = "\r\x1b[2K"


class Progress:
    """Shows what each label waits for. The same text is not repeated."""

    def __init__(self, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        terminal = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._live = terminal if live is None else live
        self._shown: dict[str, str] = {}

    def show(self, label: str, text: str) -> None:
        """Show what `label` waits for."""
        if self._shown.get(label) == text:
            return
        self._shown[label] = text
        line = printable(f"{label}: waiting for {text}")
        if not self._live:
            print(line, file=self._stream, flush=True)
            return
        others = len(self._shown) - 1
        shown = f"{line} (and {others} more)" if others else line
        width = shutil.get_terminal_size().columns
        cut = shown if len(shown) < width else shown[: width - 2] + "…"
        print(f"{_ERASE}{cut}", end="", file=self._stream, flush=True)

    def done(self, label: str) -> None:
        """Remove `label`: it waits for nothing."""
        self._shown.pop(label, None)
        self.clear()

    def clear(self) -> None:
        """Clear the live line before other output."""
        if self._live:
            print(_ERASE, end="", file=self._stream, flush=True)
