"""Firmware resets over Redfish, with the BMC's actions and the TPM attributes of the vendor table."""

from typing import Any

import pytest

from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from tests.bmc.redfish.machine import fake, redfish, system
from tests.redfish.fakes import SYSTEM, FakeBMC, answer

pytestmark = pytest.mark.looptime
BIOS = f"{SYSTEM}/Bios"
SETTINGS = f"{BIOS}/Settings"
RESET = f"{BIOS}/Actions/Bios.ResetBios"


def with_bios(
    attributes: dict[str, Any], manufacturer: str = "Contoso", settings: dict[str, Any] | None = None, **bios: Any
) -> FakeBMC:
    """A BMC whose BIOS has a settings object, unless `settings` says otherwise."""
    bmc = fake(system(Manufacturer=manufacturer, Bios={"@odata.id": BIOS}))
    place = {"SettingsObject": {"@odata.id": SETTINGS}} if settings is None else settings
    bmc.resources[BIOS] = {"@odata.id": BIOS, "Attributes": attributes, "@Redfish.Settings": place, **bios}
    bmc.resources[SETTINGS] = {"@odata.id": SETTINGS, "Attributes": dict(attributes)}
    return bmc


async def test_the_bios_is_reset_by_the_action_that_it_offers() -> None:
    """At the action's target; the BIOS resource reports whether it is pending."""
    bmc = with_bios({}, Actions={"#Bios.ResetBios": {"target": RESET}}, ResetBiosToDefaultsPending=True)
    bmc.fault("POST", RESET, answer(204))
    view = redfish(bmc)
    await view.reset_bios(SYSTEM)
    (request,) = [one for one in bmc.seen("POST") if one.path == RESET]
    assert request.body == {}
    assert await view.is_bios_reset_pending(SYSTEM) is True


async def test_a_bios_that_does_not_tell_is_not_guessed() -> None:
    """The result is None."""
    assert await redfish(with_bios({})).is_bios_reset_pending(SYSTEM) is None


async def test_without_the_action_it_is_not_supported() -> None:
    """Nothing is sent; also for a system without a BIOS resource."""
    for bmc in (with_bios({}), fake()):
        with pytest.raises(BMCNotSupported):
            await redfish(bmc).reset_bios(SYSTEM)
        assert not [one for one in bmc.seen("POST") if "Bios" in one.path]


@pytest.mark.parametrize(
    ("manufacturer", "attributes", "written"),
    [
        ("Dell Inc.", {"Tpm2Hierarchy": "Enabled"}, {"Tpm2Hierarchy": "Clear"}),
        ("Dell Inc.", {"TpmCommand": "None"}, {"TpmCommand": "Clear"}),
        ("HPE", {"Tpm2Operation": "NoAction", "TpmState": "PresentEnabled"}, {"Tpm2Operation": "Clear"}),
        ("HPE", {"TpmOperation": "NoAction"}, {"TpmOperation": "Clear"}),
        ("NVIDIA", {"TpmOperation": "None"}, {"TpmOperation": "TPM Clear"}),
        ("Lenovo", {"TrustedComputingGroup_DeviceOperation": "None"},
         {"TrustedComputingGroup_DeviceOperation": "Clear"}),
    ],
)  # fmt: skip
async def test_each_vendors_attribute_is_written_where_changes_go_that_apply_later(
    manufacturer: str, attributes: dict[str, str], written: dict[str, str]
) -> None:
    """It is pending while the settings object has the value."""
    bmc = with_bios(attributes, manufacturer)
    view = redfish(bmc)
    assert await view.is_tpm_clear_pending(SYSTEM) is False
    bmc.fault("PATCH", SETTINGS, answer(200))
    await view.clear_tpm(SYSTEM)
    (request,) = bmc.seen("PATCH")
    bmc.resources[SETTINGS]["Attributes"] |= written
    assert (request.path, request.body) == (SETTINGS, {"Attributes": written})
    assert await view.is_tpm_clear_pending(SYSTEM) is True


async def test_where_on_reset_is_listed_it_is_said() -> None:
    """Without it, Dell keeps the value and creates no job."""
    settings = {"SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": ["OnReset", "Immediate"]}
    bmc = with_bios({"Tpm2Hierarchy": "Enabled"}, settings=settings)
    bmc.fault("PATCH", SETTINGS, answer(200))
    await redfish(bmc).clear_tpm(SYSTEM)
    (request,) = bmc.seen("PATCH")
    assert request.body["@Redfish.SettingsApplyTime"] == {"ApplyTime": "OnReset"}


async def test_without_a_settings_object_the_bios_itself_is_written() -> None:
    """Some firmware requires that."""
    bmc = with_bios({"Tpm2Operation": "NoAction"}, settings={})
    bmc.fault("PATCH", BIOS, answer(200))
    await redfish(bmc).clear_tpm(SYSTEM)
    assert [one.path for one in bmc.seen("PATCH")] == [BIOS]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"ProcVirtualization": "Enabled"}, "no BIOS attribute"),
        ({"TpmOperation": "NoAction"}, "no BIOS attribute"),
        ({"Tpm2Operation": "NoAction", "TpmState": "NotPresent"}, "has no TPM"),
    ],
)
async def test_what_is_not_known_to_clear_a_tpm_is_not_tried(attributes: dict[str, str], said: str) -> None:
    """An attribute of the same name has other values at other vendors."""
    bmc = with_bios(attributes)
    with pytest.raises(BMCNotSupported, match=said):
        await redfish(bmc).clear_tpm(SYSTEM)
    assert not bmc.seen("PATCH")


async def test_a_refusal_is_told() -> None:
    """With the BMC's own message."""
    bmc = with_bios({"Tpm2Operation": "NoAction"})
    bmc.fault("PATCH", SETTINGS, answer(400, {"error": {"message": "locked"}}))
    with pytest.raises(BMCBadRequest, match="locked"):
        await redfish(bmc).clear_tpm(SYSTEM)


async def test_a_bios_whose_attribute_is_gone_tells_nothing() -> None:
    """Then it cannot be read back."""
    assert await redfish(with_bios({})).is_tpm_clear_pending(SYSTEM) is None
