"""Defects that lie between objects, each put back by a small switch, with a test of the fast lane that must then fail.

What a defect did, and what it cost, is in the switch's docstring. `PREVENTED` lists them. Start reading in `defect`.
"""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from metal.controllers.bmc.enrolment import duplicates as bmcs
from metal.controllers.bmc.enrolment import servers
from metal.controllers.claim import matching
from metal.controllers.maintenance.queue_order import ApprovalRules
from metal.controllers.server import clock_jump, duplicates, reconciler
from metal.controllers.server.bmc import failing, reported_interfaces
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import drive_search, living_claims, owed_drives, sanitization_policy
from metal.controllers.server.tenancy.adoption import adoption, unknown_data
from metal.controllers.server.tenancy.adoption.adoption_table import Annotation
from metal.controllers.shared import reconciled
from metal.controllers.shared.access import secret_use
from metal.kube.controller.own_writes import OwnWrites
from metal.machine import charge, identity, tenancy
from metal.machine.system_lease import SystemLeases
from metal.machine.uuids import spellings
from tests.controllers.bmc.enrolment import test_duplicates as of_bmcs
from tests.controllers.bmc.enrolment import test_identity as enrolment
from tests.controllers.claim import test_age, test_lost
from tests.controllers.maintenance import test_queue
from tests.controllers.server import test_causes, test_failed_operations
from tests.controllers.server import test_duplicates as of_servers
from tests.controllers.server.states import test_reported_interfaces
from tests.controllers.server.tenancy import test_owed_drives, test_sanitization_policy
from tests.controllers.server.tenancy.adoption import test_lost_status, test_unknown_data
from tests.controllers.shared import test_reconciled
from tests.controllers.shared.access import test_secret_use

Switch = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Defect:
    """One defect: its switch puts it back, and the test must fail."""

    name: str
    switch: Switch
    test: Test


PREVENTED: list[Defect] = []


def defect(test: Callable[..., Awaitable[None]], **parameters: Any) -> Callable[[Switch], Switch]:
    """Add a defect that this test detects."""

    def add(switch: Switch) -> Switch:
        PREVENTED.append(Defect(switch.__name__, switch, functools.partial(test, **parameters)))
        return switch

    return add


async def _pass(*_: object, **__: object) -> None:
    return None


def _without_step(patch: pytest.MonkeyPatch, step: object) -> None:
    kept = tuple(one for one in reconciler._BEFORE_THE_BMC if one is not step)
    assert len(kept) < len(reconciler._BEFORE_THE_BMC)
    patch.setattr(reconciler, "_BEFORE_THE_BMC", kept)


@defect(of_servers.test_a_second_server_of_a_claimed_machine_does_nothing, uuid=spellings(of_servers.ASYMMETRIC)[0])
def compares_no_servers(patch: pytest.MonkeyPatch) -> None:
    """A second Server of a claimed machine switched it off and booted the discovery."""
    _without_step(patch, duplicates.hold)
    patch.setattr(Scope, "require_in_charge", _pass)


@defect(of_servers.test_a_second_server_of_a_claimed_machine_does_nothing, uuid=spellings(of_servers.ASYMMETRIC)[1])
def compares_the_spelling_of_uuids(patch: pytest.MonkeyPatch) -> None:
    """A UUID with reversed bytes was another machine."""
    patch.setattr(identity, "canonical_uuid", str.lower)


@defect(of_servers.test_a_server_that_the_cache_does_not_show_yet_is_found_by_the_lease)
def asks_the_cache_only(patch: pytest.MonkeyPatch) -> None:
    """Two Servers that were created at once did not see each other."""
    patch.setattr(Scope, "require_in_charge", _pass)


@defect(of_servers.test_of_two_with_a_recorded_tenant_neither_acts)
def takes_the_older_of_two_tenants(patch: pytest.MonkeyPatch) -> None:
    """A restored Server with a former tenant acted on the present tenant's machine."""
    patch.setattr(duplicates, "in_charge", lambda servers: min(servers, key=charge._age))


