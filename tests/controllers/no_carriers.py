"""A BMC that carries no boot secret, for reconciler tests that boot by iPXE."""

from metal.bmc.boot import BootOverride
from metal.bmc.carriers.asset_tag import AssetTag
from metal.bmc.carriers.http_boot import HttpBootState
from metal.bmc.carriers.offers import Offer, Way
from metal.bmc.carriers.secure_boot import SecureBootState
from metal.bmc.carriers.virtual_media import MediaSlot
from metal.bmc.errors import BMCNotSupported
from metal.bmc.pool import BMC

_NONE = BMCNotSupported("The BMC offers no carrier.")


class NoCarriers(BMC):
    """Implements the protocols of metal.bmc.carriers: reads find nothing, writes are not supported."""

    async def offered_methods(self, uri: str) -> tuple[Offer, ...]:
        return tuple(Offer(way, way is Way.IPXE, "" if way is Way.IPXE else str(_NONE)) for way in Way)

    async def media_slots(self, uri: str) -> tuple[MediaSlot, ...]:
        return ()

    async def insert_medium(self, uri: str, slot: str, url: str) -> MediaSlot:
        raise _NONE

    async def eject_medium(self, uri: str, slot: str) -> MediaSlot:
        raise _NONE

    async def set_medium_boot(self, uri: str) -> BootOverride:
        raise _NONE

    async def http_boot(self, uri: str) -> HttpBootState:
        return HttpBootState()

    async def set_http_boot(self, uri: str, url: str) -> HttpBootState:
        raise _NONE

    async def clear_http_boot(self, uri: str) -> HttpBootState:
        raise _NONE

    async def asset_tags(self, uri: str) -> tuple[AssetTag, ...]:
        return ()

    async def set_asset_tag(self, uri: str, place: str, value: str) -> AssetTag:
        raise _NONE

    async def secure_boot(self, uri: str) -> SecureBootState | None:
        return None
