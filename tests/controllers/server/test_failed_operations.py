"""A failure ends when the operation that failed succeeds, not when the BMC answers something else."""

import asyncio

import pytest

from metal.bmc.errors import BMCBusy, BMCConflict, BMCError, BMCServerError, BMCTimeout
from metal.bmc.power import PowerState
from tests.controllers.fakebmc import UUID
from tests.controllers.server.steps import claimed_and_booted, condition, retry
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
HOUR = 3600.0


def _failing(w: World, *operations: str, error: BMCError | None = None) -> None:
    """From now on the BMC answers these requests with an error, and all others."""
    for operation in operations:
        w.bmc.refuses[operation] = error or BMCServerError("POST on the BMC was answered 500 Internal Server Error")
    w.bmc.calls.clear()


async def _claimed_with_broken_power_on(w: World) -> None:
    await w.add_server()
    await w.discover()
    _failing(w, "power_on")
    await w.add_claim()
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await w.settle()
    await w.config_ready("c1", "default")


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A BMC that answers reads and fails power-on leads to Error that names the operation, with few requests.",
)
async def test_a_bmc_that_reads_and_does_not_switch_on_ends_in_error_with_few_requests() -> None:
    """In 4 hours fewer than 25 power-on requests and 600 requests in all; Error is reached within the deadline."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        failed = await w.until("Error", within=1000)
        await asyncio.sleep(4 * HOUR - 1000)
        later = await w.server()
        asked, requests = w.bmc.calls.count("power_on"), len(w.bmc.calls)
    assert failed.status.failure is not None
    assert (failed.status.failure.operation, failed.status.failure.state) == ("power-on", "Reserved")
    assert "power-on" in failed.status.failure.message
    assert "500 Internal Server Error" in failed.status.failure.message
    assert later.status.state == "Error"
    assert asked < 25
    assert requests < 600


async def test_the_failing_operation_is_recorded_with_its_first_time_and_its_count() -> None:
    """status.failingOperations names the operation until it succeeds."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await asyncio.sleep(200)
        server = await w.server()
        w.bmc.refuses.clear()
        after = await w.until_true(lambda s: not s.status.failing_operations, within=300)
    (known,) = server.status.failing_operations
    assert (known.operation, known.reason) == ("power-on", "InternalServerError")
    assert known.count >= 4
    assert known.first_failed_at is not None
    assert known.last_failed_at is not None
    assert known.first_failed_at < known.last_failed_at
    assert condition(server, "BMCOperational") == ("False", "InternalServerError")
    assert condition(server, "BMCReachable")[0] == "True"
    assert condition(after, "BMCOperational")[0] == "True"
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BMCOperation"


async def test_a_cleanup_whose_machine_cannot_be_switched_off_sends_few_resets() -> None:
    """In 12 hours fewer than 40 resets; Error names the operation; the cleanup goes on when the BMC switches it off."""
    async with world() as w:
        await claimed_and_booted(w)
        _failing(w, "graceful_off", "force_off")
        await w.client.delete(KINDS.claim, "c1", "default")
        failed = await w.until("Error", within=2000)
        await asyncio.sleep(12 * HOUR)
        resets, requests, events = len(w.bmc.writes()), len(w.bmc.calls), len(await w.events())
        w.bmc.refuses.clear()
        cleaned = await w.until("Available", within=2 * HOUR)
    assert failed.status.failure is not None
    assert failed.status.failure.operation == "force-power-off"
    assert resets < 40
    assert requests < 2000
    assert events < 60
    assert cleaned.status.failing_operations == ()


async def test_error_ends_by_itself_when_the_failed_operation_succeeds() -> None:
    """Nobody asks for it: the operation is tried again, and the claim boots."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await w.until("Error", within=1000)
        w.bmc.refuses.clear()
        server = await w.until_true(lambda s: s.status.power_state == "On", within=1.5 * HOUR)
    assert server.status.state == "Reserved"
    assert server.status.failure is None


async def test_a_machine_that_somebody_switches_on_ends_the_failure_of_power_on() -> None:
    """The result of the operation is read, whoever caused it."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await w.until("Error", within=1000)
        w.bmc._arrive(PowerState.ON)
        server = await w.until("Reserved", within=200)
    assert server.status.failure is None


