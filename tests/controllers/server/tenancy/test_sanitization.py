"""What Cleanup does with a tenant's data: by policy, with proof, and never to a tenant who is still there."""

import asyncio
from typing import Any

import pytest
import structlog

from metal.api.core import CONFIG_MAP, SECRET
from metal.api.server import Server
from metal.evidence.keys import public_keys
from metal.evidence.signing import verify
from metal.machine import boot_window
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, condition, maintain, retry
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime
DISK = {"name": "sda", "rotational": False, "sizeBytes": 1 << 40, "serial": "D1"}
ERASE: dict[str, Any] = {"sanitization_policy": "Clear"}


def disks(w: World, *names: str) -> None:
    w.disks = [{**DISK, "name": name, "serial": f"serial-{name}"} for name in names]


async def released(w: World, **claim: Any) -> None:
    """A server with one disk, whose tenant has just gone."""
    disks(w, "sda")
    await claimed_and_booted(w, **claim)
    await w.client.delete(KINDS.claim, "c1", "default")


async def erasing(w: World) -> Server:
    """A server whose machine has everything that it needs to erase its disk."""
    await released(w)
    await begin_erasing(w)
    return await w.server()


async def begin_erasing(w: World) -> None:
    await w.until_true(lambda s: s.status.state == "Cleanup" and s.spec.boot_configuration_ref is not None
                       and s.spec.boot_configuration_ref.namespace == NS)  # fmt: skip
    await w.settle()
    await w.config_ready("s1")
    await w.until_true(_is_booting)
    await w.fetch_script()
    await w.fetch_ignition()


def _is_booting(server: Server) -> bool:
    window = server.status.boot_window
    purpose = window.purpose if window is not None and window.phase == "Open" else ""
    return purpose == "Sanitization" and server.status.power_state == "On"


async def test_the_task_of_the_probe_names_policy_and_drives() -> None:
    """Probe, task and unit are in the Ignition, in the manager's namespace; the claim's configuration is left alone."""
    async with world(**ERASE) as w:
        await erasing(w)
        secret = await w.client.get(SECRET, "s1", NS)
        config = await w.config("s1")
    text = secret.data["ignition"].decode()
    assert "metalprobe-sanitize.service" in text
    assert "metalprobe.pyz sanitize --registry-url" in text
    assert "--task /etc/metalprobe/sanitization.json" in text
    assert config.metadata.annotations[KINDS.key("type")] == "Internal"
    assert config.spec.image == "reg/probe:1"


async def test_erased_off_signed_forgotten_available() -> None:
    """The evidence's signature holds with the key that the ConfigMap has, and nothing of the boot is left."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase()
        server = await w.until("Available")
        await w.until_true(lambda s: not s.status.waiting_for)
        (proof,) = await w.evidence()
        verify(proof, public_keys((await w.client.list(CONFIG_MAP, NS)).items))
        configs = (await w.client.list(KINDS.boot_config, NS)).items
        server = await w.server()
    assert (server.status.power_state, configs, server.status.boot_window) == ("Off", (), None)
    assert (server.status.tenancy.sanitization, condition(server, "Sanitized")) == ("Clear", ("True", "Clear"))
    assert server.status.sanitization_evidence == proof.metadata.name
    assert w.bmc.writes()[-4:] == ["graceful_off", "set_network_boot", "power_on", "graceful_off"]
    assert w.bmc.network_boots == 3


@pytest.mark.behaviour(
    "Cleanup", "A server whose claim still exists is not erased; it returns to its claim without a boot."
)
async def test_nothing_of_a_claim_that_is_still_there_is_erased() -> None:
    """A claimed server that entered Cleanup by mistake returns to its claim, and its machine is not booted."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        boots = w.bmc.network_boots
        await w.client.patch_status(KINDS.server, "s1", {"status": {"state": "Cleanup"}})
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
        await asyncio.sleep(600)
        server = await w.server()
    assert (server.status.state, w.bmc.network_boots) == ("Reserved", boots)
    assert not server.status.sanitization_evidence


