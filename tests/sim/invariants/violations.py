"""Stories of which each violates an invariant, and the check that detects it."""

from collections.abc import Callable
from datetime import timedelta

from metal.api.common import Taint
from metal.api.sanitization import (
    DriveErasure,
)
from metal.api.server import Wait
from metal.sim.history import History
from metal.sim.invariants import (
    check_available_is_off,
    check_discovered,
    check_disks_are_clean,
    check_eligible,
    check_kept,
    check_one_claim,
    check_one_machine,
    check_one_network_boot,
    check_power_after_configuration,
    check_ready,
    check_sanitized,
    check_strangers,
    check_untouched,
    check_waits,
)
from tests.sim.invariants.story import (
    BOARD,
    BOOTED,
    CLAIM,
    NOW,
    OTHER,
    REVERSED,
    Story,
    asked_again,
    available,
    erased,
    reserved,
    window,
)


def claimed_twice(story: Story) -> None:
    story.server("Reserved", CLAIM).server("Reserved", OTHER)


def tenant_follows_tenant(story: Story) -> None:
    story.server("Reserved", CLAIM, tenant="u1").server("Reserved", CLAIM, tenant="u2")


def claim_holds_two(story: Story) -> None:
    story.server("Reserved", CLAIM, name="s1").server("Reserved", CLAIM, name="s2", uuid="other")


def cordoned_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"unclaimable": True}).server("Available", CLAIM)


def tainted_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"taints": (Taint(key="k", effect="NoBind"),)}).server("Available", CLAIM)


def maintained_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"server_maintenance_ref": OTHER}).server("Available", CLAIM)


def on_and_taken(story: Story) -> None:
    story.claim().server("Available", power_state="On").server("Available", CLAIM)


def undiscovered_and_taken(story: Story) -> None:
    story.claim().server("Discovery").server("Discovery", CLAIM)


def taken_away(story: Story) -> None:
    story.claim(bound="s1").server("Reserved", CLAIM, tenant="u1").server("Available").later().claim(going=True)


def handed_to_another(story: Story) -> None:
    story.claim(bound="s1").server("Reserved", CLAIM, tenant="u1").server("Reserved", OTHER, tenant="u1")


def ready_before_its_boot(story: Story) -> None:
    story.claim(bound="s1", ready=True).later().server("Reserved", CLAIM, claim_boot=BOOTED)


def another_machine_under_its_name(story: Story) -> None:
    story.server("Available").server("Available", uuid="other")


def enrolled_twice(story: Story) -> None:
    story.server("Available", owned=True).server("Initial", name="s2", owned=True)


def enrolled_twice_with_reversed_bytes(story: Story) -> None:
    story.machine("power", state="Off").server("Available", owned=True)
    story.server("Initial", name="s2", uuid=REVERSED, owned=True)


def booted_by_two_servers(story: Story) -> None:
    story.server("Discovery", boot_window=window()).server("Discovery", name="s2", boot_window=window())


def two_tenants_on_one_machine(story: Story) -> None:
    reserved(story).claim("c2", uid="u2").server("Reserved", OTHER, name="s2", tenant="u2")


def another_machine_than_its_mainboards(story: Story) -> None:
    story.server("Available").machine("mainboard", becomes=BOARD)
    story.server("Available", uuid="99999999-2222-3333-4444-555555555556")


def available_by_an_old_report(story: Story) -> None:
    story.server("Discovery").machine("power", state="On").machine("report", status=201).machine("power", state="Off")
    story.machine("power", state="On").machine("power", state="Off").server("Available")


def served_to_a_stranger(story: Story) -> None:
    story.machine("fetch", path="/ignition/99999999-2222-3333-4444-555555555599", status=200)


def on_for_a_claim_that_has_another(story: Story) -> None:
    story.claim(bound="s2").server("Reserved", CLAIM, tenant="u1").later().machine("reset", type="On", power="Off")


def off_under_a_claim(story: Story) -> None:
    reserved(story).later().machine("reset", type="ForceOff", power="On")


def button_under_a_claim(story: Story) -> None:
    reserved(story).later().machine("reset", type="PushPowerButton", power="On")


def on_against_the_claim(story: Story) -> None:
    story.claim(power="Off").server("Reserved", CLAIM, tenant="u1")
    story.later().machine("reset", type="On", power="Off")


def on_in_cleanup(story: Story) -> None:
    story.claim(going=True).server("Cleanup", CLAIM, tenant="u1")
    story.later().machine("reset", type="On", power="Off")


def probe_under_a_claim(story: Story) -> None:
    reserved(story).machine("os", kind="probe", source="network")


def imaged_for_another(story: Story) -> None:
    reserved(story, boot_window=window("u9")).machine("os", kind="tenant", source="network")


def imaged_twice(story: Story) -> None:
    reserved(story, boot_window=window())
    story.machine("os", kind="tenant", source="network").machine("os", kind="tenant", source="network")


def imaged_again_unasked(story: Story) -> None:
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED, boot_window=window("u1", 1))
    story.machine("os", kind="tenant", source="network")


def imaged_for_a_former_request(story: Story) -> None:
    asked_again(story).machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED, boot_window=window())
    story.machine("os", kind="tenant", source="network")


def ready_before_the_boot_that_was_asked_for(story: Story) -> None:
    reserved(story).later().claim(boot_generation=1, ready=True)