@defect(of_servers.test_a_replaced_mainboard_does_not_interrupt_the_tenant)
def discovers_a_replaced_mainboard(patch: pytest.MonkeyPatch) -> None:
    """The tenant's machine with a new mainboard was a new machine, and was booted for its discovery."""
    patch.setattr(duplicates, "_hold_new", lambda *_: None)
    patch.setattr(owed_drives, "before_boot", _pass)


@defect(enrolment.test_ten_bmcs_that_show_one_system_make_one_server)
def enrols_each_system_of_each_bmc(patch: pytest.MonkeyPatch) -> None:
    """Ten BMC objects with one system made two Servers."""
    patch.setattr(servers, "_existing", lambda *_: None)
    patch.setattr(SystemLeases, "acquire", _pass)


@defect(enrolment.test_a_new_system_in_the_place_of_a_tenants_is_not_enrolled)
def enrols_a_system_in_the_place_of_a_tenants(patch: pytest.MonkeyPatch) -> None:
    """The system behind a replaced mainboard got a Server of its own, and the tenant's data went to the next claim."""
    patch.setattr(servers, "_replaced", lambda *_: None)


@defect(of_bmcs.test_a_second_object_with_the_same_address_sends_nothing)
def contacts_a_bmc_twice(patch: pytest.MonkeyPatch) -> None:
    """Two BMC objects with one address both acted."""
    patch.setattr(bmcs, "hold", _pass)
    patch.setattr(bmcs, "compare_managers", _pass)
    patch.setattr(bmcs, "_in_charge", lambda scope, _: scope.obj)


@defect(test_owed_drives.test_a_living_claims_drive_that_its_bmc_shows_is_not_even_booted)
def forgets_the_drives_of_other_servers(patch: pytest.MonkeyPatch) -> None:
    """A claim's drive in another server was erased or given away."""
    patch.setattr(drive_search, "_in_servers", lambda *_: [])


@defect(test_owed_drives.test_a_claim_that_outlives_its_server_keeps_its_drive)
def looks_up_records_by_uuid_only(patch: pytest.MonkeyPatch) -> None:
    """An open record listed the very drive, and was not found in another machine."""
    patch.setattr(drive_search, "records_of", lambda *_: [])


@defect(test_owed_drives.test_an_erasure_does_not_begin_while_a_living_claims_drive_is_in_the_server)
def erases_whatever_is_in_the_machine(patch: pytest.MonkeyPatch) -> None:
    """A drive of another claim that was in the machine was erased with it."""
    patch.setattr(owed_drives, "before_erasure", _pass)


@defect(test_owed_drives.test_a_drive_that_came_after_the_discovery_stops_the_boot_of_the_next_claim)
def boots_a_claim_with_the_drives_of_the_discovery(patch: pytest.MonkeyPatch) -> None:
    """A drive that was put into an Available server was booted and overwritten by the next claim."""
    patch.setattr(owed_drives, "before_claim_boot", _pass)


@defect(test_lost.test_a_reference_that_is_removed_from_a_claimed_server_is_written_again, while_down=False)
def believes_a_removed_reference(patch: pytest.MonkeyPatch) -> None:
    """spec.serverClaimRef was removed, and a minute later the living claim's disk was erased."""
    patch.setattr(living_claims, "before_release", _pass)
    patch.setattr(living_claims, "before_erasure", _pass)


@defect(test_lost_status.test_a_status_wiped_before_cleanup_still_leads_to_the_erasure_of_every_drive, running=True)
def starts_without_the_lost_status(patch: pytest.MonkeyPatch) -> None:
    """A wiped status before Cleanup ended Available: "it has no drives"."""
    patch.setattr(adoption, "_annotation", lambda _: Annotation.NONE)


@defect(test_lost_status.test_a_wipe_during_the_first_boot_of_a_claim_does_not_count_as_booted, running=False)
def counts_a_lost_boot_as_booted(patch: pytest.MonkeyPatch) -> None:
    """A wipe during a claim's first boot ended Ready with nothing booted."""
    patch.setattr(adoption, "_annotation", lambda _: Annotation.NONE)


@defect(test_sanitization_policy.test_the_policy_of_a_tenancy_is_not_lowered)
def lowers_the_policy_of_a_tenancy(patch: pytest.MonkeyPatch) -> None:
    """Another client's update dropped sanitizationPolicy, and Purge became Clear."""
    patch.setattr(tenancy, "holds_data", lambda _: False)