async def test_a_boot_that_failed_after_its_script_went_out_is_owed() -> None:
    """The machine may have run the tenant's kernel, though no boot of the claim ever succeeded."""
    async with world(**ERASE, claim_boot_timeout=60.0, boot_retry=5.0) as w:
        disks(w, "sda")
        await claimed_and_booting(w)
        await w.fetch_script()
        await w.until_true(lambda s: s.status.boot_attempts == 1 and s.status.boot_window is not None
                           and s.status.boot_window.phase == "Open", within=900)  # fmt: skip
        await w.client.delete(KINDS.claim, "c1", "default")
        await begin_erasing(w)
        await w.erase()
        server = await w.until("Available")
    assert server.status.tenancy.sanitization == "Clear"


async def test_a_window_out_of_which_nothing_went_owes_nothing() -> None:
    """The machine was switched on for the claim, and asked for nothing before the claim went."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booting(w)
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until("Available")
    assert (server.status.tenancy.sanitization, w.bmc.network_boots) == ("NotOwed", 2)


async def test_a_drive_that_is_missing_in_the_report_is_owed() -> None:
    """Also where the machine does not say so itself: the baseline counts."""
    async with world(**ERASE) as w:
        await erasing(w)
        disks(w)
        await w.erase()
        server = await w.until("Error")
    assert server.status.failure is not None
    assert server.status.failure.reason == "SanitizationOwed"
    assert "drive sda (serial serial-sda) was in the server and is missing" in server.status.failure.message
    assert "accept-owed-sanitization" in server.status.failure.message


async def test_clear_is_not_enough_where_purge_is_called_for() -> None:
    """The class that was reached is compared with the policy, also when the machine reports success."""
    async with world(sanitization_policy="Purge") as w:
        await erasing(w)
        await w.erase()
        server = await w.until("Error")
    assert server.status.failure is not None
    assert "reached Clear where Purge is required" in server.status.failure.message


async def test_a_server_of_before_is_measured_by_what_its_inventory_says() -> None:
    """For a server discovered before drives were recorded, those with a serial number in status.storages count."""
    async with world(**ERASE) as w:
        disks(w, "sda", "sdb")
        await claimed_and_booted(w)
        await w.client.patch_status(KINDS.server, "s1", {"status": {"drives": None}})
        await w.client.delete(KINDS.claim, "c1", "default")
        await begin_erasing(w)
        disks(w, "sda")
        await w.erase()
        server = await w.until("Error")
    assert server.status.failure is not None
    assert "drive sdb (serial serial-sdb) was in the server and is missing" in server.status.failure.message


async def test_a_server_that_is_deleted_leaves_no_evidence_that_runs_for_ever() -> None:
    """The erasure that was under way proves nothing, and says so."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase(done=False, result="Running", class_="")
        await w.until_true(lambda s: s.status.sanitization_progress is not None)
        await w.client.delete(KINDS.server, "s1")
        await asyncio.sleep(30)
        broken_off, owed = await w.evidence()
    assert (broken_off.status.phase, len(broken_off.status.owed)) == ("Failed", 1)
    assert broken_off.status.signature is not None
    assert owed.metadata.name.startswith("owed-")


async def test_a_retry_begins_with_a_new_window_and_new_evidence() -> None:
    """The failed evidence stays as it is."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase(result="Failed", class_="", message="it is broken")
        await w.until("Error")
        await retry(w)
        await begin_erasing(w)
        await w.erase()
        await w.until("Available")
        phases = sorted(one.status.phase for one in await w.evidence())
    assert phases == ["Failed", "Succeeded"]


async def test_a_maintenance_leads_out_of_what_is_owed_and_back_into_it() -> None:
    """A drive is replaced during a maintenance; afterwards the server is erased again."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase(result="Locked", class_="")
        await w.until("Error")
        await maintain(w)
        await w.until("Maintenance")
        await maintain(w, on=False)
        await begin_erasing(w)
        await w.erase()
        server = await w.until("Available")
    assert server.status.tenancy.sanitization == "Clear"


