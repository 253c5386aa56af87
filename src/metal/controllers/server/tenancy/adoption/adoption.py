"""Adopts a Server whose past this operator may not know: new, restored, recreated, taken over, or without its status.

`adoption_table` decides; this module collects the facts and executes the row, in steps of a pass:

- `read_status` is first: after it, the status has a record of tenancy, if one was ever made. It is rebuilt
  (`lost_status`), or converted from the fields of an earlier version. What is converted is written and read back before
  the old fields are removed, because the CRDs of the earlier version drop the record.
- `enter` comes once it is decided which Server acts on the machine: a Server without a state gets its first one, and
  the Server of another operator is marked (`takeover`). `before_discovery` repeats it with what the BMC has shown.
"""

from dataclasses import replace

from metal.api.claim import ServerClaim
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import State
from metal.controllers.server import system_check
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.adoption import lost_status, recreated, takeover
from metal.controllers.server.tenancy.adoption.adoption_table import (
    Action,
    Annotation,
    Claim,
    Erasure,
    Facts,
    Owner,
    Record,
    Row,
    Status,
    decide,
)
from metal.controllers.server.tenancy.crds import await_crds
from metal.controllers.server.tenancy.tenancy import assume_booted, find_claim
from metal.kube.controller.controller import Requeue
from metal.machine import kept_tenancy, tenancy
from metal.machine.identity import is_shared

_STATUS = (Action.REBUILD, Action.CONVERT)


async def read_status(scope: Scope) -> Requeue | None:
    """Rebuild or convert the record of tenancy; None once the status has it, or none is due. Raises ApiError."""
    row, known = decide(_facts(scope)), scope.tenancy
    if row.action in _STATUS:
        if row.action is Action.REBUILD:
            await lost_status.rebuild(scope, row.state)
        else:
            scope.set(tenancy=known)
        await scope.commit()
        if not scope.status.tenancy.data:
            return await_crds(scope)
    if row.action is Action.CONVERT:
        scope.status = tenancy.without_old_fields(scope.status, known)
    elif scope.tenancy is not scope.status.tenancy:
        scope.set(tenancy=scope.tenancy)
    await lost_status.keep(scope)
    return None


async def enter(scope: Scope) -> Requeue | None:
    """Give a Server its first state, or adopt another operator's; None for a known one. Raises ApiError."""
    unclaimed = not scope.status.state and scope.server.spec.server_claim_ref is None
    records, owners = await _past(scope) if unclaimed else ([], [])
    row = decide(await _with_claim(scope, _facts(scope, records, owners)))
    return await _execute(scope, row, records, owners)


async def before_discovery(scope: Scope) -> Requeue | None:
    """Repeats the decision of `enter` where it was made without the serial number, or before a restored backup.

    A UUID that many machines have identifies none without a serial number. A Server that was restored as it was before
    its claim has a state, and does not name the claim that has booted.
    """
    unclaimed = scope.server.spec.server_claim_ref is None and not system_check.problem(scope.server)
    if not is_shared(scope.server.uuid) and not (unclaimed and recreated.is_named(scope)):
        return None
    records, owners = await _past(scope)
    row = decide(replace(_facts(scope, records, owners), status=Status.EMPTY, claim=Claim.NONE))
    return None if row.action is Action.BEGIN else await _execute(scope, row, records, owners)


async def _execute(
    scope: Scope, row: Row, records: list[SanitizationEvidence], owners: list[ServerClaim]
) -> Requeue | None:
    match row.action:
        case Action.AWAIT_DECISION:
            return recreated.await_decision(scope, owners, records)
        case Action.ERASE_FIRST:
            return recreated.clean_up_first(scope, records)
        case Action.TAKE_OVER | Action.TAKE_OVER_BOOTED:
            return await takeover.mark(scope, booted=row.action is Action.TAKE_OVER_BOOTED)
        case Action.GIVE_BACK:
            meta = owners[0].metadata
            await scope.patch({"spec": {"serverClaimRef": {"namespace": meta.namespace, "name": meta.name}}})
    return _begin(scope, row)


def _begin(scope: Scope, row: Row) -> Requeue | None:
    """The first state of a Server without one."""
    if row.action is Action.BEGIN:
        scope.set(tenancy=tenancy.clean(scope.tenancy, scope.now))
        return scope.transition(State.INITIAL, "a new server")
    if row.action in (Action.GIVE_BACK, Action.KEEP_FOR_CLAIM):
        assume_booted(scope)
        lost = "its Server was deleted" if row.action is Action.GIVE_BACK else "its status was lost"
        return scope.transition(State.RESERVED, f"claimed before {lost}")
    return None


def _facts(
    scope: Scope, records: list[SanitizationEvidence] | None = None, owners: list[ServerClaim] | None = None
) -> Facts:
    records, owners, status = records or [], owners or [], scope.status
    clear = len(owners) == 1 and recreated.is_owner(scope, owners[0], records)
    owner = Owner.ONE if clear else Owner.UNCLEAR if owners else Owner.NONE
    erasure = Erasure.OUTSTANDING if any(one.spec.policy for one in records) else Erasure.NONE
    own = Status.OWN if status.since is not None else Status.FOREIGN
    return Facts(
        record=Record.OLD if tenancy.has_old_fields(status) else Record.PRESENT if status.tenancy.data else Record.NONE,
        annotation=_annotation(scope), status=own if status.state else Status.EMPTY,
        claim=Claim.NONE if scope.server.spec.server_claim_ref is None else Claim.NOT_BOOTED,
        owner=owner, erasure=erasure,
    )  # fmt: skip


def _annotation(scope: Scope) -> Annotation:
    value = lost_status.annotation(scope)
    if value is None or value == kept_tenancy.NEW:
        return Annotation.NONE if value is None else Annotation.NEW
    dangerous = kept_tenancy.is_dangerous(kept_tenancy.rebuilt(value, scope.now))
    return Annotation.DANGEROUS if dangerous else Annotation.HARMLESS


async def _past(scope: Scope) -> tuple[list[SanitizationEvidence], list[ServerClaim]]:
    """Open records and possible owners of the machine."""
    if system_check.problem(scope.server):
        return [], []
    records = await recreated.open_records(scope)
    return records, await recreated.possible_owners(scope, records)


async def _with_claim(scope: Scope, facts: Facts) -> Facts:
    """For another operator's Server, whether its claim may have booted."""
    if facts.status is not Status.FOREIGN:
        return facts
    claim = await find_claim(scope)
    booted = claim is not None and takeover.may_have_booted(scope, claim)
    return replace(facts, claim=Claim.MAY_HAVE_BOOTED) if booted else facts
