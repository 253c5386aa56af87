"""Servers that describe a machine which another Server describes, too: only one of them acts (`metal.machine.charge`).

`hold` comes before every other step of a pass. Rivals are found in the cache by the keys of the machine's identity, and
read again from the API when there are any. The Server that is not in charge closes its boot window, leaves Available
and Discovery for Initial, waits for `DuplicateSystem`, and sends nothing to the BMC, not even reads; a change of the
other Server wakes it. Both have the condition DuplicateSystem with the other's name.

The cache may be behind, so `Scope.require_in_charge` reads the Lease of the machine before anything that could harm a
tenant, before Initial goes on and before a Server becomes Available; what it raises ends in `not_in_charge`.

A Server that was never discovered also waits (`MachineIdentity`) while its machine may be that of a Server with a
tenancy whose BMC does not show it at this time: after a replaced mainboard, UUID and BMC are new, but the serial number
or the drives are not, and the discovery boot would interrupt the tenant. Conditions may be outdated, so the BMC of the
other Server is read first. A machine that nothing identifies waits, too.
"""

import asyncio
from dataclasses import replace

from metal.api.names import MACHINE_ID
from metal.api.server import Server, State
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.shared.indexes import BY_IDENTITY
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import key_of
from metal.machine import tenancy
from metal.machine.charge import has_tenancy, in_charge, tenancy_of
from metal.machine.identity import Comparison, Identity, Relation, compare, identity_of, is_shared
from metal.machine.system_lease import NotInCharge

OTHER_IN_CHARGE, IN_CHARGE, NONE_IN_CHARGE = "OtherServerInCharge", "InCharge", "NoServerInCharge"
"""Reasons of the condition DuplicateSystem."""
_UNDISCOVERED = ("", State.INITIAL)
_READING_POLL = 5.0
"""Seconds until a Server looks again whether another one was read from its BMC."""
Rival = tuple[Server, Comparison]


async def hold(scope: Scope) -> Requeue | None:
    """None for the Server that acts on its machine; else the wait. Raises ApiError."""
    mine = _identity(scope)
    rivals = await _fresh(scope, mine, [one for one in _rivals(scope, mine) if one[1].exclusive])
    if rivals:
        chosen = in_charge((scope.server, *(other for other, _ in rivals)))
        if chosen is not scope.server:
            return _inert(scope, chosen, rivals)
        _report_charge(scope, rivals)
    else:
        _report_end(scope)
    if not mine.key and is_shared(scope.server.uuid) and scope.status.state not in _UNDISCOVERED:
        return _await_identifier(scope)
    return _hold_new(scope, mine)


def before_discovery(scope: Scope) -> Requeue | None:
    """None when the inventory that was just read leaves no doubt about the machine; else the wait."""
    mine = _identity(scope)
    return _hold_new(scope, mine) if mine.key else _await_identifier(scope)


def not_in_charge(scope: Scope, exc: NotInCharge) -> Requeue:
    """The Lease of the machine names another Server than this one."""
    comparison = Comparison(Relation.SAME, exc.reason, exclusive=True)
    return _inert(scope, in_charge((scope.server, exc.other)), [(exc.other, comparison)])


def unidentified(scope: Scope) -> Requeue:
    """Nothing identifies the machine of this Server."""
    return _await_identifier(scope)


def _identity(scope: Scope) -> Identity:
    return identity_of(scope.server, scope.context.kinds, scope.status, scope.settings.non_unique_drives)


def _rivals(scope: Scope, mine: Identity) -> list[Rival]:
    """The Servers whose machine is, or may be, this one's, as the cache has them."""
    found: dict[str, Rival] = {}
    for key in mine.keys:
        for other in scope.deps.servers.by_index(BY_IDENTITY, key):
            if other.metadata.name == scope.name or other.metadata.name in found:
                continue
            comparison = compare(mine, identity_of(other, scope.context.kinds))
            if comparison.relation is not Relation.DIFFERENT:
                found[other.metadata.name] = (other, comparison)
    return [found[name] for name in sorted(found)]


async def _fresh(scope: Scope, mine: Identity, rivals: list[Rival]) -> list[Rival]:
    """The same rivals as the API has them now."""
    found: list[Rival] = []
    for cached, _ in rivals:
        try:
            other = await scope.context.client.get(scope.context.kinds.server, cached.metadata.name)
        except NotFound:
            continue
        comparison = compare(mine, identity_of(other, scope.context.kinds))
        if comparison.exclusive:
            found.append((other, comparison))
    return found


