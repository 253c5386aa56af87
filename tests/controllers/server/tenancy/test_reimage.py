"""A claim's machine boots over the network once more when its owner raises spec.bootGeneration, and never otherwise."""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pytest

from metal.api.boot_window import Phase
from metal.api.claim import ServerClaim
from metal.api.server import Server
from metal.kube.cache.informer import Informer
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key
from tests.controllers.killer import Killer
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, maintain, operate, reasons, retry
from tests.controllers.server.test_fence import _old_leader
from tests.controllers.world import KINDS, World, world
from tests.crds import crds

pytestmark = pytest.mark.looptime
QUICK = {"power_poll": 1.0, "resync": 60.0}
FIRST = 2
"""Network boots of a server by the end of its claim's first one: the probe's and the claim's."""


async def ask(w: World, generation: int, **spec: Any) -> None:
    """The claim's owner sets spec.bootGeneration."""
    await w.client.patch(KINDS.claim, "c1", {"spec": {"bootGeneration": generation, **spec}}, "default")


def answered(server: Server) -> int:
    return server.status.tenancy.boot.boot_generation if server.status.tenancy.boot is not None else -1


def at_rest(server: Server) -> bool:
    return server.status.state == "Reserved" and server.status.power_state == "On" and not server.status.waiting_for


async def reason(w: World, type: str) -> tuple[str, str]:
    """Status and reason of a condition of the claim."""
    found = conditions.find((await w.claim()).status.conditions, type)
    assert found is not None
    return found.status, found.reason


async def begun(w: World, generation: int = 1, **spec: Any) -> Server:
    """A claim that booted; the boot that it asks for then has its window open, and nothing was fetched yet."""
    await claimed_and_booted(w)
    w.bmc.calls.clear()
    await ask(w, generation, **spec)
    await w.settle()
    await w.config_ready("c1", "default")
    return await w.until_true(lambda s: s.status.power_state == "On" and _generation(s) == generation)


def _generation(server: Server) -> int:
    return server.status.boot_window.boot_generation if server.status.boot_window is not None else -1


async def boot_again(w: World, generation: int = 1) -> Server:
    """Play boot operator, boot server and machine in the boot that was asked for."""
    await w.settle()
    await w.config_ready("c1", "default")
    await w.until_true(lambda s: s.status.power_state == "On" and _is_open(s, generation), within=600)
    await w.fetch_script()
    await w.fetch_ignition()
    return await w.until_true(lambda s: answered(s) == generation and at_rest(s))


def _is_open(server: Server, generation: int) -> bool:
    window = server.status.boot_window
    return window is not None and window.phase == Phase.OPEN and window.boot_generation == generation


@pytest.mark.behaviour("ServerClaim", "A raised `spec.bootGeneration` boots the current image over the network once.")
async def test_a_raised_number_boots_the_present_image_over_the_network_once() -> None:
    """Shut down gracefully, booted in a window of its own, written down, and Ready again: with what the claim says."""
    async with world() as w:
        await begun(w, image="reg/os:2", ignitionSecretRef={"name": "i2"})
        waiting = await reason(w, "Ready")
        await w.fetch_script()
        await w.fetch_ignition()
        server = await w.until_true(lambda s: answered(s) == 1 and at_rest(s))
        claim = await w.until_claim(lambda c: conditions.is_true(c.status.conditions, "Ready"))
        current, told = await reason(w, "Current"), await reasons(w)
        await asyncio.sleep(900)
    boot = server.status.tenancy.boot
    assert boot is not None
    assert (boot.image, boot.ignition_secret) == ("reg/os:2", "i2")
    assert w.bmc.writes() == ["graceful_off", "set_network_boot", "power_on"]
    assert w.bmc.network_boots == FIRST + 1
    assert waiting == ("False", "NetworkBootRequested")
    assert claim.status.boot_generation == 1
    assert current == ("True", "Current")
    assert {"NetworkBootRequested", "Booted"} <= told


