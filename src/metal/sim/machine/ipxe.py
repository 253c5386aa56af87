"""An interpreter of the iPXE scripts that the boot server generates, strict about all others (ipxe.org/scripting)."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

_COMMANDS = ("kernel", "initrd", "imgargs", "chain", "boot", "sleep", "echo", "exit", "goto")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")
_SETTING = re.compile(r"\$\{([^}]*)\}")
_LONGEST_RUN = 1000
_LONGEST_SLEEP = 4
"""Digits of a number of seconds."""


class ScriptError(Exception):
    """The script contains something that the generator never writes, or does not end."""


@dataclass(frozen=True)
class Line:
    """A command, and what follows its success and failure: a label, "" for the next line, None for the end."""

    words: tuple[str, ...]
    then: str = ""
    otherwise: str | None = None


@dataclass(frozen=True)
class Loaded:
    """Kernel, arguments and RAM disks that a script has loaded at `boot`."""

    kernel: bytes = field(repr=False)
    initrds: tuple[bytes, ...] = field(repr=False)
    args: tuple[str, ...] = field(repr=False)

    def argument(self, name: str) -> str:
        """The last kernel argument of this name, or nothing."""
        found = [arg.partition("=")[2] for arg in self.args if arg.partition("=")[0] == name]
        return found[-1] if found else ""


@dataclass(frozen=True)
class Script:
    """A parsed script: its lines, and where labels point."""

    lines: tuple[Line, ...]
    labels: Mapping[str, int]


Fetch = Callable[[str], Awaitable[bytes | None]]
"""Gets a URL; None when that failed."""


def parse(text: str) -> Script:
    """Parse a script. Raises ScriptError with the line number."""
    rows = text.split("\n")
    if rows[0] != "#!ipxe":
        raise ScriptError("line 1: an iPXE script begins with #!ipxe")
    lines: list[Line] = []
    labels: dict[str, int] = {}
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if row.startswith(":"):
            labels[_label(row[1:], number)] = len(lines)
        else:
            lines.append(_line(row, number))
    script = Script(tuple(lines), labels)
    _check_targets(script)
    return script


def _line(row: str, number: int) -> Line:
    if not all(" " <= char <= "~" for char in row):
        raise ScriptError(f"line {number}: has characters that are not printable ASCII")
    otherwise: str | None = None
    head, bar, tail = row.partition(" ||")
    if bar:
        otherwise = _target(tail.strip(), number) if tail.strip() else ""
    command, both, success = head.partition(" && ")
    then = _target(success.strip(), number) if both else ""
    words = tuple(command.split())
    if not words or words[0] not in _COMMANDS or {"&&", "||", ";"} & set(words):
        raise ScriptError(f"line {number}: {command[:40]!r} is not a command that this firmware knows")
    _check_words(words, number)
    return Line(words, then, otherwise)


def _check_words(words: tuple[str, ...], number: int) -> None:
    command, rest = words[0], words[1:]
    if command == "goto" and len(rest) != 1:
        raise ScriptError(f"line {number}: goto takes one label")
    if command == "sleep" and not (len(rest) == 1 and rest[0].isdecimal() and len(rest[0]) <= _LONGEST_SLEEP):
        raise ScriptError(f"line {number}: sleep takes a number of seconds")


def _target(text: str, number: int) -> str:
    word, _, label = text.partition(" ")
    if word != "goto":
        raise ScriptError(f"line {number}: only goto may follow && and ||, not {text[:40]!r}")
    return _label(label, number)


def _label(text: str, number: int) -> str:
    if not _LABEL.fullmatch(text):
        raise ScriptError(f"line {number}: {text[:40]!r} is not a label")
    return text


def _check_targets(script: Script) -> None:
    used = {target for line in script.lines for target in (line.then, line.otherwise) if target}
    used |= {line.words[1] for line in script.lines if line.words[0] == "goto"}
    missing = used - set(script.labels)
    if missing:
        raise ScriptError(f"there is no label {sorted(missing)[0]!r}")


class Interpreter:
    """One run of iPXE. `settings` are the values of ${…}."""

    def __init__(self, fetch: Fetch, settings: Mapping[str, str]) -> None:
        self._fetch, self._settings = fetch, settings
        self._kernel: bytes | None = None
        self._args: tuple[str, ...] = ()
        self._initrds: list[bytes] = []
        self._chained: str | None = None
        self._left = _LONGEST_RUN

    async def run(self, text: str) -> Loaded | None:
        """What the script boots; None when it failed. Raises ScriptError."""
        script, at = parse(text), 0
        while at < len(script.lines):
            self._left -= 1
            if self._left < 0:
                raise ScriptError("the script does not come to an end")
            line = script.lines[at]
            if line.words[0] == "exit":
                return None
            done = await self._do(line.words)
            if line.words[0] == "boot" and done:
                return Loaded(self._kernel or b"", tuple(self._initrds), self._args)
            if self._chained is not None:
                text, self._chained = self._chained, None
                script, at = parse(text), 0
                continue
            target = line.words[1] if line.words[0] == "goto" else line.then if done else line.otherwise
            if target is None:
                return None
            at = script.labels[target] if target else at + 1
        return None

    async def _do(self, words: tuple[str, ...]) -> bool:
        command, rest = words[0], tuple(map(self._expand, words[1:]))
        if command == "sleep":
            await asyncio.sleep(float(rest[0]))
            return True
        if command == "boot":
            return self._kernel is not None
        if command in ("echo", "goto"):
            return True
        if command == "imgargs":
            self._args = rest[1:]
            return True
        return await self._load(command, rest)

    async def _load(self, command: str, rest: tuple[str, ...]) -> bool:
        urls = [word for word in rest if word.startswith(("http://", "https://"))]
        if not urls:
            raise ScriptError(f"{command} without a URL")
        content = await self._fetch(urls[0])
        if content is None:
            return False
        if command == "kernel":
            self._kernel, self._args = content, rest[rest.index(urls[0]) + 1 :]
        elif command == "initrd":
            self._initrds.append(content)
        else:
            self._chained = content.decode("ascii", "replace")
        return True

    def _expand(self, word: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in self._settings:
                raise ScriptError(f"this firmware has no setting {match[1][:40]!r}")
            return self._settings[match[1]]

        return _SETTING.sub(value, word)
