"""Which identities are one machine."""

import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.kinds import kinds
from metal.api.server import Server
from metal.machine.identity import (
    Identity,
    Relation,
    canonical_uuid,
    compare,
    identity_of,
    identity_of_system,
    is_shared,
    lease_name,
    serial_key,
    system_serial,
)
from metal.machine.uuids import spellings

KINDS = kinds()
A, B = "1189d5f5-eca9-4fd2-87ce-98ef08a6bca7", "2289d5f5-eca9-4fd2-87ce-98ef08a6bca7"
SWAPPED = spellings(A)[1]


@given(st.uuids())
def test_both_byte_orders_and_any_case_are_one_key(value: uuid.UUID) -> None:
    """Whatever order and case firmware reports, the key is the same."""
    forms = {canonical_uuid(text) for form in spellings(str(value)) for text in (form, form.upper(), f" {form} ")}
    assert len(forms) == 1


@pytest.mark.parametrize(
    "text",
    [
        "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
        "00010203-0405-0607-0809-0A0B0C0D0E0F", "03020100-0504-0706-0809-0a0b0c0d0e0f",
        "fefefefe-fefe-fefe-fefe-fefefefefefe", "12345678-1234-5678-90ab-cddeefaabbcc",
    ],
)  # fmt: skip
def test_uuids_of_whole_series_of_boards_identify_nothing(text: str) -> None:
    """Nil, all F and the defaults of firmware vendors give no key, in either byte order."""
    assert (canonical_uuid(text), is_shared(text)) == ("", True)


@pytest.mark.parametrize("text", ["", "x", A.replace("-", "")])
def test_text_that_is_no_uuid_is_no_shared_uuid(text: str) -> None:
    """It gives no key, and is reported as invalid, not as shared."""
    assert (canonical_uuid(text), is_shared(text)) == ("", False)


@pytest.mark.parametrize(
    "text",
    ["", " ", "To be filled by O.E.M.", "To Be Filled By O.E.M", "Default string", "System Serial Number", "0123456789",
     "00000000", "N/A", "None", "Not Specified", "............", "-"],
)  # fmt: skip
def test_placeholders_are_no_serial_numbers(text: str) -> None:
    """They give no key."""
    assert (serial_key(text), system_serial("Contoso", text)) == ("", "")


def test_a_serial_number_counts_with_its_manufacturer() -> None:
    """Case, blanks and the legal form of the company do not matter; another company is another machine."""
    assert system_serial("Dell Inc.", " 7ABC123 ") == system_serial("DELL", "7abc123") == "dell/7abc123"
    assert system_serial("Hewlett Packard Enterprise", "CZ1") == system_serial("HPE", "CZ1")
    assert system_serial("Contoso", "7ABC123") != system_serial("Dell", "7ABC123")


def one(uuid: str = A, serial: str = "contoso/s1", **more: Any) -> Identity:
    return Identity(uuid=uuid, serial=serial, **more)


PARTS = frozenset({"drive-serial:d1"})
ROWS = [
    ("the same UUID and serial number", one(), one(), Relation.SAME, True),
    ("the same UUID, no serial number", one(), one(serial=""), Relation.SAME, True),
    ("the same UUID, other serial numbers", one(), one(serial="contoso/s2"), Relation.AMBIGUOUS, True),
    ("no UUID, the same serial number", one(uuid=""), one(), Relation.SAME, True),
    ("no UUIDs, other serial numbers", one(uuid=""), one(uuid="", serial="contoso/s2"), Relation.DIFFERENT, False),
    ("nothing at all", one(uuid="", serial=""), one(), Relation.AMBIGUOUS, False),
    ("names of an administrator", one("", "", declared="x"), one("", "", declared="x"), Relation.SAME, True),
    ("other names", one("", "", declared="x"), one("", "", declared="y"), Relation.DIFFERENT, False),
    ("another UUID, the same serial number", one(), one(B), Relation.AMBIGUOUS, False),
    ("nodes of one chassis", one(shown=True), one(B, shown=True), Relation.DIFFERENT, False),
    ("another UUID and serial number", one(), one(B, "contoso/s2"), Relation.DIFFERENT, False),
    ("the same drives", one(parts=PARTS), one(B, "contoso/s2", parts=PARTS), Relation.AMBIGUOUS, False),
    ("a shelf of drives that both see", one(parts=PARTS, shown=True), one(B, "contoso/s2", parts=PARTS, shown=True),
     Relation.DIFFERENT, False),
]  # fmt: skip


@pytest.mark.parametrize(("_", "first", "second", "relation", "exclusive"), ROWS, ids=[row[0] for row in ROWS])
def test_the_verdict_is_that_of_the_table(
    _: str, first: Identity, second: Identity, relation: Relation, exclusive: bool
) -> None:
    """Each row of the table, in both directions; parts alone never make two machines one."""
    for verdict in (compare(first, second), compare(second, first)):
        assert (verdict.relation, verdict.exclusive) == (relation, exclusive)
        assert verdict.reason


def test_contradicting_serial_numbers_say_what_decides() -> None:
    """The reason has both serial numbers, and says that the UUID decides."""
    reason = compare(one(), one(serial="contoso/s2")).reason
    assert "contoso/s1" in reason
    assert "contoso/s2" in reason
    assert "the UUID decides" in reason


def server(**status: Any) -> Server:
    body = {"metadata": {"name": "s"}, "spec": {"systemUUID": SWAPPED.upper()}, "status": status}
    return msgspec.convert(body, Server)


def test_a_server_has_the_keys_of_what_its_bmc_shows() -> None:
    """UUID, serial number, drives and globally unique MAC addresses; virtual interfaces of BMCs are left out."""
    found = identity_of(
        server(
            manufacturer="Contoso", serialNumber="S-1",
            storages=[{"name": "1", "drives": [{"name": "a", "serialNumber": "D 1234", "wwn": "5002538E40B3F8A1"}]}],
            networkInterfaces=[{"name": "a", "macAddress": "A0:36:9F:00:00:01", "source": "OutOfBand"},
                               {"name": "b", "macAddress": "02:05:e0:00:00:01"}],
        ), KINDS,
    )  # fmt: skip
    assert found.uuid == identity_of_system(A, "", "").uuid
    assert found.serial == "contoso/s1"
    assert found.parts == {"drive-serial:d1234", "drive-wwn:5002538e40b3f8a1", "mac:a0:36:9f:00:00:01"}
    assert not found.shown


def test_a_server_is_shown_while_its_bmc_answers_and_lists_it() -> None:
    """A parked server is not: its BMC is not read."""
    answers = {"type": "BMCReachable", "status": "True"}
    gone = {"type": "SystemPresent", "status": "False"}
    assert identity_of(server(conditions=[answers]), KINDS).shown
    assert not identity_of(server(conditions=[answers, gone]), KINDS).shown
    assert not identity_of(server(conditions=[answers], state="Parked"), KINDS).shown


def test_names_of_leases_are_valid_and_differ() -> None:
    """The name has the UUID; any other key is hashed."""
    names = [lease_name(key) for key in (f"uuid:{A}", "serial:contoso/s1", "declared:contoso/s1", "declared:Größe/ 1")]
    assert names[0] == f"system-{A}"
    assert len(set(names)) == len(names)
    assert all(name.isascii() and len(name) < 64 and name == name.lower() for name in names)
