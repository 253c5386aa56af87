"""Each invariant detects the history that violates it, and accepts a correct one."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from metal.api.common import ObjectRef
from metal.api.interruption import OperationRequest
from metal.api.server import Failure, PowerRequest
from metal.sim.history import History
from metal.sim.invariants import (
    InvariantViolation,
    check_all,
    check_available_is_off,
    check_discovered,
    check_disks_are_clean,
    check_power_after_configuration,
    check_sanitized,
    check_untouched,
)
from tests.sim.invariants.story import (
    BOARD,
    BOOTED,
    CLAIM,
    NOW,
    OTHER,
    REVERSED,
    UUID,
    Story,
    asked_again,
    available,
    erased,
    reserved,
    window,
)
from tests.sim.invariants.violations import VIOLATIONS, available_while_on


@pytest.mark.parametrize(("check", "tell"), VIOLATIONS, ids=[tell.__name__ for _, tell in VIOLATIONS])
def test_a_violation_is_found(check: Callable[[History], None], tell: Callable[[Story], None]) -> None:
    """The responsible check raises, with a message and the preceding entries; so does check_all."""
    story = Story()
    tell(story)
    with pytest.raises(InvariantViolation, match="preceding entries:\n  "):
        check(story.history)
    with pytest.raises(InvariantViolation):
        check_all(story.history)


def test_an_honest_life_passes() -> None:
    """Discovery, a claim with its boot, power off and on, Cleanup and a second claim violate nothing."""
    story = Story()
    story.config("Ready", "probe").server("Discovery", config=ObjectRef(namespace="default", name="probe"))
    story.machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="probe", source="network").machine("report", status=201)
    story.machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off").server("Available")
    story.claim().config("Ready").server("Reserved", CLAIM, tenant="u1", boot_window=window())
    story.machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="tenant", source="network").server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED)
    story.claim(power="Off").machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off")
    story.claim(power="On").machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="disk", source="disk").claim(going=True)
    story.server("Cleanup", CLAIM, tenant="u1").machine("reset", type="ForceOff", power="On")
    story.machine("power", state="Off").server("Available", sanitization="None")
    story.claim("c2", uid="u2").config("Ready", "c2").server("Reserved", OTHER, tenant="u2", boot_window=window("u2"))
    story.machine("reset", type="On", power="Off").machine("os", kind="tenant", source="network")
    check_all(story.history, {"never-said"})


def test_servers_of_one_machine_of_which_one_acts_pass() -> None:
    """One was applied by hand, with reversed bytes; after a new mainboard the Server has another UUID."""
    story = Story()
    reserved(story, boot_window=window()).machine("power", state="On")
    story.server("Initial", name="s2", uuid=REVERSED).server("", name="s3", owned=True)
    story.machine("power", state="Off").machine("mainboard", becomes=BOARD)
    check_all(reserved(story, uuid=BOARD).history)


def test_a_boot_that_the_claim_asked_for_passes() -> None:
    """Power off although the claim requests On, a second network boot, and Ready after it was recorded."""
    story = asked_again(Story()).machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=msgspec.structs.replace(BOOTED, boot_generation=1))
    check_all(story.claim(boot_generation=1, ready=True).history)


def test_power_for_a_boot_that_was_asked_for_needs_its_configuration() -> None:
    """As for the first boot."""
    story = asked_again(Story()).config("Pending").later().machine("reset", type="On", power="Off")
    with pytest.raises(InvariantViolation, match="before its boot configuration was Ready"):
        check_power_after_configuration(story.history)


def test_an_erasure_with_evidence_passes() -> None:
    """The machine is powered on in Cleanup for it; an accepted sanitization failure is no violation."""
    story = Story().config("Ready")
    boot = msgspec.structs.replace(window(""), purpose="Sanitization")
    erased(story).claim(going=True).server("Cleanup", CLAIM, tenant="u1", boot_window=boot).later()
    story.machine("reset", type="On", power="Off").machine("os", kind="sanitizer", source="network")
    available(story.machine("disk", first=True))
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    story.server("Available", sanitization="Accepted")
    check_all(story.history)


def test_a_server_that_is_deleted_once_it_is_erased_passes() -> None:
    """Nothing remains to be erased, also for the next Server of its machine."""
    story = erased(Story().config("Ready")).machine("disk", first=True)
    story.server("Released", CLAIM, tenant="u1", sanitization="Clear", sanitization_evidence="e1")
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")
    check_sanitized(story.history)
    check_disks_are_clean(story.history)


@pytest.mark.parametrize("said", [{"sanitization": "Accepted"}, {"sanitization_policy": "None"}])
def test_a_server_whose_data_was_left_on_purpose_may_be_deleted(said: dict[str, Any]) -> None:
    """The decision holds for the next Server of the machine as well."""
    story = reserved(Story().config("Ready")).machine("os", kind="tenant", source="network")
    story.server("Released", CLAIM, tenant="u1", **said)
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")
    check_sanitized(story.history)
    check_disks_are_clean(story.history)


def test_a_request_of_a_former_leader_that_arrives_late_gives_a_claim_no_second_server() -> None:
    """The claim names the server that it has; the other one is released without a change."""
    story = Story()
    story.server("Available", CLAIM, name="s2", uuid="other").claim(bound="s2").server("Available", CLAIM)
    story.server("Reserved", CLAIM).server("Cleanup", CLAIM).server("Available")
    check_all(story.history)


def test_a_report_that_was_kept_although_its_machine_was_told_otherwise_counts() -> None:
    """The API's response was lost, so the operator could not know."""
    story = Story().server("Discovery").machine("power", state="On").machine("report", status=503)
    check_discovered(story.machine("power", state="Off").server("Available").history)