async def test_the_number_of_a_new_claim_is_answered_by_its_first_boot() -> None:
    """The first boot of a claim fulfils its number; no second boot follows."""
    async with world() as w:
        server = await claimed_and_booted(w, bootGeneration=7)
        await asyncio.sleep(900)
    assert answered(server) == 7
    assert w.bmc.network_boots == FIRST


@pytest.mark.behaviour(
    "Server: network boot", "Only a higher `spec.bootGeneration` of the claim boots the network again."
)
async def test_nothing_but_a_higher_number_boots_the_network_again() -> None:
    """Changed image, labels, power off and on, lost power, a lower number and the same again, another manager."""
    async with world(**QUICK) as w:
        around = Surroundings(w)
        await w.add_server()
        async with around.acting():
            await w.until("Available")
            claim = await w.add_claim(bootGeneration=3)
            await w.until_true(lambda s: answered(s) == 3 and at_rest(s))
            changes: list[dict[str, Any]] = [
                {"spec": {"image": "reg/os:9"}}, {"metadata": {"labels": {"a": "b"}}},
                {"spec": {"power": "Off"}}, {"spec": {"power": "On"}}, {"spec": {"bootGeneration": 2}},
                {"spec": {"bootGeneration": 3}}, {"spec": {"bootGeneration": 0}}, {"spec": {"bootGeneration": 1}},
            ]  # fmt: skip
            for change in changes:
                await w.client.patch(KINDS.claim, "c1", change, "default")
                await asyncio.sleep(90)
            w.bmc.lose_power()
            await asyncio.sleep(120)
            await w.restart()
            await asyncio.sleep(300)
        server = await w.server()
    assert at_rest(server)
    assert around.served[claim.metadata.uid] == 1
    assert w.bmc.network_boots == FIRST
    assert w.bmc.disk_boots == 2


async def test_a_changed_image_says_how_to_have_it_booted() -> None:
    """What differs, and the number to set, which is the next one."""
    async with world() as w:
        await claimed_and_booted(w, bootGeneration=3, ignitionSecretRef={"name": "i1"})
        await w.client.patch(
            KINDS.claim, "c1", {"spec": {"image": "reg/os:2", "ignitionSecretRef": {"name": "i2"}}}, "default"
        )
        claim = await w.until_claim(lambda c: _current(c) == "ChangedAfterBoot")
    found = conditions.find(claim.status.conditions, "Current")
    assert found is not None
    assert found.message == (
        "the claim has image reg/os:2, the server booted reg/os:1 and the claim has the Ignition of Secret i2, the "
        "server booted the Ignition of Secret i1; the running system is not changed. To boot this over the network "
        "once, set spec.bootGeneration to 4"
    )


def _current(claim: Any) -> str:
    found = conditions.find(claim.status.conditions, "Current")
    return found.reason if found is not None else ""


async def test_the_running_system_is_left_alone_until_the_new_one_is_ready() -> None:
    """A boot configuration that cannot be had costs nothing but the wait for it."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await ask(w, 1, image="reg/missing:1")
        await w.settle()
        await w.config_ready("c1", "default", "Error", "there is no such image")
        server = await w.until_true(lambda s: "no such image" in s.status.waiting_for)
        failed = await w.until("Error", within=7200)
        writes = w.bmc.writes()
        await ask(w, 0)
        await w.until_true(at_rest)
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BootConfiguration"
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "BootConfigurationNotReady"
    assert writes == w.bmc.writes() == []


async def test_what_is_withdrawn_before_it_began_never_happened() -> None:
    """The machine is not touched, Ready comes back, and the boot configuration's image is told as not booted."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await ask(w, 1, image="reg/os:2")
        await w.until_true(lambda s: bool(s.status.tenancy.boot and s.status.tenancy.boot.requested_generation == 1))
        await ask(w, 0)
        server = await w.until_true(at_rest)
        await w.until_claim(lambda c: conditions.is_true(c.status.conditions, "Ready"))
        current, told = await reason(w, "Current"), await reasons(w)
    assert w.bmc.writes() == []
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.requested_generation == 0
    assert current == ("False", "ChangedAfterBoot")
    assert "NetworkBootWithdrawn" in told


