"""Event subscriptions: a BMC reports changes instead of being polled."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Subscription:
    """One event destination that a BMC knows. Its destination holds a secret token."""

    uri: str
    destination: str = field(default="", repr=False)
    context: str = ""


class Events(Protocol):
    """Manages event subscriptions. BMCNotSupported where the BMC has no EventService."""

    async def subscriptions(self) -> tuple[Subscription, ...]:
        """All event destinations that can be read."""
        ...

    async def subscription(self, uri: str) -> Subscription | None:
        """One event destination; None when the BMC no longer has it."""
        ...

    async def subscribe(self, destination: str, context: str) -> str:
        """The uri of a new event destination, or of the one with this destination and context if there is one."""
        ...

    async def unsubscribe(self, uri: str) -> None:
        """Remove an event destination; succeeds when it does not exist."""
        ...

    async def send_test_event(self) -> None:
        """Have the BMC send an event to every destination."""
        ...