def test_a_deletion_that_is_seen_a_moment_late_takes_no_server_away() -> None:
    """Servers and claims are watched apart; a new claim of the same name does not hold the old one's server."""
    story = Story().claim(bound="s1").server("Cleanup", CLAIM, tenant="u1").server("Available").claim(going=True)
    story.claim(uid="u2", bound="s1").server("Cleanup", CLAIM, tenant="u1").server("Available")
    check_all(story.history)


def test_a_maintenance_may_do_what_it_likes() -> None:
    """While a maintenance holds the server, its resets are no violation."""
    story = reserved(Story())
    held = story.history
    server = [entry for entry in held if getattr(entry, "kind", "") == "Server"][-1]
    spec = msgspec.structs.replace(server.obj.spec, server_maintenance_ref=CLAIM)  # type: ignore[union-attr]  # a Change
    held.changed("Server", "", "s1", msgspec.structs.replace(server.obj, spec=spec))  # type: ignore[union-attr]  # likewise
    story.machine("reset", type="ForceOff", power="On")
    check_untouched(held)


@pytest.mark.parametrize(
    "told",
    [
        {"operation_request": OperationRequest(operation="force-off-server", asked_at=NOW)},
        {"power_request": PowerRequest(target="Off", reason="parking")},
        {"state": "Maintenance"},
    ],
)
def test_what_somebody_asked_for_is_nobodys_concern(told: dict[str, Any]) -> None:
    """A reset by annotation, parking, and the end of a maintenance may power off a tenant's machine."""
    story = reserved(Story())
    server = [entry for entry in story.history if getattr(entry, "kind", "") == "Server"][-1].obj  # type: ignore[union-attr]  # a Change
    status = msgspec.structs.replace(server.status, **told)
    story.history.changed("Server", "", "s1", msgspec.structs.replace(server, status=status))
    story.machine("reset", type="ForceOff", power="On")
    check_untouched(story.history)
    story.history.changed("Server", "", "s1", server)
    with pytest.raises(InvariantViolation):
        check_untouched(story.later().machine("reset", type="ForceOff", power="On").history)


def test_a_pass_under_way_may_still_act() -> None:
    """A claim that was changed a moment ago may see the power action of the reconcile that read it before."""
    story = reserved(Story()).claim(power="Off").claim(going=True)
    story.machine("reset", type="On", power="Off")
    check_untouched(story.history)
    story.config("Pending").server("Reserved", CLAIM, tenant="u1").machine("reset", type="On", power="Off")
    check_power_after_configuration(story.history)
    with pytest.raises(InvariantViolation):
        check_untouched(story.later().machine("reset", type="On", power="Off").history)


def test_a_liar_is_not_judged_by_its_power() -> None:
    """Machines whose BMC reports a false power state are listed by the test, and excluded."""
    story = Story()
    available_while_on(story)
    check_available_is_off(story.history, false_power_states=frozenset({UUID}))


def test_a_server_that_failed_while_it_was_available_may_go_on_before_it_is_off() -> None:
    """Its machine was on meanwhile, and is being powered off; it cannot be claimed until then."""
    story = Story()
    failure = Failure(state="Available", reason="PowerOffTimeout")
    story.server("Error", failure=failure).machine("power", state="On").server("Available", power_state="On")
    check_available_is_off(story.history)
    story.server("Error", failure=msgspec.structs.replace(failure, state="Cleanup")).server("Available")
    with pytest.raises(InvariantViolation, match="while its power was On"):
        check_available_is_off(story.history)


@pytest.mark.parametrize("held", [True, False])
def test_a_disk_that_boots_is_a_tenants_while_a_claim_has_the_server(held: bool) -> None:
    """A system left by a maintenance, or by a tenant with the policy None, does not make a free machine dirty."""
    story = Story()
    story.server("Reserved" if held else "Discovery", CLAIM if held else None, boot_window=window())
    story.machine("os", kind="disk", source="disk").server("Available")
    if held:
        with pytest.raises(InvariantViolation, match="without a Cleanup"):
            check_sanitized(story.history)
    else:
        check_sanitized(story.history)


def test_what_somebody_decided_to_leave_is_not_asked_for_again() -> None:
    """The policy was None; the recreated Server has no record of it."""
    story = reserved(Story(), boot_window=window()).machine("os", kind="tenant", source="network")
    story.server("Cleanup", CLAIM).server("Available", sanitization="None")
    story.history.changed("Server", "", "s1", None)
    check_disks_are_clean(story.server("Discovery").server("Available").history)


def test_a_maintenances_system_is_no_tenant_although_its_server_is_gone() -> None:
    """The Server was deleted while the machine booted for the maintenance."""
    boot = msgspec.structs.replace(window(""), purpose="Maintenance")
    story = Story().server("Maintenance", boot_window=boot)
    story.history.changed("Server", "", "s1", None)
    story.machine("os", kind="tenant", source="network").server("Discovery").server("Available")
    check_sanitized(story.history)