def _inert(scope: Scope, chosen: Server | None, rivals: list[Rival]) -> Requeue:
    scope.close_window()
    if scope.status.state in (State.AVAILABLE, State.DISCOVERY):
        scope.transition(State.INITIAL, "another Server is in charge of this machine")
    scope.set(power_request=None)
    if chosen is None or chosen is scope.server:
        text, reason = _undecided_text(scope, rivals), NONE_IN_CHARGE
    else:
        text, reason = _inert_text(scope, chosen, rivals), OTHER_IN_CHARGE
    _report(scope, reason, text)
    return scope.wait(WaitFor.DUPLICATE_SYSTEM, text)


def _report_charge(scope: Scope, rivals: list[Rival]) -> None:
    names = ", ".join(other.metadata.name for other, _ in rivals)
    text = (
        f"Server {names} describes the same machine: {rivals[0][1].reason}. This Server acts on it "
        f"{_why(scope.server)}, and the other sends nothing to the BMC. {_merge(rivals[0][0])}"
    )
    _report(scope, IN_CHARGE, text)


def _report(scope: Scope, reason: str, text: str) -> None:
    known = scope.find_condition(ConditionType.DUPLICATE_SYSTEM)
    scope.condition(ConditionType.DUPLICATE_SYSTEM, True, reason, text)
    if known is None or (known.status, known.reason) != ("True", reason):
        scope.record_event(ConditionType.DUPLICATE_SYSTEM, text, warning=True)


def _report_end(scope: Scope) -> None:
    known = scope.find_condition(ConditionType.DUPLICATE_SYSTEM)
    if known is not None and known.status == "True":
        scope.condition(ConditionType.DUPLICATE_SYSTEM, False, "NoDuplicate", "no other Server describes this machine")
        scope.record_event("NoDuplicate", "no other Server describes this machine any more")
        _end_wait(scope, WaitFor.DUPLICATE_SYSTEM)


def _end_wait(scope: Scope, name: WaitFor) -> None:
    if scope.status.wait is not None and scope.status.wait.for_ == name:
        scope.clear_wait()


def _inert_text(scope: Scope, chosen: Server, rivals: list[Rival]) -> str:
    reason = next((c.reason for other, c in rivals if other.metadata.name == chosen.metadata.name), rivals[0][1].reason)
    return (
        f"the removal of a duplicate: Server {chosen.metadata.name} describes the same machine, {reason}, and acts on "
        f"it {_why(chosen)}. This Server sends nothing to the BMC and gets no claim. {_merge(scope.server, chosen)}"
    )


def _undecided_text(scope: Scope, rivals: list[Rival]) -> str:
    other, comparison = rivals[0]
    return (
        f"a manual decision: Server {other.metadata.name} describes the same machine, {comparison.reason}, and data of "
        f"tenants of both may be on it ({_tenant(scope.server)}; {_tenant(other)}). Neither Server acts on it. Find "
        "out whose system is on the machine, then delete the other Server; nothing is erased as long as both exist"
    )


def _tenant(server: Server) -> str:
    ref = server.spec.server_claim_ref
    claim = (
        f"claim {ref.namespace}/{ref.name}" if ref is not None else f"claim UID {tenancy.of(server).uid or 'unknown'}"
    )
    return f"{server.metadata.name}: {claim}"


def _why(server: Server) -> str:
    return "because a claim has it" if has_tenancy(server) else (
        "because its network boot is in progress" if tenancy_of(server) else "because it is older"
    )  # fmt: skip


def _merge(duplicate: Server, chosen: Server | None = None) -> str:
    """How the two become one; no claim is lost by following it."""
    name, ref = duplicate.metadata.name, duplicate.spec.server_claim_ref
    if ref is not None:
        return f"To merge them, release claim {ref.namespace}/{ref.name}, which never booted there; then delete {name}"
    moves, bmc = "", duplicate.spec.bmc_ref
    old = chosen.spec.bmc_ref if chosen is not None else None
    if chosen is not None and bmc is not None and old is not None and bmc.name != old.name:
        moves = (
            f"If BMC {old.name} was replaced by BMC {bmc.name}, set spec.bmcRef.name of Server {chosen.metadata.name} "
            f"to {bmc.name} first, which keeps its claim. "
        )
    return f"{moves}To merge them, delete Server {name}: nothing of a tenant is lost with it"


