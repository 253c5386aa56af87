"""Systems, managers, LED, BIOS."""

from typing import Any

import pytest

from metal.bmc.errors import BMCBadRequest, BMCManagerNotFound, BMCNotFound, BMCNotSupported, BMCServerError
from metal.bmc.pool import BMC
from metal.bmc.power import PowerState
from metal.bmc.systems import SystemInfo
from metal.redfish import ConnectionDropped
from tests.bmc.redfish.machine import MANAGER, UUID, fake, manager, redfish, system
from tests.redfish.fakes import SYSTEM, answer

pytestmark = pytest.mark.looptime


def test_redfish_bmc_is_a_bmc() -> None:
    """mypy checks the signatures here."""
    view: BMC = redfish(fake())
    assert "RedfishBMC" in repr(view)


async def test_a_system_is_one_request_and_complete() -> None:
    """UUID in lower case, text trimmed, memory in bytes."""
    bmc = fake()
    view = redfish(bmc)
    await view.system(SYSTEM)
    before = len(bmc.requests)
    info = await view.system(SYSTEM)
    assert len(bmc.requests) - before == 1
    assert (info.uri, info.uuid, info.manufacturer, info.model) == (SYSTEM, UUID, "Contoso", "3500")
    assert (info.sku, info.serial_number, info.bios_version) == ("8675309", "437XR1138R2", "P79")
    assert (info.power_state, info.indicator_led, info.total_memory_bytes) == (PowerState.OFF, "Off", 96 * 1024**3)
    assert (info.boot_order, info.bootable) == (("Boot0001", "Boot0002"), True)


async def test_a_system_that_says_nothing_is_all_unknown() -> None:
    """Missing and unknown values are not errors."""
    nothing = {"@odata.id": SYSTEM, "PowerState": "Snoozing"}
    assert await redfish(fake(nothing)).system(SYSTEM) == SystemInfo(uri=SYSTEM, uuid="", bootable=False)


async def test_all_systems_come_in_the_bmcs_order() -> None:
    """Systems are identified by UUID elsewhere, not by position."""
    second = system(UUID="AA", **{"@odata.id": "/redfish/v1/Systems/0"})
    found = await redfish(fake(system(), second)).systems()
    assert [info.uuid for info in found] == [UUID, "aa"]


async def test_one_unreadable_system_fails_the_list() -> None:
    """Otherwise it would seem to be removed."""
    bmc = fake()
    bmc.fault("GET", SYSTEM, answer(500))
    with pytest.raises(BMCServerError):
        await redfish(bmc).systems()


async def test_a_gone_system_is_not_found() -> None:
    """404 of the system itself."""
    with pytest.raises(BMCNotFound, match="Systems/9"):
        await redfish(fake()).system("/redfish/v1/Systems/9")


@pytest.mark.behaviour("BMC", "A device without systems or managers is refused as not supported.")
@pytest.mark.parametrize("call", ["systems", "manager"])
async def test_a_bmc_without_systems_or_managers_says_so(call: str) -> None:
    """A switch or a power supply serves Redfish too."""
    bmc = fake()
    bmc.resources["/redfish/v1/"] = {"RedfishVersion": "1.6.0"}
    with pytest.raises(BMCNotSupported, match=r"manages no|lists no"):
        await getattr(redfish(bmc), call)()


def named(name: str, **changes: Any) -> dict[str, Any]:
    return manager(**{"@odata.id": f"/redfish/v1/Managers/{name}", "UUID": f"UUID-{name}", **changes})


async def test_the_manager_is_found_by_uuid() -> None:
    """Without regard to case."""
    bmc = fake(managers=(named("A"), named("B")))
    assert (await redfish(bmc).manager("uuid-b")).uri.endswith("/B")


@pytest.mark.behaviour("BMC", "The manager of a BMC is the one with a console; of several the first by path.")
@pytest.mark.parametrize(
    "console", [{"MaxConcurrentSessions": 4}, {"ConnectTypesSupported": ["KVMIP"], "MaxConcurrentSessions": None}]
)
async def test_else_the_one_with_a_console_and_the_smallest_path(console: dict[str, Any]) -> None:
    """Enclosure managers have no console."""
    rest = [named("A"), named("C", GraphicalConsole=console), named("B", GraphicalConsole=console)]
    bmc = fake(managers=(*rest, named("0", GraphicalConsole={"MaxConcurrentSessions": 0})))
    assert (await redfish(bmc).manager()).uri.endswith("/B")