async def test_accepting_is_refused_where_nothing_is_owed() -> None:
    """An Event says so, and the server stays as it is."""
    async with world(**ERASE) as w:
        await w.add_server()
        await w.discover()
        note = {KINDS.key("operation"): "accept-owed-sanitization"}
        await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": note}})
        await asyncio.sleep(5)
        server, reasons = await w.server(), {e.reason for e in await w.events()}
    assert "NothingOwed" in reasons
    assert (server.status.state, KINDS.key("operation") in server.metadata.annotations) == ("Available", False)


async def test_a_contested_sanitization_starts_again() -> None:
    """Another client that requested the script may have reported drives of another machine."""
    async with world(**ERASE, boot_retry=5.0) as w:
        await erasing(w)
        await w.window(boot_window.contest)
        await w.until_true(_is_booting)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.erase()
        server = await w.until("Available")
    assert server.status.tenancy.sanitization == "Clear"


async def test_a_boot_configuration_that_another_client_deletes_is_recreated() -> None:
    """The erasure begins again; nothing is taken for granted."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.client.delete(KINDS.boot_config, "s1", NS)
        await w.until_true(lambda s: s.status.boot_window is None)
        await asyncio.sleep(5)
        await begin_erasing(w)
        await w.erase()
        await w.until("Available")


async def test_evidence_that_somebody_deletes_is_no_reason_to_believe() -> None:
    """The server is in Error; retry erases the drives again."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.window(lambda window: boot_window.accept_report(window, w.clock(), token="r"))
        server = await w.until("Error")
    assert server.status.failure is not None
    assert server.status.failure.reason == "EvidenceLost"


async def test_a_key_that_is_none_holds_the_server_back_and_names_the_secret() -> None:
    """Evidence that cannot be verified does not count."""
    async with world(**ERASE) as w:
        body = {"metadata": {"name": "metal-evidence-key", "namespace": NS}, "data": {"private.pem": "bm9uc2Vuc2U="}}
        await w.client.create(SECRET, body)
        await erasing(w)
        await w.erase()
        server = await w.until("Error")
        await w.client.delete(SECRET, "metal-evidence-key", NS)
        await retry(w)
        await w.until("Available")  # the drives are erased; only the signature was missing
    assert server.status.failure is not None
    assert f"Secret {NS}/metal-evidence-key, key private.pem" in server.status.failure.message
    assert "nonsense" not in server.status.failure.message


async def test_an_erasure_is_logged_and_counted() -> None:
    """Its evidence goes from Running to Succeeded, each step one line; the erasure and its drives are counted."""
    async with world(**ERASE) as w:
        await erasing(w)
        with structlog.testing.capture_logs() as logs:
            await w.erase()
            await w.until("Available")
        value = w.runtime.metrics.registry.get_sample_value
        erased = value("metal_sanitizations_total", {"policy": "Clear", "result": "succeeded"})
        drives = w.runtime.metrics.registry.collect()
    steps = [line for line in logs if line["event"] == "transition" and line["kind"] == "SanitizationEvidence"]
    assert [(line["from"], line["to"]) for line in steps][-1] == ("Running", "Succeeded")
    assert erased == 1
    assert sum(s.value for f in drives for s in f.samples if s.name == "metal_drive_erasures_total") >= 1


