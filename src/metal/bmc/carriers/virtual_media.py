"""Virtual media: an image at a URL that the BMC shows to the system as a CD."""

from dataclasses import dataclass, field
from typing import Protocol

from metal.bmc.boot import BootOverride

_CDS = frozenset({"CD", "DVD"})
_IDLE = "NotConnected"


@dataclass(frozen=True)
class MediaSlot:
    """One virtual drive of a BMC, from one read. Fields that the BMC does not report are empty."""

    uri: str
    media_types: tuple[str, ...] = ()
    inserted: bool = False
    image: str = field(default="", repr=False)
    """URL of the image, which holds a secret."""
    image_name: str = field(default="", repr=False)
    connected_via: str = ""
    schemes: tuple[str, ...] = ("http", "https")
    """Schemes of URLs that the BMC accepts."""
    takes_url: bool = True
    """False for a slot that takes uploads or a console's media only (table of vendor facts)."""

    @property
    def takes_cd(self) -> bool:
        """True for a drive that shows a CD or DVD, and for one that does not report what it shows."""
        return not self.media_types or not _CDS.isdisjoint(self.media_types)

    @property
    def is_usable(self) -> bool:
        """True when an ISO can be inserted by its URL."""
        return self.takes_cd and self.takes_url and bool(self.schemes)

    def names(self, url: str) -> bool:
        """True when the BMC reports this image; by its last segment where it reports no URL."""
        return self.image == url or (not self.image and bool(url) and self.image_name == url.rpartition("/")[2])

    def is_ready(self, url: str) -> bool:
        """True when this image is inserted and connected, so that the system can read it now."""
        return self.inserted and self.connected_via != _IDLE and self.names(url)


class VirtualMedia(Protocol):
    """Inserts and ejects media. None of these waits: a slot that is not as requested yet is read again later."""

    async def media_slots(self, uri: str) -> tuple[MediaSlot, ...]:
        """All slots of this system, the usable ones first; empty where the BMC offers none."""
        ...

    async def insert_medium(self, uri: str, slot: str, url: str) -> MediaSlot:
        """Insert the image at `url`, after another one was ejected; returns the slot as read back.

        Safe to repeat until `MediaSlot.is_ready`: an image that the BMC reports already is not requested again, so one
        that never becomes ready has to be ejected. The last segment of the URL should be unique to this boot, because
        some BMCs report nothing else of it.

        Raises: ValueError unless the URL ends with .iso, which many BMCs require; BMCError with the BMC's reason when
        it refuses the image or gives up.
        """
        ...

    async def eject_medium(self, uri: str, slot: str) -> MediaSlot:
        """Eject what is inserted; returns the slot as read back, which may still be occupied."""
        ...

    async def set_medium_boot(self, uri: str) -> BootOverride:
        """Boot once from the inserted medium at the next start; returns the override as read back.

        Raises: BMCNotSupported when the BMC lists no such target.
        """
        ...
