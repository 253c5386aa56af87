"""Firmware after a tenant: asked for before the sanitization boot, carried out by it, and read back after it."""

import asyncio
from typing import Any

import pytest

from metal.api.sanitization import SanitizationEvidence
from metal.bmc.errors import BMCError, BMCNotSupported, BMCServerError, BMCTimeout
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import claimed_and_booted, reasons, retry
from tests.controllers.server.tenancy.test_sanitization import begin_erasing, disks, released
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
CLEARS: dict[str, Any] = {"sanitization_policy": "Clear", "sanitization_firmware": "ClearTPM"}
REQUIRED: dict[str, Any] = {**CLEARS, "sanitization_firmware_required": True}


async def erased(w: World) -> SanitizationEvidence:
    """The tenant's drives are erased; the last evidence."""
    await begin_erasing(w)
    await w.erase()
    await w.until_true(lambda s: s.status.state in ("Available", "Error"))
    return (await w.evidence())[-1]


def told(proof: SanitizationEvidence) -> list[tuple[str, str]]:
    return [(one.action, one.result) for one in proof.status.firmware]


async def test_the_bmc_is_asked_while_the_machine_is_off_and_before_its_boot() -> None:
    """So that the boot which erases carries it out."""
    async with world(**REQUIRED) as w:
        await released(w)
        w.bmc.calls.clear()
        proof = await erased(w)
    assert w.bmc.writes() == ["graceful_off", "clear_tpm", "set_network_boot", "power_on", "graceful_off"]
    assert told(proof) == [("ClearTPM", "Succeeded")]
    assert proof.status.firmware[0].asked_at is not None


async def test_the_other_action_is_the_other_request() -> None:
    """ResetBIOS clears no TPM."""
    async with world(**REQUIRED | {"sanitization_firmware": "ResetBIOS"}) as w:
        await released(w)
        w.bmc.calls.clear()
        proof = await erased(w)
    assert "reset_bios" in w.bmc.writes()
    assert "clear_tpm" not in w.bmc.writes()
    assert told(proof) == [("ResetBIOS", "Succeeded")]


@pytest.mark.behaviour(
    "Cleanup", "A machine without a firmware reset is held back only with `sanitization.firmwareRequired`."
)
@pytest.mark.parametrize("required", [True, False])
async def test_a_machine_that_cannot_do_it_is_held_back_only_where_it_is_required(required: bool) -> None:
    """Evidence says NotSupported either way; accepting what is owed is a way out."""
    async with world(**REQUIRED | {"sanitization_firmware_required": required}) as w:
        await released(w)
        w.bmc.refuses["clear_tpm"] = BMCNotSupported("no known attribute")
        proof = await erased(w)
        server = await w.server()
    assert told(proof) == [("ClearTPM", "NotSupported")]
    assert server.status.state == ("Error" if required else "Available")
    words = "the TPM is not cleared (NotSupported): no known attribute"
    assert proof.status.owed == ((words,) if required else ())
    assert proof.status.remarks == (() if required else (words,))


@pytest.mark.parametrize(
    ("label", "setting", "done"),
    [("ResetBIOS", "None", ["ResetBIOS"]), ("None", "ClearTPM", []), ("Wipe", "ClearTPM", ["ClearTPM"])],
)
async def test_the_servers_label_goes_before_the_setting(label: str, setting: str, done: list[str]) -> None:
    """So that one machine of a model can be tried first; what is no word is ignored, and told."""
    async with world(sanitization_policy="Clear", sanitization_firmware=setting) as w:
        await released(w)
        labels = {KINDS.key("sanitization-firmware"): label}
        await w.client.patch(KINDS.server, "s1", {"metadata": {"labels": labels}})
        proof = await erased(w)
    assert [action for action, _ in told(proof)] == done


async def test_a_label_that_is_no_word_is_told() -> None:
    """An invalid label is reported in the same condition as the other label."""
    async with world(**CLEARS) as w:
        await claimed_and_booted(w)
        labels = {KINDS.key("sanitization-firmware"): "Wipe"}
        await w.client.patch(KINDS.server, "s1", {"metadata": {"labels": labels}})
        await w.settle()
        server = await w.server()
    (found,) = [one for one in server.status.conditions if one.type == "SanitizationPolicyValid"]
    assert (found.status, found.reason) == ("False", "InvalidLabel")
    assert "use one of None, ClearTPM, ResetBIOS" in found.message


async def test_a_bmc_that_shows_nothing_is_not_believed() -> None:
    """Nothing can be read back: Unconfirmed, which is not Succeeded."""
    async with world(**REQUIRED) as w:
        await released(w)
        w.bmc.firmware_pending = None
        proof = await erased(w)
    assert told(proof) == [("ClearTPM", "Unconfirmed")]
    assert proof.status.owed


