"""Where log lines go: to the terminal, or to a file while a table occupies it."""

import logging
from pathlib import Path
from typing import TextIO

import structlog


def to_stream(stream: TextIO, *, colours: bool) -> None:
    """Readable lines, with local time, to a stream."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(
                colors=colours,
                pad_event_to=0,
                exception_formatter=structlog.dev.plain_traceback,  # others print locals: tokens, passwords, Ignition
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


def to_file(path: Path) -> TextIO:
    """One JSON object a line, appended to a file of mode 0600; returns it so that it can be closed."""
    path.touch(mode=0o600, exist_ok=True)
    stream = path.open("a", buffering=1)
    as_json(stream)
    return stream


def as_json(stream: TextIO) -> None:
    """One JSON object a line, with time in UTC, to a stream."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