def _hold_new(scope: Scope, mine: Identity) -> Requeue | None:
    """A new Server waits while its machine may be one that a tenant uses, after a replaced mainboard."""
    is_new = scope.status.state in _UNDISCOVERED and scope.status.inventory is None
    if is_new and not has_tenancy(scope.server) and not mine.declared:
        for other, comparison in _rivals(scope, replace(mine, shown=False)):
            if not has_tenancy(other):
                continue
            if not identity_of(other, scope.context.kinds).shown:
                return _await_decision(scope, other, comparison)
            if not _is_read_since(scope, other):
                return _await_reading(scope, other, comparison)
    known = scope.find_condition(ConditionType.IDENTITY_AMBIGUOUS)
    if known is not None and known.status == "True" and mine.key:
        scope.condition(ConditionType.IDENTITY_AMBIGUOUS, False, "Identified", "the machine is identified")
        _end_wait(scope, WaitFor.MACHINE_IDENTITY)
    return None


def _is_read_since(scope: Scope, other: Server) -> bool:
    """Whether this process has read the other machine from its BMC since this Server was first compared with it.

    The conditions of the other Server are older: its mainboard may have become this Server's since then.
    """
    memo, now = scope.deps.memos.get(key_of(other)), asyncio.get_running_loop().time()
    first = scope.memo.compared.get(other.metadata.uid)
    if first is None:
        scope.memo.compared[other.metadata.uid] = first = now
        if memo is not None:
            memo.system = None  # its next pass reads it
    return memo is not None and memo.verified is not None and memo.observed_at >= first


def _await_reading(scope: Scope, other: Server, comparison: Comparison) -> Requeue:
    name, wait = other.metadata.name, other.status.wait
    text = (
        f"Server {name}, which has a tenant, to be read from its BMC: {comparison.reason}, so this may be its machine. "
        f"If the BMC of Server {name} cannot be reached, repair it or correct its address"
    )
    if wait is not None and wait.for_ == WaitFor.FORMER_TENANT:  # its passes end before its BMC is read
        text = (
            f"the decision for which Server {name} waits ({wait.for_}): {comparison.reason}, so this may be its "
            f"machine, and Server {name} is read from its BMC only after that: metalctl why server/{name}"
        )
    return scope.wait(WaitFor.MACHINE_IDENTITY, text, poll=_READING_POLL)


def _await_decision(scope: Scope, other: Server, comparison: Comparison) -> Requeue:
    name, mine = other.metadata.name, scope.server.spec
    bmc = f"spec.bmcRef.name to {mine.bmc_ref.name} and " if mine.bmc_ref is not None else ""
    text = (
        f"a manual decision: this may be the machine of Server {name}, which has a tenant and is not shown by its BMC: "
        f"{comparison.reason}. Nothing is switched or booted. If its mainboard was replaced, set {bmc}spec.systemUUID "
        f"of Server {name} to {scope.server.uuid}, which keeps its claim, and delete Server {scope.name}. If this is "
        f"another machine, annotate Server {scope.name} with {scope.context.kinds.key(MACHINE_ID)}=NAME, any name of "
        "the machine"
    )
    return _ambiguous(scope, "PossiblyReplacedMainboard", text)


def _await_identifier(scope: Scope) -> Requeue:
    text = (
        f"an identity of the machine: its UUID {scope.server.uuid} is that of many machines, and it has no serial "
        "number of its own. Set a UUID or a serial number in its firmware and correct spec.systemUUID, or annotate "
        f"Server {scope.name} with {scope.context.kinds.key(MACHINE_ID)}=NAME, a name that no other machine has"
    )
    return _ambiguous(scope, "NotIdentified", text)


def _ambiguous(scope: Scope, reason: str, text: str) -> Requeue:
    scope.close_window()
    if scope.status.state in (State.AVAILABLE, State.DISCOVERY):
        scope.transition(State.INITIAL, "the machine is not identified")
    known = scope.find_condition(ConditionType.IDENTITY_AMBIGUOUS)
    scope.condition(ConditionType.IDENTITY_AMBIGUOUS, True, reason, text)
    if known is None or (known.status, known.reason) != ("True", reason):
        scope.record_event(ConditionType.IDENTITY_AMBIGUOUS, text, warning=True)
    return scope.wait(WaitFor.MACHINE_IDENTITY, text)
