"""The record of tenancy: its conversion from earlier versions, and its transitions."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from metal.api.boot_window import BootWindow
from metal.api.claim import ServerClaim
from metal.api.common import ObjectRef
from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.api.tenancy import ClaimBoot, Data, Tenancy, TenantRef
from metal.machine import tenancy
from tests.machine.earlier import EARLIER

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TENANT = TenantRef(namespace="default", name="c1", uid="u1")
UID = "uid of the claim"

CONVERTED: dict[str, tuple[str, str, str, str, bool]] = {
    "available": ("Clean", "", "", "", False),
    "reserved, not booted": ("Clean", UID, "Purge", "", False),
    "reserved, script served": ("Dirty", UID, "Purge", "", False),
    "reserved, second attempt": ("Dirty", UID, "Purge", "", False),
    "reserved, booted": ("Dirty", UID, "Purge", "", True),
    "cleanup, switching off": ("Dirty", UID, "Purge", "", True),
    "cleanup, erasing": ("Erasing", UID, "Purge", "", True),
    "error, owed": ("Dirty", UID, "Purge", "", True),
    "accepted": ("Accepted", "", "", "Accepted", False),
    "released": ("Clean", UID, "", "Clear", False),
    "available, erased": ("Clean", "", "", "Clear", False),
}
"""By stage: data, claim, policy, result and whether a boot is recorded."""


@pytest.mark.parametrize("stage", EARLIER)
def test_the_status_of_an_earlier_version_has_the_same_record(stage: str) -> None:
    """Every stage of a life that version 0.1 wrote converts to what its fields said together."""
    server = EARLIER[stage].server
    found = tenancy.of(server)
    data, claim, policy, result, booted = CONVERTED[stage]
    assert (found.data, found.policy, found.sanitization, found.boot is not None) == (data, policy, result, booted)
    assert found.uid == (server.status.old_tenant if claim else "")
    assert not claim or (found.claim_ref is not None and found.claim_ref.name == "c1")


@pytest.mark.parametrize("stage", EARLIER)
def test_a_converted_status_has_no_field_of_an_earlier_version(stage: str) -> None:
    """What was converted once is not converted again."""
    server = EARLIER[stage].server
    found = tenancy.of(server)
    status = tenancy.without_old_fields(server.status, found)
    assert not tenancy.is_outdated(status)
    assert tenancy.read(server.spec, status) == found


def test_what_an_earlier_version_wrote_after_a_record_wins() -> None:
    """A site that went back to the earlier version and forward again keeps what happened in between."""
    old = ServerStatus(state="Reserved", since=NOW, tenancy=Tenancy(data="Clean"), old_tenant="u2",
                       old_claim_boot=ClaimBoot(claim_uid="u2", booted_at=NOW))  # fmt: skip
    found = tenancy.read(ServerSpec(), old)
    assert (found.data, found.uid) == ("Dirty", "u2")


def test_a_script_that_an_earlier_boot_server_served_makes_the_data_dirty() -> None:
    """During a rolling upgrade a replica of the earlier version serves without writing the record."""
    window = BootWindow(id="w", purpose="Claim", script_served_at=NOW, opened_at=NOW, expires_at=NOW,
                        config_ref=ObjectRef(namespace="default", name="c1"))  # fmt: skip
    status = ServerStatus(
        state="Reserved", since=NOW, tenancy=Tenancy(data="Clean", claim_ref=TENANT), boot_window=window
    )
    assert tenancy.of(Server(status=status)).data == "Dirty"


@pytest.mark.parametrize("data", ["Unknown", "Dirty", "Erasing"])
def test_a_server_that_may_hold_data_is_never_released(data: str) -> None:
    """Whatever a caller forgot, the record refuses."""
    with pytest.raises(RuntimeError, match="cannot be released"):
        tenancy.released(Tenancy(data=data))


STEPS: list[tuple[Any, str, str]] = [
    (lambda t: tenancy.served(t, NOW), "Clean", "Dirty"),
    (lambda t: tenancy.served(t, NOW), "Accepted", "Dirty"),
    (lambda t: tenancy.erasing(t, NOW), "Dirty", "Erasing"),
    (lambda t: tenancy.erasing(t, NOW), "Unknown", "Erasing"),
    (lambda t: tenancy.erased(t, "Purge", NOW), "Erasing", "Clean"),
    (lambda t: tenancy.not_erased(t, NOW), "Erasing", "Dirty"),
    (lambda t: tenancy.accepted(t, "Accepted", NOW), "Dirty", "Accepted"),
    (lambda t: tenancy.accepted(t, "None", NOW), "Clean", "Clean"),
    (lambda t: tenancy.unknown(t, NOW), "Clean", "Unknown"),
    (lambda t: tenancy.unknown(t, NOW), "Dirty", "Dirty"),
    (lambda t: tenancy.clean(t, NOW), "", "Clean"),
    (lambda t: tenancy.clean(t, NOW), "Unknown", "Unknown"),
    (lambda t: tenancy.owed(t, "u1", "Clear", NOW), "Clean", "Dirty"),
]


@pytest.mark.parametrize(("step", "before", "after"), STEPS)
def test_each_transition_leads_where_the_table_says(step: Any, before: str, after: str) -> None:
    """A transition that changes nothing keeps the time of the last change."""
    found = step(Tenancy(data=before))
    assert (found.data, found.since) == (after, NOW if before != after else None)


FORBIDDEN: list[tuple[Any, str]] = [
    (lambda t: tenancy.erased(t, "Purge", NOW), "Dirty"),
    (lambda t: tenancy.erased(t, "Purge", NOW), "Unknown"),
    (lambda t: tenancy.erasing(t, NOW), "Clean"),
]


@pytest.mark.parametrize(("step", "before"), FORBIDDEN)
def test_a_transition_that_the_table_lacks_is_refused(step: Any, before: str) -> None:
    """Data becomes Clean only from Erasing, and only what may hold data is erased."""
    with pytest.raises(RuntimeError, match="cannot go"):
        step(Tenancy(data=before))


def test_a_new_tenancy_forgets_policy_result_and_boot_of_the_former() -> None:
    """Only a boot that is assumed, and thus of no claim, counts for the new tenant."""
    claim = ServerClaim(metadata=ObjectMeta(namespace="default", name="c2", uid="u2"))
    former = Tenancy(data="Clean", policy="Purge", sanitization="Clear", boot=ClaimBoot(claim_uid="u1", booted_at=NOW))
    found = tenancy.begin(former, claim)
    assert (found.uid, found.policy, found.sanitization, found.boot) == ("u2", "", "", None)
    assumed = tenancy.begin(msgspec.structs.replace(former, boot=ClaimBoot(booted_at=NOW)), claim)
    assert assumed.boot is not None
    assert assumed.boot.claim_uid == "u2"


def test_every_value_of_data_can_be_reached_and_left() -> None:
    """The table has no dead end."""
    assert {move.target for move in tenancy.MOVES} == set(Data)
    assert {source for move in tenancy.MOVES for source in move.source} == set(Data)