def available_while_on(story: Story) -> None:
    story.server("Discovery").machine("power", state="On").server("Available")


def available_while_going_off(story: Story) -> None:
    story.server("Discovery").machine("power", state="PoweringOff").server("Available")


def available_without_cleanup(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Available", sanitization="None")


def available_without_evidence(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM).server("Available")


def evidence_of_the_tenant_before(story: Story) -> None:
    story.server("Cleanup", sanitization="None").server("Available", sanitization="None")
    reserved(story).machine("os", kind="disk", source="disk").server("Available", sanitization="None")


def evidence_that_is_not_there(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    available(story.machine("disk", first=True))


def evidence_of_a_failure(story: Story) -> None:
    available(erased(story, phase="Failed", owed=("a drive",)).machine("disk", first=True))


def evidence_with_a_drive_that_was_not_erased(story: Story) -> None:
    available(erased(story, drives=(DriveErasure(result="Missing"),)).machine("disk", first=True))


def evidence_that_nobody_signed(story: Story) -> None:
    available(erased(story, signed=False).machine("disk", first=True))


def evidence_of_another_server(story: Story) -> None:
    available(erased(story, server="s2").machine("disk", first=True))


def evidence_and_a_full_disk(story: Story) -> None:
    available(erased(story))


def nothing_owed_and_a_full_disk(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    story.server("Available", sanitization="NotOwed")


def deleted_before_its_erasure(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM, tenant="u1")
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")


def erased_under_a_claim(story: Story) -> None:
    reserved(story).machine("os", kind="sanitizer", source="network")


def nameless_wait(story: Story) -> None:
    story.server("Discovery", wait=Wait(until=NOW))


def endless_wait(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW), waiting_for="the report")


def words_without_a_wait(story: Story) -> None:
    story.server("Discovery", waiting_for="something")


def wait_without_a_way_out(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW, until=NOW + timedelta(minutes=1)))
    story.now += timedelta(hours=1)
    story.machine("power", state="On")


def wait_that_ended_late(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW, until=NOW + timedelta(minutes=1)))
    story.now += timedelta(hours=1)
    story.server("Error")


def on_before_the_configuration(story: Story) -> None:
    story.config("Pending").server("Discovery", config=CLAIM).machine("reset", type="On", power="Off")


def on_before_the_claims_configuration(story: Story) -> None:
    story.claim().config("Error").server("Reserved", CLAIM, tenant="u1").machine("reset", type="ForceOn", power="Off")


def on_without_a_configuration(story: Story) -> None:
    story.server("Discovery").machine("reset", type="PowerCycle", power="On")


VIOLATIONS: list[tuple[Callable[[History], None], Callable[[Story], None]]] = [
    (check_one_claim, claimed_twice),
    (check_one_claim, tenant_follows_tenant),
    (check_one_claim, claim_holds_two),
    (check_eligible, cordoned_and_taken),
    (check_eligible, tainted_and_taken),
    (check_eligible, maintained_and_taken),
    (check_eligible, on_and_taken),
    (check_eligible, undiscovered_and_taken),
    (check_kept, taken_away),
    (check_kept, handed_to_another),
    (check_ready, ready_before_its_boot),
    (check_one_machine, another_machine_under_its_name),
    (check_one_machine, enrolled_twice),
    (check_one_machine, enrolled_twice_with_reversed_bytes),
    (check_one_machine, booted_by_two_servers),
    (check_one_machine, two_tenants_on_one_machine),
    (check_one_machine, another_machine_than_its_mainboards),
    (check_discovered, available_by_an_old_report),
    (check_strangers, served_to_a_stranger),
    (check_untouched, on_for_a_claim_that_has_another),
    (check_untouched, off_under_a_claim),
    (check_untouched, button_under_a_claim),
    (check_untouched, on_against_the_claim),
    (check_untouched, on_in_cleanup),
    (check_untouched, probe_under_a_claim),
    (check_untouched, imaged_for_another),
    (check_one_network_boot, imaged_twice),
    (check_one_network_boot, imaged_again_unasked),
    (check_one_network_boot, imaged_for_a_former_request),
    (check_ready, ready_before_the_boot_that_was_asked_for),
    (check_available_is_off, available_while_on),
    (check_available_is_off, available_while_going_off),
    (check_sanitized, available_without_cleanup),
    (check_sanitized, available_without_evidence),
    (check_sanitized, evidence_of_the_tenant_before),
    (check_sanitized, evidence_that_is_not_there),
    (check_sanitized, evidence_of_a_failure),
    (check_sanitized, evidence_with_a_drive_that_was_not_erased),
    (check_sanitized, evidence_that_nobody_signed),
    (check_sanitized, evidence_of_another_server),
    (check_disks_are_clean, evidence_and_a_full_disk),
    (check_disks_are_clean, nothing_owed_and_a_full_disk),
    (check_sanitized, deleted_before_its_erasure),
    (check_disks_are_clean, deleted_before_its_erasure),
    (check_untouched, erased_under_a_claim),
    (check_waits, nameless_wait),
    (check_waits, endless_wait),
    (check_waits, words_without_a_wait),
    (check_waits, wait_without_a_way_out),
    (check_waits, wait_that_ended_late),
    (check_power_after_configuration, on_before_the_configuration),
    (check_power_after_configuration, on_before_the_claims_configuration),
    (check_power_after_configuration, on_without_a_configuration),
]