async def test_retry_requests_the_operation_at_once() -> None:
    """operation=retry forgets the record, and so the pause."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await w.until("Error", within=1000)
        w.bmc.refuses.clear()
        await retry(w)
        server = await w.until_true(lambda s: s.status.power_state == "On", within=120)
    assert server.status.failing_operations == ()


@pytest.mark.parametrize("operation", ["power_on", "set_network_boot"])
async def test_a_recovered_read_does_not_reset_the_count_of_network_boots(operation: str) -> None:
    """An outage and its end leave status.bootAttempts as it was."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await w.runtime.stop(grace=0.0)
        w.bmc.refuses = {operation: BMCServerError("500")}
        await w.client.patch_status(KINDS.server, "s1", {"status": {"bootAttempts": 2}})
        await w.restart()
        await w.until("Error", within=2000)
        w.bmc.refuses.clear()
        server = await w.until("Reserved", within=HOUR)
    assert server.status.boot_attempts == 2


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A BMC that rejects a change because the host is in POST is asked again; the wait `BMCBusy` has a deadline.",
    issues=(997,),
)
async def test_a_host_in_post_is_a_named_wait_and_no_error() -> None:
    """The boot override is set after POST; meanwhile the wait names the operation."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        _failing(w, "set_network_boot", error=BMCBusy("PATCH was answered 400: the system BIOS is in POST."))
        await w.config_ready("s1")
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "BMCBusy")
        await asyncio.sleep(300)
        asked = w.bmc.calls.count("set_network_boot")
        w.bmc.refuses.clear()
        server = await w.until_true(lambda s: s.status.power_state == "On", within=300)
    assert "set-boot-override" in waiting.status.waiting_for
    assert waiting.status.wait is not None
    assert waiting.status.wait.until is not None
    assert asked <= 8
    assert server.status.state == "Discovery"


async def test_a_host_that_stays_in_post_is_error_after_the_deadline() -> None:
    """The deadline of the wait is timeouts.bmc; Error names the operation."""
    async with world(bmc_timeout=300.0) as w:
        await w.add_server()
        await w.until("Discovery")
        _failing(w, "set_network_boot", error=BMCBusy("the system BIOS is in POST"))
        await w.config_ready("s1")
        failed = await w.until("Error", within=330)
    assert failed.status.failure is not None
    assert failed.status.failure.operation == "set-boot-override"


async def test_a_host_in_post_is_not_cut_off_for_refusing_a_graceful_shutdown() -> None:
    """Busy is not "no graceful shutdown": power is cut after the grace, not at once."""
    async with world() as w:
        await claimed_and_booted(w)
        _failing(w, "graceful_off", error=BMCBusy("the system BIOS is in POST"))
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(60)
    assert "force_off" not in w.bmc.calls


async def test_an_inventory_that_cannot_be_read_is_not_ended_by_reading_the_system() -> None:
    """The system is read in every pass of Error; the inventory is asked for rarely."""
    async with world() as w:
        w.bmc.refuses["inventory"] = BMCServerError("500")
        await w.add_server()
        failed = await w.until("Error", within=1000)
        await asyncio.sleep(12 * HOUR)
        asked = w.bmc.calls.count("inventory")
        w.bmc.refuses.clear()
        await w.until("Discovery", within=1.5 * HOUR)
    assert failed.status.failure is not None
    assert failed.status.failure.operation == "read-inventory"
    assert asked < 40


async def test_a_led_that_cannot_be_set_leaves_the_server_available() -> None:
    """The location LED is not essential: a condition, few requests, and no Error."""
    async with world() as w:
        await w.add_server(indicatorLED="Lit")
        w.bmc.refuses["led Lit"] = BMCServerError("500")
        await w.discover()
        await asyncio.sleep(4 * HOUR)
        server, asked = await w.server(), w.bmc.calls.count("led Lit")
    assert server.status.state == "Available"
    assert condition(server, "SettingsApplied") == ("False", "InternalServerError")
    assert [known.operation for known in server.status.failing_operations] == ["set-indicator-led"]
    assert asked <= 4 * HOUR / 90


async def test_an_operation_that_nothing_requests_any_more_is_forgotten() -> None:
    """The LED is no longer declared, so that it cannot be set is no failure."""
    async with world() as w:
        await w.add_server(indicatorLED="Lit")
        w.bmc.refuses["led Lit"] = BMCServerError("500")
        await w.discover()
        await w.until_true(lambda s: bool(s.status.failing_operations))
        await w.client.patch(KINDS.server, "s1", {"spec": {"indicatorLED": ""}})
        server = await w.until_true(lambda s: not s.status.failing_operations)
    assert condition(server, "BMCOperational")[0] == "True"


async def test_another_change_in_progress_is_not_repeated_at_every_reading() -> None:
    """409: the power is read at intervals, and the request repeated with pauses."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        _failing(w, "power_on", error=BMCConflict("409"))
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        await w.until("Error", within=1000)
    assert w.bmc.calls.count("power_on") <= 16


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A `spec.systemUUID` that is corrected while the BMC is down ends `InvalidSpec` when the BMC answers.",
)
async def test_a_spec_corrected_while_the_bmc_is_down_ends_the_failure() -> None:
    """observedGeneration is recorded only by a pass that reached the BMC."""
    async with world() as w:
        await w.add_server(uuid="not-a-uuid")
        await w.until("Error", within=5)
        w.bmc.failure = BMCTimeout("no answer")
        changed = await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": UUID}})
        await asyncio.sleep(120)
        down = await w.server()
        w.bmc.failure = None
        server = await w.until("Discovery", within=120)
        await asyncio.sleep(30)
        observed = (await w.server()).status.observed_generation
    assert down.status.wait is not None
    assert down.status.failure is not None
    assert (down.status.wait.for_, "is not a UUID" in repr(down.status)) == ("BMC", False)
    assert down.status.waiting_for.startswith("the BMC to answer: no answer")
    assert "continues when its BMC answers: no answer" in down.status.failure.message
    assert down.status.observed_generation < changed.metadata.generation
    assert observed >= changed.metadata.generation
    assert server.status.failure is None


