"""The table of vendor facts, row by row."""

import json

import pytest

from metal.bmc.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCBusy,
    BMCConflict,
    BMCError,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCServerError,
)
from metal.bmc.vendors import (
    MESSAGES,
    NO_QUIRKS,
    TABLE,
    ErrorClass,
    Machine,
    Quirks,
    Row,
    error_class,
    error_type,
    http_boot_for,
    quirks_for,
    restart_command,
    takes_image_url,
    tpm_clear_for,
)
from metal.redfish import Response
from metal.redfish.messages import error_for


@pytest.mark.behaviour(
    "BMC", "The SSH restart command is known for each vendor; for an unknown manufacturer no command is sent."
)
@pytest.mark.parametrize(
    ("manufacturer", "command"),
    [
        ("Dell Inc.", "racreset"), ("HPE", "cd /map1 && reset"), ("Hewlett Packard Enterprise", "cd /map1 && reset"),
        ("LENOVO", "resetsp"), ("Contoso", ""), ("", ""), ("Shpet", ""),
    ],
)  # fmt: skip
def test_each_vendor_has_its_command(manufacturer: str, command: str) -> None:
    """The spelling of the manufacturer does not matter; an unknown manufacturer has none."""
    assert restart_command(manufacturer) == command


def test_no_row_of_tpm_attributes_hides_another() -> None:
    """Each row is the first one for some manufacturer."""
    machines = [Machine(name) for name in ("Dell Inc.", "HPE", "NVIDIA", "Lenovo")]
    known = {row.tpm_clear for row in TABLE if row.tpm_clear is not None}
    found = {tpm_clear_for(machine, {clear.attribute: ""}) for clear in known for machine in machines}
    assert found - {None} == known


def test_every_row_with_a_url_of_http_boot_is_found_by_its_attribute() -> None:
    """Whatever the manufacturer is called; a BIOS without such an attribute has none."""
    known = [row.http_boot for row in TABLE if row.http_boot is not None]
    assert [http_boot_for(Machine("Contoso"), {boot.url: ""}) for boot in known] == known
    assert http_boot_for(Machine("Dell Inc."), {"BootMode": "Uefi"}) is None


@pytest.mark.parametrize(
    ("maker", "slot", "takes"),
    [("Lenovo", "EXT1", True), ("LENOVO", "RDOC1", False), ("Lenovo", "Remote1", False), ("HPE", "RDOC1", True)],
)
def test_of_lenovos_slots_those_for_urls_are_known(maker: str, slot: str, takes: bool) -> None:
    """A Lenovo BMC without such slots is another product, about which the row says nothing."""
    assert takes_image_url(Machine(maker), slot, ("EXT1", slot)) is takes
    assert takes_image_url(Machine(maker), "CD1", ("CD1", "CD2"))


@pytest.mark.parametrize(
    ("machine", "quirks"),
    [
        (Machine("Supermicro", "SYS-1"), Quirks(repeat_boot_mode=True, medium_is_usb_cd=True)),
        (Machine("Super Micro Computer, Inc."), Quirks(repeat_boot_mode=True, medium_is_usb_cd=True)),
        (Machine("Supermicro", "ARS-111GL-NHR"), Quirks(repeat_boot_mode=True)),
        (Machine("ASRockRack"), Quirks(boot_in_settings=True)),
        (Machine("Lenovo", "GB300 NVL"), Quirks(no_expand=True, asset_tag_on_chassis=True)),
        (Machine("Lenovo", "SR650"), Quirks(asset_tag_on_chassis=True)),
        (Machine("Dell Inc."), Quirks(asset_tag_on_chassis=True)),
        (Machine("HPE"), NO_QUIRKS),
        (Machine(), NO_QUIRKS),
    ],
)
def test_each_row_of_quirks_matches_its_machines_and_no_others(machine: Machine, quirks: Quirks) -> None:
    """Case and the spelling of the manufacturer do not matter."""
    assert quirks_for(machine) == quirks


def test_quirks_of_several_rows_add_up_and_firmware_counts() -> None:
    """A row may be for one firmware only."""
    table = (
        Row("test", "acme", quirks=Quirks(no_expand=True)),
        Row("test", "acme", firmware=r"^1\.", quirks=Quirks(repeat_boot_mode=True)),
    )
    assert quirks_for(Machine("ACME", "", "1.2"), table) == Quirks(no_expand=True, repeat_boot_mode=True)
    assert quirks_for(Machine("ACME", "", "2.0"), table) == Quirks(no_expand=True)