@pytest.mark.behaviour("BMC", "A BMC none of whose managers has spec.bmcUUID is not used.", go="Uses another manager.")
async def test_another_manager_than_the_one_asked_for_is_never_used() -> None:
    """Neither at first nor when the known path leads to another manager later; the message has the UUIDs."""
    bmc = fake(managers=(named("A"),))
    view = redfish(bmc)
    with pytest.raises(BMCManagerNotFound, match=r"uuid-b in spec\.bmcUUID .the UUIDs are UUID-A.: correct"):
        await view.manager("uuid-b")
    await view.manager("uuid-a")
    bmc.resources["/redfish/v1/Managers/A"]["UUID"] = "another"
    with pytest.raises(BMCManagerNotFound):
        await view.reset_manager("uuid-a")


@pytest.mark.behaviour("BMC", "A BMC whose managers have no console uses the first manager.", go="Reports an error.")
async def test_else_the_first() -> None:
    """The first one is the fallback."""
    info = await redfish(fake(managers=(named("Z"), named("A")))).manager()
    assert (info.uri, info.sku, info.state, info.power_state) == (
        "/redfish/v1/Managers/Z",
        "P-1",
        "Enabled",
        PowerState.ON,
    )


async def test_a_known_manager_costs_one_request_until_it_is_gone() -> None:
    """After a firmware update its path may differ."""
    bmc = fake()
    view = redfish(bmc)
    await view.manager()
    before = len(bmc.requests)
    await view.manager()
    assert len(bmc.requests) - before == 1
    bmc.resources["/redfish/v1/Managers/New"] = bmc.resources.pop(MANAGER)
    bmc.resources["/redfish/v1/Managers"]["Members"] = [{"@odata.id": "/redfish/v1/Managers/New"}]
    assert (await view.manager()).uri == "/redfish/v1/Managers/New"


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [(None, "GracefulRestart"), (["ForceRestart"], "ForceRestart"), (["GracefulRestart"], "GracefulRestart")],
)
async def test_the_manager_restarts_gracefully_if_it_can(allowed: list[str] | None, kind: str) -> None:
    """Dell supports only one of them, others only the other."""
    target = f"{MANAGER}/Actions/Manager.Reset"
    action = {"target": target, "ResetType@Redfish.AllowableValues": allowed}
    bmc = fake(managers=(manager(Actions={"#Manager.Reset": action}),))
    await redfish(bmc).reset_manager()
    assert [request.body for request in bmc.seen("POST", target)] == [{"ResetType": kind}]


async def test_a_manager_that_hangs_up_instead_of_answering_restarts() -> None:
    """One request: it is not repeated when its answer is lost during the restart."""
    bmc = fake()
    target = f"{MANAGER}/Actions/Manager.Reset"
    bmc.fault("POST", target, ConnectionDropped("gone"))
    await redfish(bmc).reset_manager()
    assert len(bmc.seen("POST", target)) == 1


async def test_the_led_is_set_in_the_way_the_bmc_knows() -> None:
    """IndicatorLED, else LocationIndicatorActive, else an error."""
    bmc = fake()
    await redfish(bmc).set_indicator_led(SYSTEM, "Blinking")
    assert (await redfish(bmc).system(SYSTEM)).indicator_led == "Blinking"
    newer = fake(system(IndicatorLED=None, LocationIndicatorActive=False))
    await redfish(newer).set_indicator_led(SYSTEM, "Lit")
    assert newer.resources[SYSTEM]["LocationIndicatorActive"] is True
    assert (await redfish(newer).system(SYSTEM)).indicator_led == "Lit"
    with pytest.raises(BMCNotSupported, match="no indicator LED"):
        await redfish(fake(system(IndicatorLED=None))).set_indicator_led(SYSTEM, "Lit")


async def test_an_unknown_led_state_is_refused_before_asking() -> None:
    """The message lists the three values."""
    bmc = fake()
    with pytest.raises(BMCBadRequest, match="Off, Lit, Blinking, not 'Disco'"):
        await redfish(bmc).set_indicator_led(SYSTEM, "Disco")
    assert not bmc.requests


async def test_bios_attributes_are_read_as_they_are() -> None:
    """Scalars only; empty without a BIOS resource."""
    bmc = fake(system(Bios={"@odata.id": f"{SYSTEM}/Bios"}))
    values = {"BootMode": "Uefi", "Count": 3, "On": True, "Unset": None, "Odd": {"x": 1}}
    bmc.resources[f"{SYSTEM}/Bios"] = {"@odata.id": f"{SYSTEM}/Bios", "Attributes": values}
    found = await redfish(bmc).bios_attributes(SYSTEM)
    assert found == {"BootMode": "Uefi", "Count": 3, "On": True, "Unset": None}
    assert await redfish(fake()).bios_attributes(SYSTEM) == {}
