"""Boot override and order."""

from typing import Any

import pytest

from metal.bmc.boot import BootOverride, BootTarget
from metal.bmc.errors import BMCBadRequest, BMCNotSupported, BMCServerError
from tests.bmc.redfish.machine import fake, redfish, system
from tests.redfish.fakes import SYSTEM, FakeBMC, answer

pytestmark = pytest.mark.looptime
ENABLED, TARGET, MODE = "BootSourceOverrideEnabled", "BootSourceOverrideTarget", "BootSourceOverrideMode"
ALLOWED = "@Redfish.AllowableValues"


def with_boot(**boot: Any) -> FakeBMC:
    return fake(system(Boot={name.replace("__", "@Redfish."): value for name, value in boot.items()}))


def patches(bmc: FakeBMC) -> list[Any]:
    return [request.body["Boot"] for request in bmc.seen("PATCH")]


async def test_network_boot_is_once_without_a_mode_and_read_back() -> None:
    """Three requests; a mode is not sent to a machine that reports none."""
    bmc = fake()
    view = redfish(bmc)
    await view.system(SYSTEM)
    before = len(bmc.requests)
    override = await view.set_network_boot(SYSTEM)
    assert patches(bmc) == [{ENABLED: "Once", TARGET: "Pxe"}]
    assert override == BootOverride("Once", "Pxe")
    assert override.is_network
    assert len(bmc.requests) - before == 3


async def test_a_bmc_that_ignores_once_is_found_out() -> None:
    """The result is what was read back, not what was requested."""
    bmc = fake()
    bmc.fault("PATCH", SYSTEM, answer(204))
    bmc.resources[SYSTEM]["Boot"] |= {ENABLED: "Continuous", TARGET: "Pxe"}
    assert (await redfish(bmc).set_network_boot(SYSTEM)).enabled == "Continuous"


async def test_where_once_is_not_offered_continuous_is_used() -> None:
    """The caller sees it in the result and clears it."""
    bmc = with_boot(**{f"{ENABLED}{ALLOWED}": ["Disabled", "Continuous"], ENABLED: "Disabled"})
    assert (await redfish(bmc).set_network_boot(SYSTEM)).enabled == "Continuous"


async def test_a_target_that_is_not_offered_is_not_supported() -> None:
    """Nothing is written; the sentence says what is offered."""
    bmc = with_boot(**{f"{TARGET}{ALLOWED}": ["Hdd", "Cd"]})
    with pytest.raises(BMCNotSupported, match="cannot boot from Pxe: it offers Hdd, Cd"):
        await redfish(bmc).set_network_boot(SYSTEM)
    assert not patches(bmc)


async def test_the_bmcs_spelling_of_a_target_is_used() -> None:
    """PXE, pxe and Pxe all exist on real BMCs."""
    bmc = with_boot(**{f"{TARGET}{ALLOWED}": ["PXE"]})
    await redfish(bmc).set_network_boot(SYSTEM)
    assert patches(bmc)[0][TARGET] == "PXE"


@pytest.mark.parametrize(
    ("mode", "modes", "target", "sent"),
    [
        ("Legacy", ["Legacy", "UEFI"], BootTarget.PXE, "UEFI"),
        ("Legacy", ["Legacy"], BootTarget.PXE, None),
        ("Legacy", [], BootTarget.PXE, None),
        ("Legacy", [], BootTarget.UEFI_HTTP, "UEFI"),
        ("UEFI", ["Legacy", "UEFI"], BootTarget.PXE, None),
        ("", ["Legacy", "UEFI"], BootTarget.UEFI_HTTP, None),
    ],
)
async def test_the_mode_is_sent_only_where_needed(
    mode: str, modes: list[str], target: BootTarget, sent: str | None
) -> None:
    """A system that reports another mode than UEFI and supports UEFI gets it; others are not changed."""
    bmc = with_boot(**{MODE: mode, f"{MODE}{ALLOWED}": modes})
    await redfish(bmc).set_network_boot(SYSTEM, target)
    assert patches(bmc)[0].get(MODE) == sent


@pytest.mark.behaviour("BMC", "A Supermicro BMC that reports a boot mode receives it with a network boot override.")
async def test_supermicro_always_gets_the_mode() -> None:
    """Its firmware resets the mode otherwise."""
    bmc = fake(system(Manufacturer="Supermicro", Boot={MODE: "UEFI"}))
    await redfish(bmc).set_network_boot(SYSTEM)
    assert patches(bmc)[0][MODE] == "UEFI"


@pytest.mark.behaviour("BMC", "A Supermicro BMC that reports no boot mode receives none.")
async def test_supermicro_that_reports_no_mode_gets_none() -> None:
    """Old boards reject unknown properties."""
    bmc = fake(system(Manufacturer="Supermicro"))
    await redfish(bmc).set_network_boot(SYSTEM)
    assert MODE not in patches(bmc)[0]


@pytest.mark.parametrize("status", [400, 500])
async def test_a_refused_mode_is_left_out(status: int) -> None:
    """The target is more important than the mode."""
    bmc = with_boot(**{MODE: "Legacy", f"{MODE}{ALLOWED}": ["Legacy", "UEFI"]})
    bmc.fault("PATCH", SYSTEM, answer(status))
    override = await redfish(bmc).set_network_boot(SYSTEM)
    assert [MODE in patch for patch in patches(bmc)] == [True, False]
    assert override.is_network


@pytest.mark.parametrize(("maker", "status"), [("Contoso", 503), ("Supermicro", 500)])
async def test_the_mode_is_not_left_out_for_a_passing_failure(maker: str, status: int) -> None:
    """A busy BMC is retried later; one that needs the mode is not sent a request without it."""
    bmc = fake(system(Manufacturer=maker, Boot={MODE: "Legacy", f"{MODE}{ALLOWED}": ["Legacy", "UEFI"]}))
    bmc.fault("PATCH", SYSTEM, answer(status))
    with pytest.raises(BMCServerError):
        await redfish(bmc).set_network_boot(SYSTEM)
    assert len(patches(bmc)) == 1