async def test_servers_that_are_recycled_are_counted_by_what_became_of_the_data() -> None:
    """An operator sees how many went out without being erased."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
        seen = w.runtime.metrics.registry.get_sample_value("metal_servers_recycled_total", {"sanitization": "None"})
    assert seen == 1


async def test_a_label_that_says_nothing_sensible_is_named_and_ignored() -> None:
    """The setting counts, and a condition names the label and what it may say."""
    async with world(**ERASE) as w:
        await w.add_server(labels={KINDS.key("sanitization-policy"): "Shred"})
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        server = await w.server()
        label = {"metadata": {"labels": {KINDS.key("sanitization-policy"): "Purge"}}}
        await w.client.patch(KINDS.server, "s1", label)
        better = await w.until_true(lambda s: s.status.tenancy.policy == "Purge")
    assert (server.status.tenancy.policy, condition(server, "SanitizationPolicyValid")) == (
        "Clear", ("False", "InvalidLabel"),
    )  # fmt: skip
    assert condition(better, "SanitizationPolicyValid") == ("True", "Valid")


@pytest.mark.parametrize(
    ("setting", "label", "claim", "opt_out", "policy"),
    [
        ("Clear", "", "", True, "Clear"), ("Clear", "Purge", "", True, "Purge"), ("Purge", "None", "", True, "None"),
        ("Clear", "", "None", True, "None"), ("Clear", "", "None", False, "Clear"),
        ("Clear", "Purge", "Clear", True, "Purge"), ("Purge", "Clear", "None", True, "Clear"),
        ("Clear", "Purge", "Clear", False, "Purge"),
        ("None", "", "Purge", False, "Purge"), ("Clear", "None", "Clear", False, "Clear"),
    ],
)  # fmt: skip
async def test_whose_word_counts(setting: str, label: str, claim: str, opt_out: bool, policy: str) -> None:
    """The claim's, else the label's, else the setting; less than the label never, than the setting with opt-out."""
    async with world(sanitization_policy=setting, sanitization_opt_out=opt_out) as w:
        labels = {KINDS.key("sanitization-policy"): label} if label else {}
        await w.add_server(labels=labels)
        await w.discover()
        await w.add_claim(power="Off", **({"sanitizationPolicy": claim} if claim else {}))
        server = await w.until("Reserved")
        server = await w.until_true(lambda s: s.status.tenancy.policy != "")
    assert server.status.tenancy.policy == policy


async def _cleanup(w: World, number: int) -> str:
    """A tenant's end, with the manager killed at the n-th write; where that was."""
    left, where = number, ""
    reached = asyncio.Event()

    async def trap(what: str, when: str) -> None:
        nonlocal left, where
        if reached.is_set():
            return
        if left > 0:
            left -= 1
            return
        where = f"{when} {what}"
        reached.set()
        await asyncio.Event().wait()

    w.tap.trap = w.bmc.trap = trap
    restarting = asyncio.create_task(_restart(w, reached))
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.until_true(lambda s: s.status.state == "Available" and s.spec.server_claim_ref is None, within=900)
    await asyncio.sleep(200)
    restarting.cancel()
    await asyncio.gather(restarting, return_exceptions=True)
    return where


async def _restart(w: World, reached: asyncio.Event) -> None:
    await reached.wait()
    await asyncio.sleep(0.1)
    await w.restart()


@pytest.mark.parametrize("number", range(0, 66, 3))
async def test_a_manager_killed_at_any_write_of_a_cleanup_erases_once_and_says_so(number: int) -> None:
    """One boot, one evidence, signed; Available, off, and nothing of the claim or of the boot is left."""
    async with world(**ERASE, resync=60.0) as w:
        around = Surroundings(w)
        disks(w, "sda")
        async with around.acting():
            await w.add_server()
            await w.until("Available", within=600)
            await w.add_claim()
            await w.until_true(lambda s: bool(s.status.tenancy.boot and not s.status.waiting_for), within=600)
            where = await _cleanup(w, number)
        server, (proof,) = await w.server(), await w.evidence()
        verify(proof, public_keys((await w.client.list(CONFIG_MAP, NS)).items))
        configs = (await w.client.list(KINDS.boot_config, NS)).items
    assert (server.status.tenancy.sanitization, server.status.tenancy.uid, configs) == ("Clear", "", ()), where
    assert (w.bmc.network_boots, w.bmc.disk_boots, w.bmc.power) == (3, 0, "Off"), where
    assert where or number > 50, "a cleanup has become shorter: look at the parameters"
