"""Defects in enrolment, pins, records and clients, each put back by a small switch; see `objects`.

The list is the one of `objects`: importing this module adds to it.
"""

from typing import Any

import msgspec
import pytest

from metal.api.sanitization import SanitizationEvidence
from metal.apiserver import client
from metal.controllers.bmc import reconciler
from metal.controllers.bmc.enrolment import approval, servers
from metal.controllers.endpoint.enrolment import Enrolment
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import sanitization, sanitization_result
from metal.controllers.server.tenancy.adoption import lost_status
from metal.controllers.shared.access import pins
from metal.controllers.shared.access.enrolment_policy import EnrolmentPolicy
from metal.evidence.chain import Chain
from metal.machine import boot_window
from tests.apiserver import test_client
from tests.controllers.bmc import test_killed_in_enrolment, test_trust
from tests.controllers.bmc.enrolment import test_identity, test_servers
from tests.controllers.endpoint import test_enrolment_policy as policies
from tests.controllers.server import test_failed_operations
from tests.controllers.server.tenancy import test_sanitization_outage
from tests.controllers.server.tenancy.adoption import test_lost_status
from tests.controllers.shared.access import test_pins
from tests.evidence import test_chain
from tests.mutants.objects import _pass, defect

_GONE, _OBSERVE, _RESTORED = servers._gone, Scope.observe, pins.restored


@defect(test_trust.test_a_wiped_status_does_not_pin_another_certificate)
def pins_again_after_a_wipe(patch: pytest.MonkeyPatch) -> None:
    """Another client dropped status.certificate, and the refused certificate was pinned without a question."""
    patch.setattr(pins, "restored", lambda bmc, _kinds, field, *_: getattr(bmc.status, field))


@defect(test_pins.test_a_bmc_restored_as_before_its_pin_sends_no_password_to_another_device, restore=test_pins._unpin)
def pins_again_after_a_restore(patch: pytest.MonkeyPatch) -> None:
    """A BMC from before its pin was restored, and the password was sent to the device at its address."""
    patch.setattr(pins, "restored", lambda *known: _RESTORED(*known[:4]))


@defect(test_killed_in_enrolment.test_a_password_goes_only_to_the_device_that_accepted_it,
        story="expected", moment="after")  # fmt: skip
def forgets_the_device_of_a_password(patch: pytest.MonkeyPatch) -> None:
    """A manager was killed before it created the BMC, and the next one sent the password to another device."""
    patch.setattr(Enrolment, "_device", lambda *_: {})


@defect(test_lost_status.test_a_drive_that_only_the_inventory_lists_is_owed_when_no_report_names_it, running=False)
def ignores_drives_of_the_inventory(patch: pytest.MonkeyPatch) -> None:
    """A wiped status before Cleanup ended "it has no drives", though status.storages listed one."""
    patch.setattr(lost_status, "drives_in", lambda _: ())
    patch.setattr(sanitization_result, "_without_drives", lambda _, verdict: verdict)


@defect(test_failed_operations.test_a_spec_corrected_while_the_bmc_is_down_ends_the_failure)
def observes_the_spec_in_a_failed_pass(patch: pytest.MonkeyPatch) -> None:
    """A systemUUID that was corrected while the BMC was down stayed InvalidSpec until somebody retried."""
    patch.setattr(Scope, "generation_observed", property(lambda _: True, lambda *_: None), raising=False)


@defect(test_failed_operations.test_after_the_address_changed_nothing_is_believed_of_the_former_machine)
def believes_a_reading_of_another_address(patch: pytest.MonkeyPatch) -> None:
    """For a second after a BMC's address had changed, the identity of the old machine was believed."""

    async def observe(self: Scope, **limits: Any) -> Any:
        self.memo.verified = (self.endpoint, self.uri)
        return await _OBSERVE(self, **limits)

    patch.setattr(Scope, "observe", observe)
    patch.setattr(Scope, "verify_system", _pass)


