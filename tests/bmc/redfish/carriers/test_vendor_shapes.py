"""Virtual media in the shapes of known BMCs, written after their documentation and reports about them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from metal.bmc.carriers.offers import Way
from tests.bmc.redfish.carriers.media import OTHER, URL, MediaBMC, slot, with_media
from tests.bmc.redfish.machine import MANAGER, redfish
from tests.redfish.fakes import SYSTEM

pytestmark = pytest.mark.looptime
OF_SYSTEM, OF_MANAGER = f"{SYSTEM}/VirtualMedia", f"{MANAGER}/VirtualMedia"
LISTED = {
    "TransferMethod@Redfish.AllowableValues": ["Stream"],
    "TransferProtocolType@Redfish.AllowableValues": ["CIFS", "HTTP", "HTTPS", "NFS"],
}


@dataclass(frozen=True)
class Shape:
    """Slots of a BMC, which of them is used, and the body of the insertion that it takes."""

    name: str
    manufacturer: str
    slots: tuple[dict[str, Any], ...]
    used: str
    body: dict[str, Any]
    of_manager: bool = True
    traits: dict[str, Any] = field(default_factory=dict)

    def bmc(self) -> MediaBMC:
        made = with_media(*self.slots, of_manager=self.of_manager, Manufacturer=self.manufacturer)
        for name, value in self.traits.items():
            setattr(made, name, value)
        return made


SHAPES = [
    Shape(
        "iDRAC since 6.00", "Dell Inc.",
        tuple(slot(f"{OF_SYSTEM}/{n}", ("CD", "DVD", "USBStick"), insert=LISTED, WriteProtected=None) for n in (1, 2)),
        f"{OF_SYSTEM}/1", {"Image": URL, "TransferProtocolType": "HTTP", "TransferMethod": "Stream"}, of_manager=False,
    ),
    Shape(
        "iDRAC before 6.00", "Dell Inc.",
        (slot(f"{OF_MANAGER}/RemovableDisk", ("USBStick",)), slot(f"{OF_MANAGER}/CD")),
        f"{OF_MANAGER}/CD", {"Image": URL},
    ),
    Shape(
        "iLO 5 and 6", "HPE",
        (slot(f"{OF_MANAGER}/1", ("Floppy", "USBStick")),
         slot(f"{OF_MANAGER}/2", Oem={"Hpe": {"BootOnNextServerReset": False}}, Image="", ImageName="")),
        f"{OF_MANAGER}/2", {"Image": URL},
    ),
    Shape(
        "XCC", "Lenovo",
        (slot(f"{OF_MANAGER}/Remote1", actions=False), slot(f"{OF_MANAGER}/RDOC1"),
         slot(f"{OF_MANAGER}/EXT1", actions=False), slot(f"{OF_MANAGER}/EXT2", actions=False)),
        f"{OF_MANAGER}/EXT1", {"Image": URL, "Inserted": True, "WriteProtected": True},
    ),
    Shape(
        "Supermicro X12", "Supermicro", (slot(f"{OF_MANAGER}/CD1"),), f"{OF_MANAGER}/CD1",
        {"Image": URL}, traits={"unknown": ("Inserted", "WriteProtected"), "keeps_image": True},
    ),
    Shape(
        "OpenBMC", "OpenBMC",
        (slot(f"{OF_MANAGER}/Slot_0", ("CD", "USBStick"), insert={"@Redfish.ActionInfo": "/none"}),),
        f"{OF_MANAGER}/Slot_0", {"Image": URL, "TransferProtocolType": "HTTP"},
        traits={"required": ("TransferProtocolType",), "late": 1},
    ),
    Shape(
        "DGX", "NVIDIA", (slot(f"{OF_MANAGER}/CD1", MediaTypes=[]),), f"{OF_MANAGER}/CD1",
        {"Image": URL, "UserName": "none", "Password": "none"}, traits={"required": ("UserName", "Password")},
    ),
]  # fmt: skip
each = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


@each
async def test_an_iso_is_inserted_in_the_right_slot_and_ejected(shape: Shape) -> None:
    """The first usable slot, in as many requests as refusals; a stale medium is replaced."""
    bmc = shape.bmc()
    bmc.resources["/none"] = {"Parameters": []}
    view = redfish(bmc)
    (chosen, *_) = await view.media_slots(SYSTEM)
    assert (chosen.uri, chosen.is_usable) == (shape.used, True)
    for image in (OTHER, URL):
        while not (held := await view.insert_medium(SYSTEM, chosen.uri, image)).is_ready(image):
            pass
        assert held.inserted
    sent = [request.body for request in bmc.requests if isinstance(request.body, dict) and "Image" in request.body]
    assert sent[-1] == shape.body
    assert not (await view.eject_medium(SYSTEM, chosen.uri)).inserted


@each
async def test_virtual_media_are_offered(shape: Shape) -> None:
    """Without a reason against it."""
    bmc = shape.bmc()
    (offer, *_) = await redfish(bmc).offered_methods(SYSTEM)
    assert (offer.way, offer.offered, offer.message) == (Way.VIRTUAL_MEDIA, True, "")


async def test_a_lenovo_with_another_bmc_uses_what_it_has() -> None:
    """Its slots have other names than those of XCC."""
    bmc = with_media(slot(f"{OF_MANAGER}/CD1"), of_manager=True, Manufacturer="Lenovo")
    assert [found.is_usable for found in await redfish(bmc).media_slots(SYSTEM)] == [True]
