"""Log lines of long-running commands: one format, one level and one stream for this program and its libraries.

In come events of structlog (this program) and records of the standard library's logging (libraries). Both pass the same
processors and out goes one line each: JSON for programs, or text for a person. No line prints the local variables of a
traceback, because they hold tokens, passwords and Ignition; fields with the name of a secret are masked besides.
Libraries are one level quieter than the program, because some of them log every connection.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
import structlog
from structlog.typing import EventDict, Processor

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("console", "json")
LEVELS = ("debug", "info", "warning", "error")
_OF_EXCEPTIONS = ("exception", "exc_info", "stack")
"""Fields whose text has several lines."""
_SECRETS = frozenset({"password", "token", "authorization", "secret", "ignition", "credentials", "private_key"})


@dataclass(frozen=True)
class LogOptions:
    """How log lines look, and which are written."""

    format: str = "console"
    """console or json."""
    level: str = "info"
    """debug, info, warning or error."""


def log_options(command: F) -> F:
    """Adds --log-format and --log-level to a command."""
    level = click.option(
        "--log-level", type=click.Choice(LEVELS), default="info", show_default=True,
        help="Lowest level of lines that are written. Libraries are one level quieter.",
    )  # fmt: skip
    form = click.option(
        "--log-format", type=click.Choice(FORMATS), default="console", show_default=True,
        help="Format of log lines: text, or one JSON object per line.",
    )  # fmt: skip
    return form(level(command))


def configure(stream: TextIO, options: LogOptions, *, colours: bool = False) -> None:
    """Write all lines of this process to a stream from now on."""
    level = logging.getLevelNamesMapping()[options.level.upper()]
    shared, renderer = _processors(options.format, colours)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = _Handler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [*(other for other in root.handlers if not isinstance(other, _Handler)), handler]
    root.setLevel(min(level + 10, logging.ERROR))


def to_file(path: Path, level: str = "info") -> TextIO:
    """Append JSON lines to a file of mode 0600; returns it so that it can be closed."""
    path.touch(mode=0o600, exist_ok=True)
    stream = path.open("a", buffering=1)
    configure(stream, LogOptions("json", level))
    return stream


class _Handler(logging.StreamHandler[TextIO]):
    """The one that `configure` installs."""


def _processors(form: str, colours: bool) -> tuple[list[Processor], Processor]:
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _mask,
    ]
    if form == "json":
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        return [*shared, stamp, structlog.processors.format_exc_info], structlog.processors.JSONRenderer(default=str)
    renderer = structlog.dev.ConsoleRenderer(
        colors=colours,
        pad_event_to=0,
        sort_keys=False,
        exception_formatter=structlog.dev.plain_traceback,  # others print locals
    )
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
    return [*shared, _drop_empty_fields, _escape_control_characters, stamp], renderer


def _drop_empty_fields(_: Any, __: str, event: EventDict) -> EventDict:
    """Fields without a value are omitted on a console, and kept in JSON."""
    return {name: value for name, value in event.items() if value is not None}


def _escape_control_characters(_: Any, __: str, event: EventDict) -> EventDict:
    """Texts of BMCs and machines must not move the cursor of a terminal or begin a line of their own."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable() and name not in _OF_EXCEPTIONS:
            event[name] = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    return event


def _mask(_: Any, __: str, event: EventDict) -> EventDict:
    for name in _SECRETS.intersection(event):
        event[name] = "***"
    return event
