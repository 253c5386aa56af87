"""The transport protocol of the Redfish client: one request, one answer, no retries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from metal.redfish.errors import BMCUnreachable


class ConnectionDropped(BMCUnreachable):
    """The connection broke before the answer was complete; whether the request had an effect is unknown."""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


class Transport(Protocol):
    """Sends requests to one BMC."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout: float,
    ) -> Response:
        """Any status is an answer; redirects are returned and never followed.

        Args: path begins with a slash and is already encoded; timeout is the whole request's, in seconds.
        Raises: BMCUnreachable (ConnectionDropped when it broke half-way), BMCTimeout, BMCTLSError, BMCProtocolError.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections; later requests fail."""
        ...
