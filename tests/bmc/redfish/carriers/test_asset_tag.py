"""Asset tags over Redfish."""

from typing import Any

import pytest
import structlog

from metal.bmc.carriers.asset_tag import AssetTag
from metal.bmc.errors import BMCBadRequest
from tests.bmc.redfish.machine import fake, redfish, system
from tests.bmc.test_calls import connect
from tests.redfish.fakes import SYSTEM, FakeBMC, answer, complaint

pytestmark = pytest.mark.looptime
CHASSIS, NONCE = "/redfish/v1/Chassis/1", "bm9uY2Utb2YtdGhpcy1ib290"


def tagged(maker: str = "Contoso", *, of_system: str | None = "R2-17", of_chassis: str | None = "C-4") -> FakeBMC:
    """A system and its chassis; None for a resource without the property."""
    own = {} if of_system is None else {"AssetTag": of_system}
    bmc = fake(system(Manufacturer=maker, Links={"Chassis": [{"@odata.id": CHASSIS}]}, **own))
    shown: dict[str, Any] = {"@odata.id": CHASSIS, "Id": "1"}
    bmc.resources[CHASSIS] = shown | ({} if of_chassis is None else {"AssetTag": of_chassis})
    return bmc


@pytest.mark.parametrize(
    ("maker", "places"),
    [("Contoso", [SYSTEM, CHASSIS]), ("Lenovo", [CHASSIS, SYSTEM]), ("Dell Inc.", [CHASSIS, SYSTEM])],
)
async def test_both_places_are_read_the_one_that_the_firmware_shows_first(maker: str, places: list[str]) -> None:
    """The system, or the chassis at Lenovo and Dell."""
    assert [tag.place for tag in await redfish(tagged(maker)).asset_tags(SYSTEM)] == places


async def test_a_resource_without_the_property_is_no_place() -> None:
    """An empty or null tag is one."""
    assert [tag.place for tag in await redfish(tagged(of_system=None)).asset_tags(SYSTEM)] == [CHASSIS]
    assert [tag.value for tag in await redfish(tagged(of_system="", of_chassis=None)).asset_tags(SYSTEM)] == [""]
    assert await redfish(fake()).asset_tags(SYSTEM) == ()


async def test_a_tag_is_written_read_back_and_put_back() -> None:
    """The user's tag is the value before."""
    bmc = tagged()
    view = redfish(bmc)
    (former, _) = await view.asset_tags(SYSTEM)
    assert await view.set_asset_tag(SYSTEM, former.place, NONCE) == AssetTag(SYSTEM, NONCE)
    assert (await view.set_asset_tag(SYSTEM, former.place, former.value)).value == "R2-17"
    assert [request.body for request in bmc.seen("PATCH")] == [{"AssetTag": NONCE}, {"AssetTag": "R2-17"}]


async def test_a_tag_that_is_so_already_is_not_written() -> None:
    """One read."""
    bmc = tagged()
    await redfish(bmc).set_asset_tag(SYSTEM, SYSTEM, "R2-17")
    assert not bmc.seen("PATCH")


@pytest.mark.parametrize("kept", ["R2-17", NONCE[:8]])
async def test_a_discarded_or_shortened_tag_is_seen(kept: str) -> None:
    """The result is what was read back."""
    bmc = tagged()
    bmc.fault("PATCH", SYSTEM, answer(204))
    view = redfish(bmc)
    bmc.resources[SYSTEM]["AssetTag"] = kept
    assert (await view.set_asset_tag(SYSTEM, SYSTEM, NONCE)).value == kept


@pytest.mark.behaviour("BMC", "A nonce in the asset tag is in no log line, and in no error of the BMC that quotes it.")
async def test_a_nonce_is_not_logged() -> None:
    """Neither as an argument, in the BMC's words, nor in a repr."""
    bmc = tagged()
    bmc.fault("PATCH", SYSTEM, answer(400, complaint(f"The value {NONCE} is too long.")))
    with structlog.testing.capture_logs() as logs:
        with pytest.raises(BMCBadRequest, match=r"The value \*\*\* is too long"):
            await connect(bmc).set_asset_tag(SYSTEM, SYSTEM, NONCE)
        tag = await connect(bmc).set_asset_tag(SYSTEM, SYSTEM, NONCE)
    assert [line["place"] for line in logs if line["event"] == "BMC write"] == [SYSTEM, SYSTEM]
    assert NONCE not in repr(logs) + repr(tag)
