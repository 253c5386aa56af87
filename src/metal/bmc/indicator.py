"""The location LED of a system."""

from typing import Protocol


class Indicator(Protocol):
    """The location LED."""

    async def set_indicator_led(self, uri: str, state: str) -> None:
        """Off, Lit or Blinking."""
        ...
