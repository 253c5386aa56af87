"""The asset tag, which the firmware shows in SMBIOS (type 3): a nonce in it tells the booted system's requests apart.

The tag belongs to the user: who writes a nonce keeps the former value and puts it back at the same place.
"""

from dataclasses import dataclass, field
from typing import Protocol

LONGEST_NONCE = 32
"""Characters that every known BMC stores (Lenovo XCC REST API, PATCH of a Chassis); others store 48 to 63."""


@dataclass(frozen=True)
class AssetTag:
    """An asset tag at one place, from one read."""

    place: str
    """The system or chassis that has it, as `set_asset_tag` takes it."""
    value: str = field(default="", repr=False)


class AssetTags(Protocol):
    """Reads and writes asset tags."""

    async def asset_tags(self, uri: str) -> tuple[AssetTag, ...]:
        """The tags of the system and its chassis, the one that the firmware shows first; empty where there is none."""
        ...

    async def set_asset_tag(self, uri: str, place: str, value: str) -> AssetTag:
        """Write the tag at one place; returns what is read back, which a BMC may have shortened or discarded."""
        ...
