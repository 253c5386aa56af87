"""Power."""

from typing import Any

import pytest

from metal.bmc.errors import BMCBadRequest, BMCConflict, BMCNotSupported
from metal.bmc.power import ResetType
from tests.bmc.redfish.machine import fake, redfish, system
from tests.redfish.fakes import SYSTEM, FakeBMC, answer

pytestmark = pytest.mark.looptime
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


def allowing(*kinds: str, state: str = "Off") -> FakeBMC:
    action: dict[str, Any] = {"target": RESET}
    if kinds:
        action["ResetType@Redfish.AllowableValues"] = list(kinds)
    return fake(system(PowerState=state, Actions={"#ComputerSystem.Reset": action}))


def sent(bmc: FakeBMC) -> list[str]:
    return [request.body["ResetType"] for request in bmc.seen("POST", RESET)]


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [
        (["On", "ForceOn"], "On"),
        (["ForceOff", "ForceOn"], "ForceOn"),
        (["PushPowerButton"], "PushPowerButton"),
        ([], "On"),
    ],
)
async def test_power_on_uses_the_first_allowable_kind(allowed: list[str], kind: str) -> None:
    """On, ForceOn, PushPowerButton; plain On where the BMC lists nothing."""
    bmc = allowing(*allowed)
    await redfish(bmc).power_on(SYSTEM)
    assert sent(bmc) == [kind]


@pytest.mark.parametrize("state", ["On", "PoweringOn"])
async def test_power_on_does_nothing_to_a_machine_that_is_on(state: str) -> None:
    """A pushed power button would power it off."""
    bmc = allowing("PushPowerButton", state=state)
    await redfish(bmc).power_on(SYSTEM)
    assert sent(bmc) == []


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [(["ForceOff", "GracefulShutdown"], "GracefulShutdown"), (["PushPowerButton"], "PushPowerButton")],
)
async def test_power_off_is_graceful(allowed: list[str], kind: str) -> None:
    """Never ForceOff unless forced."""
    bmc = allowing(*allowed, state="On")
    await redfish(bmc).power_off(SYSTEM)
    assert sent(bmc) == [kind]


async def test_graceful_off_is_not_replaced_by_force() -> None:
    """The caller escalates, not this layer; the message lists what is possible."""
    bmc = allowing("ForceOff", state="On")
    with pytest.raises(BMCNotSupported, match="cannot shut down: it allows ForceOff"):
        await redfish(bmc).power_off(SYSTEM)
    assert sent(bmc) == []


async def test_forced_off_overtakes_a_shutdown_under_way() -> None:
    """PoweringOff may never end."""
    bmc = allowing("ForceOff", "GracefulShutdown", state="PoweringOff")
    await redfish(bmc).power_off(SYSTEM)
    await redfish(bmc).power_off(SYSTEM, force=True)
    assert sent(bmc) == ["ForceOff"]


@pytest.mark.parametrize("force", [True, False])
async def test_power_off_does_nothing_to_a_machine_that_is_off(force: bool) -> None:
    """It raises no error either."""
    bmc = allowing("ForceOff", "GracefulShutdown")
    await redfish(bmc).power_off(SYSTEM, force=force)
    assert sent(bmc) == []


@pytest.mark.parametrize("status", [409, 400])
async def test_a_refusal_of_what_is_already_so_is_forgiven(status: int) -> None:
    """The power state changed between the read and the write."""
    bmc = allowing("On")
    bmc.fault("GET", SYSTEM, answer(200, system(PowerState="Off")))
    bmc.resources[SYSTEM]["PowerState"] = "On"
    bmc.fault("POST", RESET, answer(status))
    await redfish(bmc).power_on(SYSTEM)


@pytest.mark.parametrize(("status", "kind"), [(409, BMCConflict), (400, BMCBadRequest)])
async def test_another_refusal_is_reported(status: int, kind: type[Exception]) -> None:
    """It is still off, so the BMC's error is raised."""
    bmc = allowing("On")
    bmc.fault("POST", RESET, answer(status))
    with pytest.raises(kind):
        await redfish(bmc).power_on(SYSTEM)


async def test_allowable_values_may_stand_in_an_action_info_which_is_read_once() -> None:
    """DSP0266 allows either place."""
    action = {"target": RESET, "@Redfish.ActionInfo": f"{SYSTEM}/ResetInfo"}
    bmc = fake(system(Actions={"#ComputerSystem.Reset": action}))
    parameters = [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": ["ForceOn"]}]
    bmc.resources[f"{SYSTEM}/ResetInfo"] = {"@odata.id": f"{SYSTEM}/ResetInfo", "Parameters": parameters}
    view = redfish(bmc)
    await view.power_on(SYSTEM)
    await view.power_on(SYSTEM)
    assert sent(bmc) == ["ForceOn", "ForceOn"]
    assert len(bmc.seen("GET", f"{SYSTEM}/ResetInfo")) == 1


async def test_a_reset_is_exactly_the_one_asked_for() -> None:
    """In every power state; BMCNotSupported when the BMC does not list the type."""
    bmc = fake(system(PowerState="On"))
    await redfish(bmc).reset(SYSTEM, ResetType.FORCE_RESTART)
    with pytest.raises(BMCNotSupported, match="PowerCycle"):
        await redfish(bmc).reset(SYSTEM, ResetType.POWER_CYCLE)
    assert sent(bmc) == ["ForceRestart"]


async def test_a_system_without_reset_action_says_so() -> None:
    """For instance the pseudo system of an enclosure."""
    with pytest.raises(BMCNotSupported, match="offers no reset"):
        await redfish(fake(system(Actions=None))).power_on(SYSTEM)


async def test_a_power_change_costs_two_requests() -> None:
    """One read and one write."""
    bmc = fake()
    view = redfish(bmc)
    await view.system(SYSTEM)
    before = len(bmc.requests)
    await view.power_on(SYSTEM)
    assert len(bmc.requests) - before == 2
