"""UEFI HTTP boot from a URL that the BMC hands to the firmware."""

from dataclasses import dataclass, field
from typing import Protocol

from metal.bmc.boot import BootOverride


@dataclass(frozen=True)
class HttpBootState:
    """The URL and the override, as read back."""

    url: str = field(default="", repr=False)
    """URL that the firmware will use, which holds a secret; empty when none is set or the BMC discarded it."""
    override: BootOverride = field(default_factory=BootOverride)
    needs_reset: bool = False
    """The BIOS takes the URL over during the next start, and uses it from the start after that."""


class HttpBoot(Protocol):
    """The URL of a UEFI HTTP boot: the property Boot.HttpBootUri, or BIOS attributes (table of vendor facts)."""

    async def http_boot(self, uri: str) -> HttpBootState:
        """What is set now."""
        ...

    async def set_http_boot(self, uri: str, url: str) -> HttpBootState:
        """Boot once from this URL at the next start; returns what is read back.

        The override is not set where the firmware takes its URL from BIOS attributes and the BMC refuses an override:
        see `HttpBootState.override`. Raises: BMCNotSupported where the BMC offers neither way.
        """
        ...

    async def clear_http_boot(self, uri: str) -> HttpBootState:
        """Remove override and URL; returns what is read back."""
        ...
