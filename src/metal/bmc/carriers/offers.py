"""Which ways to boot, and which carriers of a secret, a BMC offers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Way(StrEnum):
    """Ways to boot, named as boot methods are, and the asset tag, which carries a nonce for IPXE."""

    VIRTUAL_MEDIA = "VirtualMedia"
    UEFI_HTTP = "UEFIHTTP"
    IPXE = "IPXE"
    ASSET_TAG = "AssetTag"


@dataclass(frozen=True)
class Offer:
    """Whether a BMC offers one way."""

    way: Way
    offered: bool = True
    message: str = ""
    """Why it is not offered, as a sentence; empty when it is."""
    needs_reset: bool = False
    """Each use takes one more start of the machine (`HttpBootState.needs_reset`)."""


class Offers(Protocol):
    """Learns from a BMC's resources what it offers. Whether that works is known once it was tried."""

    async def offered_methods(self, uri: str) -> tuple[Offer, ...]:
        """One offer for each way, in the order of `Way`. Raises BMCError while the BMC cannot be asked."""
        ...
