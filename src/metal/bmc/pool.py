"""How a BMC is reached, and the pool that hands out one client for each BMC.

A system is named by its `uri`, an opaque string that `Systems.systems` returned. Every method of every capability has a
deadline of its own and raises a subclass of `metal.bmc.errors.BMCError`; none waits until a machine changes its state.
"""

from dataclasses import dataclass, field
from typing import Protocol

from metal.bmc.boot import Boot
from metal.bmc.carriers.asset_tag import AssetTags
from metal.bmc.carriers.http_boot import HttpBoot
from metal.bmc.carriers.offers import Offers
from metal.bmc.carriers.secure_boot import SecureBoot
from metal.bmc.carriers.virtual_media import VirtualMedia
from metal.bmc.errors import BMCError
from metal.bmc.events import Events
from metal.bmc.firmware import Firmware
from metal.bmc.indicator import Indicator
from metal.bmc.inventory import InventoryReader
from metal.bmc.power import Power
from metal.bmc.systems import ManagerControl, Systems


@dataclass(frozen=True)
class BMCEndpoint:
    """How to reach one BMC. `key` names it in pools and logs (the BMC object's name)."""

    key: str
    address: str
    port: int = 443
    scheme: str = "https"
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    verify: bool = True
    """False accepts any certificate; must be asked for."""
    ca_pem: str = field(default="", repr=False)
    fingerprint: str = ""
    """SHA-256 of the only accepted certificate, hex; pins instead of verifying a chain."""


class BMC(
    Power, Boot, VirtualMedia, HttpBoot, AssetTags, SecureBoot, Offers, Systems, InventoryReader, Firmware, Indicator,
    ManagerControl, Events, Protocol,
):  # fmt: skip
    """All capabilities together, as handed out by a pool."""


class Pool(Protocol):
    """Hands out one shared BMC client for each BMC; an endpoint that changed replaces the old session."""

    def get(self, endpoint: BMCEndpoint) -> BMC:
        """The client for this endpoint, connected lazily; never blocks."""
        ...

    async def certificate(self, address: str, port: int) -> str:
        """SHA-256 in hexadecimal of the certificate shown there now. No credentials are sent. Raises BMCError."""
        ...

    def expect_silence(self, key: str, error: BMCError) -> None:
        """This BMC did not answer another process, with this error; one that was asked in this process is known."""
        ...

    async def drop(self, key: str) -> None:
        """Close and forget the client of this BMC (log out)."""
        ...

    async def aclose(self) -> None:
        """Log out of all BMCs and close their connections."""
        ...