@pytest.mark.behaviour(
    "Server: network boot", "A `spec.bootGeneration` that is withdrawn during its boot ends in a boot from the disk."
)
async def test_what_is_withdrawn_while_it_boots_ends_and_the_machine_comes_from_its_disk() -> None:
    """Nothing of that boot is served any more; off, no override, on."""
    async with world() as w:
        await begun(w)
        await w.fetch_script()
        await ask(w, 0)
        server = await w.until_true(lambda s: at_rest(s) and s.status.boot_window is None)
        await asyncio.sleep(600)
    assert w.bmc.writes()[3:] == ["graceful_off", "power_on"]
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (FIRST + 1, 1)
    assert answered(server) == 0


@pytest.mark.parametrize(("generation", "boots"), [(0, 0), (2, 1)])
async def test_a_boot_that_failed_for_good_ends_with_another_number(generation: int, boots: int) -> None:
    """Withdrawn, the old system comes back from the disk; with a higher number there is another try."""
    async with world(claim_boot_timeout=60, boot_attempts=2, boot_retry=5) as w:
        await begun(w)
        await w.until("Error", within=900)
        w.bmc.network_boots = 0
        await ask(w, generation)
        await w.until("Reserved")
        server = await (boot_again(w, generation) if generation else w.until_true(at_rest))
    assert w.bmc.network_boots == boots
    assert server.status.boot_attempts == 0


async def test_a_failed_boot_is_tried_again_and_cuts_no_power_from_a_system_that_may_run() -> None:
    """The BMC may have lost the override, and the old system be running: it is shut down, not cut off."""
    async with world(claim_boot_timeout=60, boot_retry=5) as w:
        await begun(w)
        await w.until_true(lambda s: s.status.boot_attempts == 1, within=200)
        first = (await w.server()).status.boot_window
        await w.until_true(lambda s: bool(first and s.status.boot_window and s.status.boot_window.id != first.id))
        await w.until_true(lambda s: s.status.power_state == "On")
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_true(lambda s: answered(s) == 1)
    assert "force_off" not in w.bmc.calls


async def test_retry_goes_on_with_the_boot_that_was_asked_for() -> None:
    """After Error, with fresh attempts."""
    async with world(claim_boot_timeout=60, boot_attempts=1) as w:
        await begun(w)
        await w.until("Error", within=900)
        await retry(w)
        server = await boot_again(w)
    assert server.status.boot_attempts == 0


async def test_a_claim_that_wants_its_machine_off_gets_the_boot_once_it_wants_it_on() -> None:
    """As machine controllers do: off, changed, on."""
    async with world() as w:
        await claimed_and_booted(w)
        await ask(w, 1, power="Off", image="reg/os:2")
        await w.until_true(lambda s: s.status.power_state == "Off" and not s.status.waiting_for)
        await asyncio.sleep(300)
        boots, ready = w.bmc.network_boots, await reason(w, "Ready")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
        server = await boot_again(w)
    assert boots == FIRST
    assert ready == ("False", "NetworkBootRequested")
    assert w.bmc.disk_boots == 0
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.image == "reg/os:2"


async def test_a_number_raised_while_a_boot_is_under_way_begins_it_anew() -> None:
    """What was begun for the former number is not served any more, and one boot answers both."""
    async with world() as w:
        old = (await claimed_and_booting(w)).status.boot_window
        await ask(w, 2)
        server = await w.until_true(lambda s: _generation(s) == 2)
        await w.boot_claim()
        server = await w.until_true(lambda s: answered(s) == 2)
        await asyncio.sleep(600)
    assert old is not None
    assert server.status.boot_window is not None
    assert server.status.boot_window.id != old.id
    assert w.bmc.network_boots == FIRST + 1


