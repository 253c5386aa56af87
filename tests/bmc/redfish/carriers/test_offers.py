"""Which ways to boot a BMC offers, and why not the others."""

from typing import Any

import pytest

from metal.bmc.carriers.offers import Offer, Way
from metal.bmc.errors import BMCBusy, BMCUnreachable
from tests.bmc.redfish.carriers.media import TARGETS, MediaBMC, slot, with_media
from tests.bmc.redfish.carriers.test_http_boot import HPE, with_attributes
from tests.bmc.redfish.machine import fake, redfish
from tests.redfish.fakes import SYSTEM, FakeBMC, answer, complaint

pytestmark = pytest.mark.looptime
CD, COLLECTION = f"{SYSTEM}/VirtualMedia/Cd", f"{SYSTEM}/VirtualMedia"


async def offers(bmc: FakeBMC) -> dict[Way, Offer]:
    return {offer.way: offer for offer in await redfish(bmc).offered_methods(SYSTEM)}


def with_all(*slots: dict[str, Any], **boot: Any) -> MediaBMC:
    listed = {TARGETS: ["None", "Pxe", "UefiHttp", "Cd"], "HttpBootUri": None}
    return with_media(*(slots or (slot(CD),)), Boot={**listed, **boot}, AssetTag="")


async def test_a_bmc_with_everything_offers_all_ways() -> None:
    """In the order of the ways, each without a reason."""
    assert await redfish(with_all()).offered_methods(SYSTEM) == tuple(Offer(way) for way in Way)


async def test_a_plain_bmc_offers_ipxe_and_says_why_nothing_else() -> None:
    """One sentence each."""
    found = await offers(fake())
    assert found[Way.IPXE].offered
    assert {way: offer.message for way, offer in found.items() if not offer.offered} == {
        Way.VIRTUAL_MEDIA: "The BMC has no virtual media.",
        Way.UEFI_HTTP: "The BMC shows neither HttpBootUri nor a known BIOS attribute for a URL.",
        Way.ASSET_TAG: "Neither the system nor its chassis has an AssetTag.",
    }


@pytest.mark.parametrize(
    ("bmc", "way", "why"),
    [
        (with_all(slot(CD, ("USBStick",))), Way.VIRTUAL_MEDIA, "No virtual medium of the BMC is a CD or DVD."),
        (with_all(slot(CD, insert={"TransferProtocolType@Redfish.AllowableValues": ["CIFS", "NFS"]})),
         Way.VIRTUAL_MEDIA, "The BMC takes images neither by HTTP nor by HTTPS."),
        (with_all(**{TARGETS: ["Pxe", "UefiHttp"]}), Way.VIRTUAL_MEDIA,
         "The BMC lists neither of the boot targets Cd and UsbCd."),
        (with_all(**{TARGETS: ["Pxe", "Cd"]}), Way.UEFI_HTTP, "The BMC does not list the boot target UefiHttp."),
        (with_all(**{TARGETS: ["UefiHttp", "Cd"]}), Way.IPXE, "The BMC does not list the boot target Pxe."),
    ],
)  # fmt: skip
async def test_what_is_not_offered_has_a_reason(bmc: MediaBMC, way: Way, why: str) -> None:
    """The other ways are offered all the same."""
    found = await offers(bmc)
    assert [offer for offer in found.values() if not offer.offered] == [Offer(way, False, why)]


async def test_a_bios_attribute_is_an_offer_that_needs_a_reset() -> None:
    """Also where the BMC shows HttpBootUri, which it would refuse."""
    assert (await offers(with_attributes(HPE, "HPE")))[Way.UEFI_HTTP] == Offer(Way.UEFI_HTTP, needs_reset=True)


@pytest.mark.parametrize("status", [400, 403, 404, 500])
async def test_a_resource_that_fails_is_not_offered_with_the_bmcs_words(status: int) -> None:
    """Such as a missing licence; the other ways are still learnt."""
    bmc = with_all()
    bmc.fault("GET", COLLECTION, answer(status, complaint("A licence is missing.", "iLO.2.8.LicenseKeyRequired")))
    found = await offers(bmc)
    assert "A licence is missing" in found[Way.VIRTUAL_MEDIA].message
    assert [way for way, offer in found.items() if offer.offered] == [Way.UEFI_HTTP, Way.IPXE, Way.ASSET_TAG]


@pytest.mark.parametrize(("fault", "error"), [(answer(503), BMCBusy), (BMCUnreachable("gone"), BMCUnreachable)])
async def test_a_bmc_that_cannot_be_asked_now_is_an_error(fault: Any, error: type[Exception]) -> None:
    """A busy BMC says nothing about what it offers."""
    bmc = with_all()
    bmc.fault("GET", COLLECTION, fault)
    with pytest.raises(error):
        await offers(bmc)