@defect(test_sanitization_policy.test_a_claims_opt_out_is_not_honored_by_default)
def honors_every_opt_out(patch: pytest.MonkeyPatch) -> None:
    """A claim's policy None handed its disk to the next namespace."""

    def asked(scope: Scope, claim: Any) -> str:
        return (claim.spec.sanitization_policy if claim is not None else "") or scope.settings.sanitization_policy

    patch.setattr(sanitization_policy, "policy_for", asked)


@defect(test_sanitization_policy.test_a_server_that_was_not_erased_is_tainted_until_it_is)
def taints_nothing(patch: pytest.MonkeyPatch) -> None:
    """A server that was not erased was like any other."""
    patch.setattr(sanitization_policy, "taints", lambda _: {})


@defect(test_unknown_data.test_a_server_waits_for_its_wave)
def gives_adopted_servers_away(patch: pytest.MonkeyPatch) -> None:
    """Servers that the Go operator left Available were given away without erasure."""
    patch.setattr(unknown_data, "settle_data", lambda _: None)


@defect(test_failed_operations.test_a_bmc_that_reads_and_does_not_switch_on_ends_in_error_with_few_requests)
def takes_a_read_for_a_recovery(patch: pytest.MonkeyPatch) -> None:
    """A BMC that answered reads and failed writes never ended in Error."""
    patch.setattr(failing, "is_overdue", lambda *_: False)


@defect(test_failed_operations.test_a_cleanup_whose_machine_cannot_be_switched_off_sends_few_resets)
def repeats_a_failing_operation_at_once(patch: pytest.MonkeyPatch) -> None:
    """4,008 resets in 12 h."""
    patch.setattr(failing, "require_due", lambda *_: None)


@defect(test_causes.test_an_error_text_that_changes_causes_neither_requests_nor_writes)
def wakes_itself(patch: pytest.MonkeyPatch) -> None:
    """The Server controller woke itself by its own status write."""
    patch.setattr(OwnWrites, "wrote", lambda *_: False)


@defect(test_causes.test_a_clock_that_is_set_back_during_an_erasure_causes_no_writes_and_moves_no_deadline_later)
def lets_deadlines_slide(patch: pytest.MonkeyPatch) -> None:
    """The clock set back one hour gave 152 status writes a second while the deadline slid."""
    patch.setattr(clock_jump, "corrected", lambda status, _: status)


@defect(test_reconciled.test_a_refusal_in_mid_pass_is_reported_and_ends, error=test_reconciled.QUOTA)
def drops_what_a_refused_pass_learned(patch: pytest.MonkeyPatch) -> None:
    """An API refusal in mid-pass left no condition and no Event."""
    patch.setattr(reconciled, "_refused", _pass)


@defect(test_age.test_a_claim_does_not_bind_a_server_that_is_ignored)
def binds_an_ignored_server(patch: pytest.MonkeyPatch) -> None:
    """A claim was bound to a server with operation=ignore, and waited for ever."""
    patch.setattr(matching, "is_ignored", lambda _: False)
    patch.setattr(matching, "_ignored", lambda *_: None)


@defect(test_reported_interfaces.test_interfaces_that_an_administrator_accepts_are_known_in_band)
def believes_reported_interfaces(patch: pytest.MonkeyPatch) -> None:
    """A report of the discovery added a MAC address that the BMC does not show."""
    patch.setattr(reported_interfaces, "check", lambda *_: None)


@defect(test_queue.test_enforced_from_a_namespace_that_is_not_named_does_not_touch_another_tenants_machine)
def enforces_from_any_namespace(patch: pytest.MonkeyPatch) -> None:
    """Any account with that right booted its own image on another tenant's machine."""
    patch.setattr(ApprovalRules, "enforces", lambda _, maintenance: maintenance.spec.policy == "Enforced")


@defect(test_secret_use.test_a_password_is_not_sent_to_the_address_of_another_bmc)
def sends_any_password_anywhere(patch: pytest.MonkeyPatch) -> None:
    """`create bmcs` let its holder have any BMCSecret's password sent to an address of his choice."""
    patch.setattr(secret_use, "refusal", lambda *_: None)
