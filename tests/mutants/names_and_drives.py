"""Defects in which a name, a serial number or a claim's spec was taken for the thing itself. See `objects.defect`."""

import pytest

from metal.controllers.server.tenancy import non_unique, owed_drives, ownership
from metal.controllers.shared.access import authorities, secret_use
from tests.controllers.server.bmc import test_connect
from tests.controllers.server.tenancy import test_erase_permission, test_non_unique, test_swapped_drives
from tests.controllers.server.tenancy.adoption import test_recreated
from tests.controllers.shared.access import test_secret_recreated
from tests.mutants.objects import _pass, defect


@defect(test_secret_recreated.test_a_bmc_with_the_name_of_a_deleted_one_gets_no_password)
def binds_a_secret_to_names(patch: pytest.MonkeyPatch) -> None:
    """A BMC that was created with the name of a deleted one had its password sent to an address of one's choice."""
    patch.setattr(secret_use, "_uids", lambda *_: {})


@defect(test_secret_recreated.test_a_bmc_that_was_connected_does_not_get_the_next_secret_of_the_same_name)
def takes_a_new_secret_for_the_deleted_one(patch: pytest.MonkeyPatch) -> None:
    """A BMC whose BMCSecret was deleted got the password of the next one of this name."""
    patch.setattr(secret_use, "_is_uid_of", lambda *_: True)


@defect(test_non_unique.test_the_erasure_of_another_drive_with_this_serial_number_settles_nothing, listed=False)
def settles_the_records_of_other_drives(patch: pytest.MonkeyPatch) -> None:
    """A drive with the serial number of an erased one was given away with a tenant's data."""
    patch.setattr(non_unique, "certain", lambda _, drives: list(drives))


@defect(test_swapped_drives.test_a_drive_that_was_put_into_a_tenants_server_and_is_not_erased_holds_the_server)
def erases_the_drives_of_the_discovery_only(patch: pytest.MonkeyPatch) -> None:
    """A drive that came later and that the probe did not see was given to the next claim as it was."""
    patch.setattr(owed_drives, "with_listed", lambda known, _: known)


@defect(test_erase_permission.test_a_living_claims_drive_that_no_bmc_lists_is_not_erased)
def allows_the_erasure_of_every_drive(patch: pytest.MonkeyPatch) -> None:
    """A living claim's drive was erased in another server in Cleanup whose BMC did not list it."""
    patch.setattr(owed_drives, "before_permission", _pass)


@defect(test_recreated.test_a_claim_that_names_the_server_and_never_had_it_gets_it_erased)
def believes_the_spec_of_a_claim(patch: pytest.MonkeyPatch) -> None:
    """Any tenant held a Server that was created again in FormerTenant, by naming it."""
    patch.setattr(ownership, "_reports_server", lambda _: True)


@defect(test_connect.test_the_authority_of_an_inline_bmc_is_read)
def reads_no_authority_for_a_server(patch: pytest.MonkeyPatch) -> None:
    """`spec.bmc.tls.caSecretRef` had an effect only if a BMC object named the same Secret."""
    patch.setattr(authorities, "read", _pass)