async def test_http_boot_takes_a_uri() -> None:
    """Optional; not sent for PXE."""
    bmc = fake()
    uri = "http://10.0.0.2/boot.efi"
    override = await redfish(bmc).set_network_boot(SYSTEM, BootTarget.UEFI_HTTP, http_boot_uri=uri)
    assert override == BootOverride("Once", "UefiHttp", "", uri)
    await redfish(bmc).set_network_boot(SYSTEM, http_boot_uri=uri)
    assert "HttpBootUri" not in patches(bmc)[1]


async def test_the_etag_of_the_read_guards_the_write() -> None:
    """A concurrent change is not overwritten."""
    bmc = fake()
    bmc.etags[SYSTEM] = '"7"'
    await redfish(bmc).set_network_boot(SYSTEM)
    assert bmc.seen("PATCH")[0].headers["if-match"] == '"7"'


async def test_boot_settings_go_to_the_future_state_where_the_quirk_says_so() -> None:
    """ASRock accepts boot overrides only there; they are read back there too."""
    future = f"{SYSTEM}/SD"
    settings = {"SettingsObject": {"@odata.id": future}}
    bmc = fake(system(Manufacturer="ASRockRack", **{"@Redfish.Settings": settings}))
    bmc.resources[future] = {"@odata.id": future, "Boot": {}}
    assert (await redfish(bmc).set_network_boot(SYSTEM)).is_network
    assert [request.path for request in bmc.seen("PATCH")] == [future]


async def test_a_clear_override_is_left_alone() -> None:
    """One read, no write."""
    bmc = fake()
    assert (await redfish(bmc).clear_boot_override(SYSTEM)).enabled == "Disabled"
    assert not patches(bmc)


async def test_clearing_disables() -> None:
    """The first body works on most BMCs."""
    bmc = fake()
    bmc.resources[SYSTEM]["Boot"] |= {ENABLED: "Continuous", TARGET: "Pxe"}
    override = await redfish(bmc).clear_boot_override(SYSTEM)
    assert patches(bmc) == [{ENABLED: "Disabled"}]
    assert not override.is_network


async def test_clearing_falls_back_to_target_none() -> None:
    """For BMCs that refuse, or silently ignore, Disabled alone."""
    for first in (answer(400), answer(204)):
        bmc = fake()
        bmc.resources[SYSTEM]["Boot"] |= {ENABLED: "Once", TARGET: "Pxe"}
        bmc.fault("PATCH", SYSTEM, first)
        override = await redfish(bmc).clear_boot_override(SYSTEM)
        assert patches(bmc)[1] == {ENABLED: "Disabled", TARGET: "None"}
        assert not override.is_network


async def test_as_a_last_resort_the_disk_displaces_the_network() -> None:
    """A disk override prevents that a tenant's machine boots from the network at its next restart."""
    bmc = with_boot(**{ENABLED: "Continuous", TARGET: "Pxe", f"{TARGET}{ALLOWED}": ["Pxe", "Hdd"]})
    bmc.fault("PATCH", SYSTEM, answer(400))
    override = await redfish(bmc).clear_boot_override(SYSTEM)
    assert override == BootOverride("Continuous", "Hdd")


async def test_a_disk_override_that_cannot_be_cleared_is_no_emergency() -> None:
    """An override that is not a network boot needs no last resort and is no error."""
    bmc = with_boot(**{ENABLED: "Continuous", TARGET: "Hdd", f"{TARGET}{ALLOWED}": ["Pxe", "Hdd"]})
    bmc.fault("PATCH", SYSTEM, answer(400))
    assert not (await redfish(bmc).clear_boot_override(SYSTEM)).is_network
    assert len(patches(bmc)) == 1


async def test_a_network_override_that_stays_is_an_error() -> None:
    """The error is raised when the next boot would still be a network boot."""
    bmc = with_boot(**{ENABLED: "Continuous", TARGET: "Pxe"})
    bmc.fault("PATCH", SYSTEM, *[answer(500)] * 3)
    with pytest.raises(BMCServerError):
        await redfish(bmc).clear_boot_override(SYSTEM)


async def test_a_network_override_that_is_ignored_away_comes_back_as_it_is() -> None:
    """A BMC that accepts the change and ignores it: the result shows the override that remains."""
    bmc = with_boot(**{ENABLED: "Continuous", TARGET: "Pxe"})
    bmc.fault("PATCH", SYSTEM, *[answer(204)] * 3)
    assert (await redfish(bmc).clear_boot_override(SYSTEM)).is_network


async def test_boot_order_is_written_when_it_differs() -> None:
    """An equal order is not written."""
    bmc = fake()
    await redfish(bmc).set_boot_order(SYSTEM, ("Boot0001", "Boot0002"))
    await redfish(bmc).set_boot_order(SYSTEM, ("Boot0002", "Boot0001"))
    assert patches(bmc) == [{"BootOrder": ["Boot0002", "Boot0001"]}]


async def test_an_unknown_boot_device_is_named() -> None:
    """The message lists the existing ones."""
    with pytest.raises(BMCBadRequest, match="bootOrder names Boot0009; this system has Boot0001, Boot0002"):
        await redfish(fake()).set_boot_order(SYSTEM, ("Boot0009",))


async def test_a_system_without_boot_order_says_so() -> None:
    """No write is attempted."""
    with pytest.raises(BMCNotSupported, match="no boot order"):
        await redfish(with_boot()).set_boot_order(SYSTEM, ("Boot0001",))