def test_every_row_has_a_source_and_a_fact() -> None:
    """A row without a source cannot be checked or removed."""
    for row in TABLE:
        assert row.source
        assert row.quirks != NO_QUIRKS or row.tpm_clear or row.http_boot or row.media_slots or row.restart_command


@pytest.mark.behaviour(
    "BMC",
    "The message of a BMC, rather than the HTTP status, decides whether a request is repeated; vendors' ids are known.",
)
@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (("iLO.2.37.UnableToModifyDuringSystemPOST",), ErrorClass.BUSY),
        (("iLO.2.18.OperationAvailableAfterSystemPOST",), ErrorClass.BUSY),
        (("iLO.2.18.ResourceNotReadyRetry",), ErrorClass.BUSY),
        (("iLO.2.18.InternalErrorWithParam",), ErrorClass.TRANSIENT),
        (("iLO.2.18.UnauthorizedLoginAttempt",), ErrorClass.CREDENTIALS),
        (("iLO.2.18.UnsupportedOperationInLegacyBootMode",), ErrorClass.PERMANENT),
        (("IDRAC.1.6.SWC0700", "Base.1.2.GeneralError"), ErrorClass.BUSY),
        (("IDRAC.2.8.RAC0508",), ErrorClass.BUSY),
        (("RAC0508",), ErrorClass.BUSY),
        (("IDRAC.2.8.SYS518", "Base.1.12.ServiceTemporarilyUnavailable"), ErrorClass.BUSY),
        (("IDRAC.2.8.LC068",), ErrorClass.BUSY),
        (("IDRAC.2.8.SYS446", "Base.1.12.InternalError"), ErrorClass.TRANSIENT),
        (("Base.1.8.ResourceInUse",), ErrorClass.BUSY),
        (("Base.1.8.ServiceInUnknownState",), ErrorClass.TRANSIENT),
        (("Base.1.8.PasswordChangeRequired",), ErrorClass.CREDENTIALS),
        (("Base.1.8.PropertyValueNotInList",), ErrorClass.PERMANENT),
        (("Base.1.8.PropertyValueNotInList", "IDRAC.2.8.SWC0700"), ErrorClass.BUSY),
        (("iLO.2.18.SWC0700",), None),
        (("Base.1.8.GeneralError",), None),
        (("",), None),
        ((), None),
    ],
)
def test_the_messages_of_an_answer_have_a_class(ids: tuple[str, ...], found: ErrorClass | None) -> None:
    """The version of the registry does not matter, the registry does; "later" counts more than "never"."""
    assert error_class(ids) == found


def test_no_message_has_two_classes() -> None:
    """A message is in one row, and each row has messages and a source."""
    names = [(row.registry, name) for row in MESSAGES for name in row.names]
    assert len(names) == len(set(names))
    assert all(row.source and row.names for row in MESSAGES)


@pytest.mark.parametrize(
    ("status", "identity", "kind"),
    [
        (400, "iLO.2.37.UnableToModifyDuringSystemPOST", BMCBusy),
        (400, "IDRAC.1.6.SWC0700", BMCBusy),
        (500, "IDRAC.2.8.RAC0508", BMCBusy),
        (503, "Base.1.12.InternalError", BMCBusy),
        (503, "Base.1.8.PropertyValueNotInList", BMCBusy),
        (503, "Base.1.8.PasswordChangeRequired", BMCAuthError),
        (400, "Base.1.12.InternalError", BMCServerError),
        (500, "Base.1.8.PropertyUnknown", BMCBadRequest),
        (409, "Base.1.8.OperationFailed", BMCConflict),
        (409, "Base.1.8.ResourceInUse", BMCConflict),
        (404, "Base.1.8.InternalError", BMCNotFound),
        (404, "IDRAC.1.6.SWC0700", BMCBusy),
        (405, "Base.1.8.ActionNotSupported", BMCNotSupported),
        (403, "Base.1.8.InsufficientPrivilege", BMCForbidden),
        (403, "Base.1.8.PasswordChangeRequired", BMCAuthError),
        (401, "iLO.2.18.ResetInProgress", BMCAuthError),
        (400, "Contoso.1.0.Unknown", BMCBadRequest),
    ],
)
def test_the_error_of_an_answer_follows_its_message(status: int, identity: str, kind: type[BMCError]) -> None:
    """The status decides where no row knows the message, and between errors of the same class."""
    body = json.dumps({"error": {"@Message.ExtendedInfo": [{"MessageId": identity, "Message": "no"}]}}).encode()
    assert type(error_for(Response(status, {}, body), "PATCH /x", error_type)) is kind