async def test_an_invalid_spec_that_is_changed_to_another_invalid_one_is_calm() -> None:
    """The second failure is observed as well; nothing flaps."""
    async with world() as w:
        await w.add_server(uuid="not-a-uuid")
        first = await w.until("Error", within=5)
        await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": "still-none"}})
        await asyncio.sleep(60)
        second = await w.server()
        await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": UUID}})
        await w.until("Discovery", within=60)
    assert second.status.since == first.status.since
    assert second.status.failure is not None
    assert ("still-none" in second.status.waiting_for, "still-none" in second.status.failure.message) == (True, True)


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "After the address of a BMC has changed, the system there is read and compared before anything is sent to it.",
)
async def test_after_the_address_changed_nothing_is_believed_of_the_former_machine() -> None:
    """A reading is valid for one address: another machine there is not switched, however fresh the reading was."""
    async with world(observe_max_age=600.0) as w:
        await claimed_and_booted(w)
        other = type(w.bmc)(uuid="99999999-2222-3333-4444-555555555599", power=PowerState.ON)
        w.pool.bmcs["10.0.0.10"] = other
        await w.client.patch(KINDS.server, "s1", {"spec": {"bmc": {"address": "10.0.0.10"}}})
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until_true(lambda s: condition(s, "BMCReachable") == ("False", "WrongSystem"))
        await asyncio.sleep(60)
    assert other.writes() == []
    assert server.status.state == "Cleanup"


async def test_a_clock_that_is_set_back_neither_moves_the_deadline_nor_ends_the_pauses() -> None:
    """One hour back: no more requests than otherwise, and Error comes at most one pause later than otherwise."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await asyncio.sleep(400)
        before = (await w.server()).status.failing_operations[0]
        w.clock.adjust(-3600)
        await asyncio.sleep(100)
        after = (await w.server()).status.failing_operations[0]
        failed = await w.until("Error", within=900 - 500 + 120)
        asked = w.bmc.calls.count("power_on")
    assert before.first_failed_at is not None
    assert after.first_failed_at is not None
    assert (before.first_failed_at - after.first_failed_at).total_seconds() > 3600 - 120
    assert failed.status.failure is not None
    assert failed.status.failure.operation == "power-on"
    assert asked <= 14


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A BMC that does not answer at the deadline of a power change delays its end once, not for ever.",
)
async def test_a_bmc_that_disappears_at_each_deadline_delays_the_end_of_a_power_change_once() -> None:
    """The BMC accepts power-on, nothing happens, and it does not answer for half a minute at the end of each period."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.ignores_power = True
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        begun = (await w.until_true(lambda s: s.status.power_request is not None)).status.power_request
        outages = 0
        while (request := (await w.server()).status.power_request) is not None and outages < 5:
            assert request.deadline is not None
            await asyncio.sleep((request.deadline - w.clock()).total_seconds() - 5)
            w.bmc.failure, outages = BMCTimeout("no answer"), outages + 1
            await asyncio.sleep(35)
            w.bmc.failure = None
            await asyncio.sleep(60)
        failed = await w.server()
    assert begun is not None
    assert begun.requested_at is not None
    assert outages == 2
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "PowerOnTimeout"
