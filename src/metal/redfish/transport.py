"""What the Redfish client needs of HTTP: one request, one answer. Everything clever is above it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from metal.redfish.errors import BMCUnreachable


class ConnectionDropped(BMCUnreachable):
    """The connection broke before the answer was complete; whether the BMC acted on the request is unknown."""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


class Transport(Protocol):
    """Carries requests to one BMC and nowhere else."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout: float,
    ) -> Response:
        """Any status is an answer; redirects are answers too and never followed.

        Args: path begins with a slash and is already encoded; timeout is the whole request's, in seconds.
        Raises: BMCUnreachable (ConnectionDropped when it broke half-way), BMCTimeout, BMCTLSError, BMCProtocolError.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections; later requests fail."""
        ...
