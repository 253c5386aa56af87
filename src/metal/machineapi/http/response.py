"""The response of a service, independent of the HTTP library."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from metal.boot.uki.layout import Layout

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class Content:
    """A body of bytes and parts of files. `use` keeps the files in the cache while it is being sent."""

    layout: Layout
    use: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True)
class Response:
    """Status, headers and a body, or content instead. `on_sent` runs after the last byte was sent."""

    status: int
    body: bytes = field(default=b"", repr=False)
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None
    on_sent: Callable[[], Awaitable[None]] | None = None
    holder: str = ""
    """For whom content is sent, of which only some are sent at the same time; empty when that is not limited."""


def text(status: int, body: str, **headers: str) -> Response:
    """A plain-text response; header names are written with underscores."""
    return Response(
        status, f"{body}\n".encode(), headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def unavailable(body: str, seconds: int = 5) -> Response:
    """503 with Retry-After. Ignition retries a 503 without limit, and retries no status below 500."""
    return text(503, body, Retry_After=str(seconds))