async def test_a_number_raised_as_the_boot_succeeds_is_another_boot() -> None:
    """The success counts for its own number."""
    async with world(**QUICK) as w:
        await begun(w)
        await w.fetch_script()
        await w.runtime.stop(grace=0.0)
        await w.fetch_ignition()
        await ask(w, 2)
        await w.restart()
        await w.until_true(lambda s: answered(s) == 1)
        await w.until_true(lambda s: s.status.power_state == "On" and _generation(s) == 2)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_true(lambda s: answered(s) == 2)
    assert w.bmc.network_boots == FIRST + 2


@pytest.mark.behaviour("Server: network boot", "A lost status never repeats a boot.")
@pytest.mark.parametrize("lost", [("server",), ("server", "claim")], ids="-and-".join)
async def test_a_lost_status_never_repeats_a_boot(lost: tuple[str, ...]) -> None:
    """It is unknown which boots the claim had: all that it requested count as done."""
    async with world() as w:
        await begun(w, generation=4)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_true(lambda s: answered(s) == 4 and at_rest(s))
        await w.runtime.stop(grace=0.0)
        await w.client.patch_status(KINDS.server, "s1", {"status": None})
        if "claim" in lost:
            await w.client.patch_status(KINDS.claim, "c1", {"status": None}, "default")
        w.bmc.calls.clear()
        await w.restart()
        server = await w.until("Reserved")
        await asyncio.sleep(600)
        server = await w.server()
    assert w.bmc.writes() == []
    assert answered(server) == 4


async def test_an_older_copy_of_the_servers_status_never_repeats_a_boot() -> None:
    """The claim knows as well which of its boots it had, and the higher number counts."""
    async with world() as w:
        before = await begun(w)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_claim(lambda c: c.status.boot_generation == 1)
        await w.runtime.stop(grace=0.0)
        assert before.status.tenancy.boot is not None
        old = {"bootGeneration": None, "requestedGeneration": None}
        await w.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": {"boot": old}, "bootWindow": None}})
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(600)
    assert w.bmc.writes() == []