async def test_a_bmc_that_forgets_is_found_out_at_once_and_retry_asks_anew() -> None:
    """The BMC accepts the request and reports nothing as pending; after a repair another erasure succeeds."""
    async with world(**REQUIRED) as w:
        await released(w)
        w.bmc.forgets_firmware = True
        first = await erased(w)
        w.bmc.forgets_firmware = False
        await w.until("Error")
        await retry(w)
        await w.until("Cleanup")
        second = await erased(w)
        await w.until("Available")
    assert told(first) == [("ClearTPM", "Failed")]
    assert told(second) == [("ClearTPM", "Succeeded")]


async def test_what_is_still_pending_after_the_boot_has_failed() -> None:
    """The machine has started, and its BIOS did not do it."""
    async with world(**REQUIRED) as w:
        await released(w)
        w.bmc.keeps_firmware = True
        proof = await erased(w)
    assert told(proof) == [("ClearTPM", "Failed")]
    assert "but the BMC still reports it as pending" in proof.status.owed[0]


async def test_an_ill_bmc_is_asked_again_for_a_while_and_then_the_drives_are_erased_without() -> None:
    """The wait has a name and a deadline; an erasure is worth more than a BIOS."""
    async with world(**CLEARS) as w:
        await released(w)
        w.bmc.refuses["clear_tpm"] = BMCServerError("500")
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "FirmwareReset")
        await asyncio.sleep(w.settings.power_timeout + 60)
        proof = await erased(w)
    assert waiting.status.wait is not None
    assert waiting.status.wait.until is not None
    assert told(proof) == [("ClearTPM", "Failed")]


@pytest.mark.parametrize("problem", [BMCServerError("500"), BMCTimeout("no answer")])
async def test_a_bmc_that_recovers_does_it(problem: BMCError) -> None:
    """Ill or away for a minute, nothing is lost."""
    async with world(**REQUIRED) as w:
        await released(w)
        w.bmc.refuses["clear_tpm"] = problem
        await w.until_true(lambda s: s.status.state == "Cleanup" and s.status.wait is not None)
        await asyncio.sleep(60)
        del w.bmc.refuses["clear_tpm"]
        proof = await erased(w)
    assert told(proof) == [("ClearTPM", "Succeeded")]


async def test_what_is_required_while_a_boot_is_under_way_is_owed_by_it() -> None:
    """It was never asked for: retry does it."""
    async with world(sanitization_policy="Clear") as w:
        await released(w)
        await begin_erasing(w)
        w.settings = type(w.settings)(**{**_fields(w.settings), **REQUIRED})
        await w.restart()
        await w.erase()
        await w.until("Error")
        (proof,) = await w.evidence()
    assert told(proof) == [("ClearTPM", "Unconfirmed")]


def _fields(settings: Any) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}


async def test_nothing_is_asked_where_the_policy_leaves_the_data_or_nothing_is_owed() -> None:
    """No boot would carry it out."""
    async with world(**REQUIRED, sanitization_opt_out=True) as w:
        disks(w, "sda")
        await claimed_and_booted(w, sanitizationPolicy="None")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
    assert "clear_tpm" not in w.bmc.calls


@pytest.mark.parametrize("number", range(0, 24, 3))
async def test_a_manager_killed_at_any_write_has_it_done_and_proved(number: int) -> None:
    """Before or after each write of Cleanup, to the API or to the BMC."""
    async with world(**REQUIRED | {"resync": 60.0, "power_poll": 1.0}) as w:
        around = Surroundings(w)
        disks(w, "sda")
        await w.add_server()
        async with around.acting():
            await w.until("Available")
            await w.add_claim()
            await w.until_true(lambda s: s.status.tenancy.boot is not None and not s.status.waiting_for, within=600)
            left, reached = [number], asyncio.Event()

            async def trap(what: str, when: str) -> None:
                left[0] -= 1
                if left[0] == -1:
                    reached.set()
                    await asyncio.Event().wait()

            w.tap.trap = w.bmc.trap = trap
            await w.client.delete(KINDS.claim, "c1", "default")
            async with asyncio.timeout(300):
                await reached.wait()
            await w.restart()
            await w.until_true(lambda s: s.status.state == "Available" and s.spec.server_claim_ref is None, within=900)
            proof = (await w.evidence())[-1]
            events = await reasons(w)
    assert told(proof) == [("ClearTPM", "Succeeded")]
    assert "FirmwareReset" in events
