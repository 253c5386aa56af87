"""Butane (coreos.github.io/butane): YAML that the program `butane` converts to an Ignition config.

The document comes from a tenant and holds secrets. The program runs without a shell, with an empty environment and no
folder to take files from, reads the document from a pipe and writes to memory, and its CPU time, memory and output are
limited. What it prints becomes a condition, so only the position and the message of a diagnostic are kept, and
whatever a message quotes of the document is left out. Results, also failures, are remembered by the digest of the
document.
"""

import asyncio
import hashlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from metal.boot.errors import ButaneUnavailable, IgnitionError

FORMATS = ("fcos", "flatcar")
"""Values of the key `format` of a Secret that holds Butane."""
PROGRAM = "butane"
_CPU, _WALL = 3, 20.0
"""Seconds that one document may take: of one core, and on a busy machine."""
_LIMITS = (
    (resource.RLIMIT_CPU, _CPU),
    (resource.RLIMIT_DATA, 512 << 20),
    (resource.RLIMIT_FSIZE, 4 << 20),  # an Ignition config may not be larger
    (resource.RLIMIT_CORE, 0),
)
_REMEMBERED = 16 << 20
"""Bytes of converted documents."""
_SHOWN = 5
"""Diagnostics in a message."""


@dataclass(frozen=True)
class Converted:
    """What the program made of a document: Ignition that is still to be validated, and its warnings."""

    config: bytes = field(repr=False)
    warnings: str = ""


class Butane:
    """Runs the program, two documents at a time."""

    def __init__(self, program: str = PROGRAM) -> None:
        """`program` is a path, or a name that is looked up in PATH; with an empty one nothing is converted."""
        self._program = program
        self._known: dict[str, Converted | IgnitionError] = {}
        self._slots = asyncio.Semaphore(2)

    async def convert(self, document: bytes) -> Converted:
        """The document as Ignition. Raises IgnitionError, and ButaneUnavailable where another try may succeed."""
        key = hashlib.sha256(document).hexdigest()
        if key not in self._known:
            async with self._slots:
                if key not in self._known:
                    self._remember(key, await asyncio.to_thread(self._outcome, document))
        found = self._known[key]
        if isinstance(found, IgnitionError):
            raise IgnitionError(found.path, found.problem)
        return found

    def _remember(self, key: str, found: Converted | IgnitionError) -> None:
        self._known[key] = found
        while len(self._known) > 1 and sum(map(_size, self._known.values())) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def _outcome(self, document: bytes) -> Converted | IgnitionError:
        program = shutil.which(self._program) if self._program else None
        if program is None:
            raise ButaneUnavailable(
                f"is not converted, because the program {self._program or PROGRAM} is not installed here: install it "
                "and set boot.butane, or convert the document yourself and leave format out of the Secret"
            )
        code, out, errors = _run(program, document)
        found = "; ".join(list(diagnostics(errors, document))[:_SHOWN])
        if code == 0:
            return Converted(out, found)
        if code < 0:
            return IgnitionError(PROGRAM, f"the document takes more than {_CPU} s or too much memory to convert")
        return IgnitionError(PROGRAM, found or f"the program failed with status {code}")


def _size(found: Converted | IgnitionError) -> int:
    return 1024 + (len(found.config) if isinstance(found, Converted) else 0)


def _run(program: str, document: bytes) -> tuple[int, bytes, bytes]:
    """Exit status (negative: the signal), output and diagnostics. Raises ButaneUnavailable."""
    with _memory() as out, _memory() as errors:
        try:
            started = subprocess.Popen(  # noqa: S603 -- the configured program, without arguments
                [program], stdin=subprocess.PIPE, stdout=out, stderr=errors, env={"GOMAXPROCS": "1"}, cwd="/"
            )
        except OSError as exc:
            raise ButaneUnavailable(f"is not converted: {program} cannot be started ({exc.strerror})") from None
        with started as process:
            _limit(process.pid)  # it has no document yet
            try:
                process.communicate(document, timeout=_WALL)
            except subprocess.TimeoutExpired:
                process.kill()
                problem = f"was not converted within {_WALL:.0f} s: the machine is busy"
                raise ButaneUnavailable(problem, transient=True) from None
        return process.returncode, _content(out), _content(errors)


def _limit(pid: int) -> None:
    with suppress(ProcessLookupError):
        for what, most in _LIMITS:
            resource.prlimit(pid, what, (most, most))


def _memory() -> BinaryIO:
    return os.fdopen(os.memfd_create(PROGRAM), "w+b")


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


_HEAD = re.compile(r"(?:Error translating config: |Error unmarshaling yaml: |yaml: )+")
_REPORT = re.compile(r"(error|warning|info) at .*?(line \d+ col \d+)?: (.*)")
_SUMMARIES = ("source config is invalid", "config generated was invalid", "unmarshal errors:")
_KEY = re.compile(r"^[ \t]*(?:- +)*[A-Za-z_]+:(?= |$)", re.MULTILINE)
_WORD = re.compile(r"[^\s{}\[\],;:()\"'`]+")
_QUOTES = (
    (re.compile(r"`.*`"), "…"),
    (re.compile(r'".*"'), "…"),
    (re.compile(r"'.*'"), "…"),
    (re.compile(r"(Unused key|invalid map key:) .*"), r"\1"),
    (re.compile(r"No translator exists .*"), "butane does not know this variant with this version"),
)
"""What messages repeat of a document, as yaml.v3, vcontext and Ignition write them."""


def diagnostics(printed: bytes, document: bytes) -> Iterator[str]:
    """Position and message of each diagnostic; other lines are skipped, and nothing of the document is repeated."""
    values = set(_WORD.findall(_KEY.sub(" ", document.decode(errors="replace"))))
    for line in printed.decode(errors="replace").splitlines():
        report = _REPORT.fullmatch(line)
        head = _HEAD.match(line)
        if report is not None:
            place = f"{report[2]}: " if report[2] else ""
            yield place + _without(values, report[3])
        elif head is not None and (rest := line[head.end() :]) not in _SUMMARIES:
            yield _without(values, rest)
        elif line.startswith("  line "):  # one of yaml's "unmarshal errors:"
            yield _without(values, line.strip())


def _without(values: set[str], message: str) -> str:
    """The message without what it quotes, and without words of the document other than plain ones."""
    for pattern, instead in _QUOTES:
        message = pattern.sub(instead, message)

    def plain(word: re.Match[str]) -> str:
        text = word[0]
        return "…" if text in values and not (text.isascii() and text.islower() and text.isalpha()) else text

    return re.sub(r"(?<!line )(?<!col )" + _WORD.pattern, plain, message)[:200]