@pytest.mark.behaviour("Server: network boot", "With CRDs that drop `bootGeneration` nothing is booted again.")
async def test_with_crds_that_drop_the_number_nothing_is_booted() -> None:
    """The boot would be forgotten as soon as it was had, and had again for ever."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        await w.api.install_crds([_without_the_numbers(crd) for crd in crds(KINDS)])
        await w.restart()
        w.bmc.calls.clear()
        await ask(w, 1)
        server = await w.until_true(lambda s: s.status.wait is not None)
        await asyncio.sleep(900)
        events = await w.events()
    assert server.status.wait is not None
    assert server.status.wait.for_ == "CustomResourceDefinitions"
    assert w.bmc.writes() == []
    assert not [e for e in events if e.reason == "NetworkBootRequested" and e.involved_object.kind == "Server"]


def _without_the_numbers(crd: dict[str, Any]) -> dict[str, Any]:
    if crd["spec"]["names"]["kind"] == "Server":
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        boot = schema["properties"]["status"]["properties"]["tenancy"]["properties"]["boot"]["properties"]
        del boot["bootGeneration"], boot["requestedGeneration"]
    return crd


@pytest.mark.behaviour("Server: network boot", "An outdated cached claim neither starts nor ends a boot.")
@pytest.mark.parametrize("begun_for", [0, 1])
async def test_an_old_copy_of_the_claim_begins_and_ends_nothing(begun_for: int) -> None:
    """The API is asked before a system is shut down, and before a boot is given up."""
    async with world() as w:
        await (begun(w) if begun_for else claimed_and_booted(w))
        old = _old_leader(w, await w.server())
        old.deps.claims = cast("Informer[ServerClaim]", _Behind(_asking(await w.claim(), 1 - begun_for)))
        before = (await w.server()).status
        w.bmc.calls.clear()
        for _ in range(3):
            await old.reconcile(Key("s1"))
        after = (await w.server()).status
    assert w.bmc.writes() == []
    assert (after.tenancy, after.boot_window) == (before.tenancy, before.boot_window)


@dataclass
class _Behind:
    """A cache that holds another version of the claim."""

    claim: ServerClaim

    def get(self, _: Key) -> ServerClaim:
        return self.claim

    def by_index(self, _: str, __: str) -> list[ServerClaim]:
        return [self.claim]


def _asking(claim: ServerClaim, generation: int) -> ServerClaim:
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, boot_generation=generation))


async def test_resets_are_refused_and_parking_waits_while_another_boot_is_owed() -> None:
    """Neither sends the machine to the network, and neither cuts the boot off."""
    async with world() as w:
        await begun(w)
        await operate(w, "power-cycle-server")
        await w.settle()
        await operate(w, "park")
        told = await reasons(w)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_true(lambda s: answered(s) == 1)
        await w.until("Parked")
        await operate(w, "unpark")
        await w.until_true(at_rest)
    assert {"OperationRefused", "ParkDeferred"} <= told
    assert w.bmc.network_boots == FIRST + 1


async def test_a_reset_is_refused_while_the_boot_configuration_is_awaited() -> None:
    """The machine still runs its old system, which is to be shut down for the boot."""
    async with world() as w:
        await claimed_and_booted(w)
        await ask(w, 1, image="reg/os:2")
        await w.until_true(lambda s: bool(s.status.waiting_for))
        w.bmc.calls.clear()
        await operate(w, "hard-restart-server")
        told = await reasons(w)
    assert "OperationRefused" in told
    assert w.bmc.writes() == []


async def test_a_maintenance_comes_first_and_the_boot_follows() -> None:
    """The window is closed; afterwards the boot is still owed."""
    async with world() as w:
        await begun(w)
        await maintain(w)
        during = await w.until("Maintenance")
        await asyncio.sleep(60)
        await maintain(w, on=False)
        await boot_again(w)
    assert during.status.boot_window is not None
    assert during.status.boot_window.phase == Phase.CLOSED


async def test_a_claim_deleted_while_it_boots_again_is_cleaned_up() -> None:
    """As after any tenant."""
    async with world() as w:
        await begun(w)
        await w.fetch_script()
        await w.client.delete(KINDS.claim, "c1", "default")
        free = await w.until_true(lambda s: s.status.state == "Available" and s.spec.server_claim_ref is None)
    assert free.status.tenancy.boot is None
    assert w.bmc.power == "Off"


@pytest.mark.behaviour("Server: network boot", "A manager killed at any write executes a `spec.bootGeneration` once.")
@pytest.mark.parametrize("number", range(0, 36, 2))
async def test_a_manager_killed_at_any_write_answers_a_number_once(number: int) -> None:
    """Before or after each write to the API or to the BMC; never from the disk in between, never a second time."""
    async with world(**QUICK) as w:
        around = Surroundings(w)
        await w.add_server()
        async with around.acting():
            await w.until("Available")
            claim = await w.add_claim()
            await w.until_true(at_rest)
            await asyncio.sleep(30)
            killer = Killer(w, number)
            await ask(w, 1, image="reg/os:2")
            await _killed_and_restarted(w, killer)
            server = await w.until_true(lambda s: answered(s) == 1 and at_rest(s), within=900)
            await asyncio.sleep(200)
    assert around.served[claim.metadata.uid] == 2
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (FIRST + 1, 0)
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.image == "reg/os:2"
    assert killer.reached.is_set() or number > 20, "it takes fewer writes by now: look at the parameters"


async def _killed_and_restarted(w: World, killer: Killer) -> None:
    try:
        async with asyncio.timeout(300):
            await killer.reached.wait()
    except TimeoutError:
        return
    await asyncio.sleep(0.1)
    await w.restart()
