"""The decision table of adoption: total, each row reached by a Server as it really appears."""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.server import Server
from metal.api.tenancy import Tenancy, TenantRef
from metal.controllers.server.tenancy.adoption import adoption
from metal.controllers.server.tenancy.adoption.adoption_table import (
    ROWS,
    Annotation,
    Claim,
    Erasure,
    Facts,
    Owner,
    Record,
    Row,
    Status,
    decide,
    matches,
)
from metal.evidence import outstanding
from metal.machine import kept_tenancy
from metal.machine.uuids import spellings
from tests.controllers.fakebmc import UUID
from tests.controllers.world import KINDS, World, world

KINDS_OF_FACTS = (Record, Annotation, Status, Claim, Owner, Erasure)
EVERY = [Facts(*values) for values in product(*KINDS_OF_FACTS)]
REF = {"namespace": "default", "name": "c1"}
SINCE = "2025-12-01T00:00:00Z"
KEY = KINDS.key("tenancy")


@given(st.builds(Facts, *(st.sampled_from(kind) for kind in KINDS_OF_FACTS)))
def test_any_combination_has_exactly_one_first_row(facts: Facts) -> None:
    """No row before the decided one matches, and the decided one does."""
    row = decide(facts)
    assert matches(row, facts)
    assert not any(matches(before, facts) for before in ROWS[: ROWS.index(row)])


def test_the_table_is_total_without_an_unreachable_row() -> None:
    """Every combination is decided, and every row is the first one of some combination."""
    assert {decide(facts).server for facts in EVERY} == {row.server for row in ROWS}


def test_the_last_row_is_only_for_servers_with_a_record_and_an_own_state() -> None:
    """A Server is never taken for a known one because no other row matched."""
    assert {(f.record, f.status) for f in EVERY if decide(f) is ROWS[-1]} == {(Record.PRESENT, Status.OWN)}


def test_where_a_claim_may_own_the_data_no_row_erases() -> None:
    """Cleanup as first state needs an outstanding erasure and no claim."""
    cleaned = [facts for facts in EVERY if decide(facts).state == "Cleanup"]
    assert {(f.owner, f.claim, f.erasure) for f in cleaned} == {(Owner.NONE, Claim.NONE, Erasure.OUTSTANDING)}


Prepare = Callable[[World], Awaitable[None]]


def server(
    *, claimed: bool = False, annotation: str = "", leave: str = "", bound: bool = False,
    **status: Any,
) -> Prepare:  # fmt: skip
    """A Server as it may be found; `leave`: UID of the claim whose data a deleted Server of the machine left."""

    async def prepare(w: World) -> None:
        names: dict[str, Any] = {"serverRef": {"name": "s1"}} if bound else {}
        refers: dict[str, Any] = {"serverClaimRef": REF} if claimed else {}
        if claimed or bound:
            claim = await w.add_claim(power="Off", **names)
            if bound:
                await w.client.patch_status(KINDS.claim, "c1", {"status": {"phase": "Bound"}}, "default")
        one: Server = await w.add_server(**refers)
        if leave:
            former = msgspec.structs.replace(
                one, metadata=msgspec.structs.replace(one.metadata, name="s0", uid="former"),
                status=msgspec.structs.replace(
                    one.status, tenancy=Tenancy(data="Dirty", claim_ref=TenantRef(uid=leave))
                ),
            )  # fmt: skip
            await outstanding.create(w.client, KINDS, former, min(spellings(UUID)), "Clear")
        if annotation:
            tenant = TenantRef(namespace="default", name="c1", uid=claim.metadata.uid) if claimed else None
            record = Tenancy(data=annotation, claim_ref=tenant)
            value = kept_tenancy.NEW if annotation == "new" else kept_tenancy.of(record)
            await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {KEY: value}}})
        if status:
            await w.client.patch_status(KINDS.server, "s1", {"status": status})

    return prepare


SCENARIOS: dict[str, tuple[Prepare, str]] = {
    "of an earlier version": (server(state="Available", since=SINCE, sanitization="Clear"), "Clean"),
    "restored without status": (server(claimed=True, annotation="Dirty"), "Dirty"),
    "status lost": (server(annotation="Accepted", state="Available"), "Accepted"),
    "new, status lost": (server(annotation="new", state="Discovery"), "Clean"),
    "of an earlier version, unused": (server(state="Available", since=SINCE), "Clean"),
    "restored, claimed": (server(claimed=True), "Unknown"),
    "recreated, owner ambiguous": (server(leave="former-claim", bound=True), ""),
    "recreated, claim exists": (server(bound=True), "Unknown"),
    "recreated, claim gone": (server(leave="former-claim"), "Dirty"),
    "new": (server(), "Clean"),
    "taken over, claimed": (server(claimed=True, bound=True, state="Reserved", powerState="On"), "Unknown"),
    "taken over": (server(state="Available", powerState="Off"), "Unknown"),
    "known, or moved with its status": (
        server(state="Available", since=SINCE, tenancy={"data": "Clean"}, powerState="Off"), "Clean",
    ),
}  # fmt: skip


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "What a Server is whose past is unknown is decided by one table: new, restored, recreated, taken over.",
)
@pytest.mark.looptime
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.server)
async def test_each_row_is_reached(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is decided in the first pass, whose first write has the data and the state of the row."""
    prepare, data = SCENARIOS[row.server]
    decided: list[Row] = []
    written: list[tuple[str, str]] = []

    def spy(facts: Facts) -> Row:
        decided.append(decide(facts))
        return decided[-1]

    async def follow(what: str, when: str) -> None:
        if when == "after" and what.startswith("status Server"):
            status = (await w.server()).status
            written.append((status.state, status.tenancy.data))

    async with world(sanitization_policy="Clear") as w:
        await w.runtime.stop(grace=0.0)
        await prepare(w)
        before = (await w.server()).status.state
        monkeypatch.setattr(adoption, "decide", spy)
        w.tap.trap = follow
        await w.restart()
        await w.settle()
    assert row.server in [one.server for one in decided[:2]]
    assert (row.data or data) == data
    assert written[0] == (row.state or before, data)
