"""Further defects, in what identifies a machine or its drives, in the order of claims and in the writes of a status."""

import pytest

from metal.api.claim import ServerClaim
from metal.bmc.power import PowerState
from metal.controllers.claim import reconciler as claim_reconciler
from metal.controllers.claim import waiting
from metal.controllers.server.tenancy import living_claims, owed_drives
from metal.controllers.server.tenancy.adoption import adoption, outdated_status
from metal.controllers.shared.scope import StatusScope
from metal.kube.meta.objects import Key, key_of
from metal.machine import identity, lease_tenancy
from metal.machine.system_lease import SystemLeases
from metal.machine.uuids import spellings
from tests.controllers.bmc.enrolment import test_identity
from tests.controllers.claim import test_age, test_restored_server
from tests.controllers.server import test_causes
from tests.controllers.server.tenancy import test_erase_permission, test_owed_drives
from tests.controllers.server.tenancy.adoption import test_outdated_status
from tests.mutants.objects import _pass, _without_step, defect


@defect(test_identity.test_systems_with_a_vendors_default_uuid_are_told_apart_by_serial_number)
def takes_a_default_uuid_for_a_machines_own(patch: pytest.MonkeyPatch) -> None:
    """All machines whose firmware has its vendor's default UUID were one machine."""
    patch.setattr(identity, "canonical_uuid", lambda text: min(spellings(text.strip().lower())))


@defect(test_age.test_the_oldest_claims_get_the_servers_whatever_their_names, restarted=False)
def serves_waiting_claims_by_name(patch: pytest.MonkeyPatch) -> None:
    """After a restart, waiting claims were served by name and not by age."""

    def by_name(claim: ServerClaim) -> tuple[str, str, Key]:
        return claim.metadata.name, claim.metadata.uid, key_of(claim)

    patch.setattr(waiting, "age", by_name)


@defect(test_causes.test_a_text_that_changes_all_the_time_is_written_every_few_seconds_and_the_last_one_stays)
def writes_each_text(patch: pytest.MonkeyPatch) -> None:
    """A status was written at each pass whose text differed, such as a countdown."""
    patch.setattr(StatusScope, "_is_too_soon", lambda *_: False)


@defect(test_owed_drives.test_a_drive_that_a_claim_used_is_recognized_in_the_server_from_which_it_came)
def knows_only_the_drives_of_the_discovery(patch: pytest.MonkeyPatch) -> None:
    """A drive that a claim used after it came into a server was given to the next claim of its former server."""
    patch.setattr(owed_drives, "with_listed", lambda known, _: known)


@defect(
    test_restored_server.test_a_server_restored_as_it_was_before_its_claim_keeps_its_tenant,
    state="Initial", while_down=False,
)  # fmt: skip
def discovers_a_restored_server(patch: pytest.MonkeyPatch) -> None:
    """A Server restored with the status of its discovery was discovered, and its tenant's machine switched off."""
    patch.setattr(adoption, "before_discovery", _pass)


@defect(test_outdated_status.test_a_status_older_than_the_boot_of_its_claim_is_corrected, point="Available",
        parts=("spec", "status"))  # fmt: skip
def believes_a_status_that_is_older_than_the_claim(patch: pytest.MonkeyPatch) -> None:
    """A status restored from before a claim's boot switched the machine of the claim off, or gave it away."""
    _without_step(patch, outdated_status.run)


@defect(test_outdated_status.test_a_claim_stays_booted_while_its_server_does_not_know_it)
def withdraws_booted(patch: pytest.MonkeyPatch) -> None:
    """A claim whose server had an older status lost its condition Booted, the last witness of whose data it is."""
    patch.setattr(claim_reconciler, "_is_outdated", lambda *_: False)


@defect(test_outdated_status.test_a_server_restored_from_before_a_claim_that_is_gone_is_not_given_away,
        powered=PowerState.OFF)  # fmt: skip
def keeps_no_tenancy_outside_of_the_server(patch: pytest.MonkeyPatch) -> None:
    """A Server restored with its annotations from before a claim that is gone was given away with the claim's data."""
    patch.setattr(lease_tenancy, "value", lambda old, *_: old)


@defect(test_outdated_status.test_a_record_from_before_the_boot_of_its_claim_does_not_count_as_nothing_served)
def believes_that_nothing_was_served(patch: pytest.MonkeyPatch) -> None:
    """A record restored from before the boot of its claim was released without erasure: nothing had been served."""
    patch.setattr(SystemLeases, "has_begun", _pass)


@defect(test_erase_permission.test_a_claim_that_appears_after_the_question_keeps_its_data)
def searches_claims_only_before_the_boot(patch: pytest.MonkeyPatch) -> None:
    """A claim that was restored while the probe booted lost its data."""
    patch.setattr(living_claims, "are_there", _pass)
