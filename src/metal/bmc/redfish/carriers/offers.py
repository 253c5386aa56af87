"""Learns from a BMC's resources which ways to boot it offers, and why not the others."""

from collections.abc import Awaitable, Callable, Sequence

from metal.bmc.boot import BootTarget
from metal.bmc.carriers.offers import Offer, Way
from metal.bmc.carriers.virtual_media import MediaSlot
from metal.bmc.errors import (
    BMCBadRequest,
    BMCBusy,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCProtocolError,
    BMCServerError,
)
from metal.bmc.redfish.boot import medium_target
from metal.bmc.redfish.boot import offers as offers_target
from metal.bmc.redfish.carriers.asset_tag import RedfishAssetTags
from metal.bmc.redfish.carriers.http_boot import RedfishHttpBoot
from metal.bmc.redfish.carriers.secure_boot import RedfishSecureBoot
from metal.bmc.redfish.carriers.virtual_media import RedfishVirtualMedia
from metal.redfish import Resource
from metal.redfish.resources import System

_LASTING = (BMCNotFound, BMCNotSupported, BMCBadRequest, BMCForbidden, BMCServerError, BMCProtocolError)
"""Answers that say something about the resource, and not that the BMC cannot be asked now."""


class RedfishCarriers(RedfishVirtualMedia, RedfishHttpBoot, RedfishAssetTags, RedfishSecureBoot):
    """All carriers together."""

    async def offered_methods(self, uri: str) -> tuple[Offer, ...]:
        """A resource that answers with an error is not offered, with the BMC's words; one request for each resource."""
        resource, system = await self._read_system(uri)
        questions: dict[Way, Callable[[Resource, System], Awaitable[Offer]]] = {
            Way.VIRTUAL_MEDIA: self._offers_media,
            Way.UEFI_HTTP: self._offers_http,
            Way.IPXE: self._offers_pxe,
            Way.ASSET_TAG: self._offers_tag,
        }
        return tuple([await _asked(way, ask(resource, system)) for way, ask in questions.items()])

    async def _offers_media(self, resource: Resource, system: System) -> Offer:
        why = _media_lacks(await self._slots_of(system))
        if not why and not offers_target(system, medium_target(system)):
            why = "The BMC lists neither of the boot targets Cd and UsbCd."
        return Offer(Way.VIRTUAL_MEDIA, not why, why)

    async def _offers_http(self, resource: Resource, system: System) -> Offer:
        if await self._attribute(system) is not None:
            return Offer(Way.UEFI_HTTP, needs_reset=True)
        boot = (await self._view(resource.path)).resource.data.get("Boot") or {}
        why = "" if "HttpBootUri" in boot else "The BMC shows neither HttpBootUri nor a known BIOS attribute for a URL."
        if not why and not offers_target(system, BootTarget.UEFI_HTTP):
            why = "The BMC does not list the boot target UefiHttp."
        return Offer(Way.UEFI_HTTP, not why, why)

    async def _offers_pxe(self, resource: Resource, system: System) -> Offer:
        why = "" if offers_target(system, BootTarget.PXE) else "The BMC does not list the boot target Pxe."
        return Offer(Way.IPXE, not why, why)

    async def _offers_tag(self, resource: Resource, system: System) -> Offer:
        why = "" if await self._tags(resource, system) else "Neither the system nor its chassis has an AssetTag."
        return Offer(Way.ASSET_TAG, not why, why)


async def _asked(way: Way, offer: Awaitable[Offer]) -> Offer:
    try:
        return await offer
    except _LASTING as error:
        if isinstance(error, BMCBusy):
            raise
        return Offer(way, False, str(error))


def _media_lacks(slots: Sequence[MediaSlot]) -> str:
    if not slots:
        return "The BMC has no virtual media."
    cds = [slot for slot in slots if slot.takes_cd]
    if not cds:
        return "No virtual medium of the BMC is a CD or DVD."
    if not any(slot.takes_url for slot in cds):
        return "No virtual medium of the BMC takes an image by its URL."
    if not any(slot.is_usable for slot in cds):
        return "The BMC takes images neither by HTTP nor by HTTPS."
    return ""