@defect(test_servers.test_labels_removed_while_no_manager_ran_are_removed, left={"rack": "1"})
def remembers_applied_labels_in_memory(patch: pytest.MonkeyPatch) -> None:
    """A label that was removed from a BMC while no manager ran stayed on its Server."""
    patch.setattr(servers, "_digest", lambda _: "")


@defect(test_identity.test_a_hand_named_server_whose_system_is_gone_says_so, spelling=str.upper)
def misses_only_servers_of_its_own_names(patch: pytest.MonkeyPatch) -> None:
    """A hand-named Server whose system was removed never said so."""

    def gone(scope: Any, present: Any) -> Any:
        return [server for server in _GONE(scope, present) if server.metadata.name.startswith(f"{scope.name}-system-")]

    patch.setattr(servers, "_gone", gone)


@defect(test_identity.test_a_server_that_was_moved_to_the_replacing_bmc_outlives_the_old_one)
def advises_to_delete_after_a_replaced_bmc(patch: pytest.MonkeyPatch) -> None:
    """The advice for a replaced BMC led to deleting a Server with a claim."""
    patch.setattr(servers, "_duplicate_text", lambda _scope, _shown, server: f"delete Server {server.metadata.name}")


@defect(policies.test_a_lease_outside_of_the_networks_of_bmcs_is_not_contacted)
def contacts_any_address(patch: pytest.MonkeyPatch) -> None:
    """Any device that asked for a lease was contacted, and offered the passwords of its prefix."""
    patch.setattr(EnrolmentPolicy, "outside", lambda *_: "")


@defect(policies.test_with_manual_approval_a_bmc_waits_and_nothing_is_sent)
def enrols_without_approval(patch: pytest.MonkeyPatch) -> None:
    """Each device that a lease showed became a Server."""
    patch.setattr(EnrolmentPolicy, "first_value", lambda *_: "")


@defect(policies.test_an_unexpected_serial_number_waits_before_a_server_is_created)
def enrols_any_serial_number(patch: pytest.MonkeyPatch) -> None:
    """A machine that the site did not expect became a Server."""
    kept = tuple(phase for phase in reconciler._PHASES if phase is not approval.confirm)
    assert len(kept) < len(reconciler._PHASES)
    patch.setattr(reconciler, "_PHASES", kept)


@defect(policies.test_plain_text_needs_a_word_of_the_entry)
def sends_passwords_in_plain_text(patch: pytest.MonkeyPatch) -> None:
    """bmc.scheme http sent the passwords of all prefixes in plain text."""
    patch.setattr(Enrolment, "_require_encryption", lambda *_: None)


@defect(test_chain.test_a_record_that_was_deleted_is_missing, name="b")
def links_no_records(patch: pytest.MonkeyPatch) -> None:
    """A record of evidence that was deleted was not missed."""

    async def link(_: Chain, evidence: SanitizationEvidence) -> SanitizationEvidence:
        return evidence

    patch.setattr(Chain, "link", link)


@defect(test_sanitization_outage.test_a_report_that_waited_for_the_manager_is_accepted)
def refuses_results_after_an_outage(patch: pytest.MonkeyPatch) -> None:
    """An outage longer than the deadline of the erasure refused its good result."""
    patch.setattr(sanitization, "_after_outage", lambda _, window: window)
    patch.setattr(boot_window, "_is_erasing", lambda _: False)


@defect(test_client.test_an_object_that_the_struct_cannot_hold_is_malformed, act=test_client.first_of_watch)
def leaks_errors_of_the_decoder(patch: pytest.MonkeyPatch) -> None:
    """One object that the struct cannot hold raised an error of msgspec, and ended all Events."""

    def decode(_: client.InProcessClient, kind: Any, record: Any) -> Any:
        return msgspec.json.decode(record.body, type=kind.struct)

    patch.setattr(client.InProcessClient, "_decode", decode)
