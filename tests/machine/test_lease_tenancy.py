"""The copy of the record of tenancy in the Lease of a machine: when it is written, kept, removed or newer."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from metal.api.boot_window import BootWindow
from metal.api.common import ObjectRef
from metal.api.server import ServerSpec, ServerStatus
from metal.api.tenancy import Tenancy, TenantRef
from metal.machine.lease_tenancy import RecordOutdated, value

OLD, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
U1, U2 = TenantRef(namespace="default", name="c1", uid="u1"), TenantRef(namespace="default", name="c2", uid="u2")


def _value(old: str, record: Tenancy, *, booting: bool = False, now: datetime = NOW) -> str:
    window = BootWindow(id="1", purpose="Claim", claim_uid=record.uid, opened_at=NOW, expires_at=NOW,
                        config_ref=ObjectRef(namespace="default", name="c1"))  # fmt: skip
    return value(old, ServerSpec(), ServerStatus(tenancy=record, boot_window=window if booting else None), now)


CLEAN = Tenancy(data="Clean", since=OLD)
BEGUN = Tenancy(data="Clean", since=OLD, claim_ref=U1, policy="Purge")
COPY = _value("", BEGUN, booting=True)


def test_the_copy_has_claim_policy_and_time() -> None:
    """It is written when the boot was recorded, while the record is still Clean: the boot may serve any moment."""
    found = msgspec.json.decode(COPY)
    assert found == {
        "data": "Dirty", "claimRef": {"namespace": "default", "name": "c1", "uid": "u1"}, "policy": "Purge",
        "since": "2026-02-01T00:00:00Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "record", "expected"),
    [
        ("", CLEAN, ""),
        ("", BEGUN, ""),
        (COPY, BEGUN, COPY),
        (COPY, Tenancy(data="Erasing", since=NOW, claim_ref=U1), COPY),
        (COPY, Tenancy(data="Clean", since=NOW, claim_ref=U1, sanitization="Purge"), ""),
        (COPY, Tenancy(data="Clean", since=OLD, claim_ref=U1, sanitization="NotOwed"), ""),
        (COPY, Tenancy(data="Clean", since=NOW + timedelta(days=1)), ""),
        (COPY, Tenancy(data="Dirty", since=OLD, claim_ref=U2), COPY),
    ],
)
def test_it_stays_until_the_tenancy_has_ended(old: str, record: Tenancy, expected: str) -> None:
    """A record of its claim, or with the data of another one from before, does not remove it."""
    assert _value(old, record, now=NOW + timedelta(days=2)) == expected


@pytest.mark.parametrize("record", [CLEAN, msgspec.structs.replace(CLEAN, claim_ref=U2), Tenancy(data="Accepted")])
def test_a_record_without_data_that_is_older_is_outdated(record: Tenancy) -> None:
    """Also when another claim was bound meanwhile."""
    with pytest.raises(RecordOutdated) as outdated:
        _value(COPY, record)
    assert (outdated.value.kept.uid, outdated.value.kept.since) == ("u1", NOW)


def test_a_copy_that_cannot_be_read_counts_as_unknown_data() -> None:
    """The server is not given away."""
    with pytest.raises(RecordOutdated) as outdated:
        _value("{", CLEAN)
    assert outdated.value.kept.data == "Unknown"


@pytest.mark.parametrize("late", [timedelta(microseconds=300), timedelta(minutes=5)])
def test_an_end_in_the_same_pass_as_the_copy_is_not_older(late: timedelta) -> None:
    """The copy is written some time after the record was read; data that is accepted then does not become outdated."""
    copy = _value("", Tenancy(data="Unknown", since=OLD), now=NOW + late)
    assert _value(copy, Tenancy(data="Accepted", since=NOW, sanitization="None"), now=NOW + late) == ""
