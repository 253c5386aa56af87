"""Adopts servers whose status another operator wrote: the machine is not changed until its power matches its state.

In: a Server with `status.state` and without `status.since`. The Go operator does not write `since`; this one always
does.

`mark` marks such a server once: it sets `since`, the condition `TakenOver` to False, and for a bound claim whose
machine may have booted it records the boot as done, so that no network boot overwrites its disk. With CRDs of another
operator the API drops these fields; then the server waits for `CustomResourceDefinitions` and nothing else is done.

`hold` compares the machine's power with the power that the next step of its state would set. When they agree, the
server is adopted (`TakenOver` is True) and its state continues. When they differ, what the other operator was doing is
unknown: the server waits for `TakeoverGoAhead` and is not changed until operation=retry. Maintenance, Parked and an
Error of this operator need no such comparison, because they do not switch the machine.
"""

import msgspec

from metal.api.claim import ServerClaim
from metal.api.names import OPERATION
from metal.api.server import State
from metal.api.tenancy import ClaimBoot
from metal.bmc.power import PowerState
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.crds import await_crds
from metal.controllers.server.tenancy.tenancy import find_claim
from metal.controllers.server.traits import PowerOwner, traits_of
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy


async def mark(scope: Scope, *, booted: bool) -> Requeue | None:
    """Mark a server that another operator managed, once; `booted` when its claim may have booted. Raises ApiError."""
    scope.set(since=scope.now, tenancy=tenancy.unknown(scope.status.tenancy, scope.now))
    claim = await find_claim(scope) if booted else None
    if claim is not None:
        assumed = msgspec.structs.replace(scope.status.tenancy, boot=ClaimBoot(booted_at=scope.now))
        scope.set(tenancy=tenancy.begin(assumed, claim))
        scope.condition(
            ConditionType.BOOT_ASSUMED, True, "TakenOver",
            "another operator bound this claim; it counts as booted, so that no network boot overwrites its disk",
        )  # fmt: skip
    scope.condition(
        ConditionType.TAKEN_OVER, False, "Undecided", f"another operator left this server in {scope.status.state}"
    )
    await scope.commit()
    return await_crds(scope) if scope.status.since is None else None


def may_have_booted(scope: Scope, claim: ServerClaim) -> bool:
    """In phase Bound there was a boot configuration; before that, only a running machine may have booted."""
    return claim.status.phase == "Bound" or scope.status.power_state not in ("", PowerState.OFF)


async def hold(scope: Scope) -> Requeue | None:
    """None for a server that may continue; else the wait, which names the way to continue. Raises BMCError."""
    if not is_undecided(scope) or _is_exempt(scope):
        return None
    system = await scope.observe()
    claim = await find_claim(scope)
    if _is_claimed(scope) and claim is None:
        _settle(scope, "ClaimGone", "its claim no longer exists")
        return None
    wanted = _wanted(scope, claim)
    if system.power_state is wanted:
        _settle(scope, "AsDeclared", f"power is {wanted.value}, as its state requires")
        failed = scope.status.state == State.ERROR
        return scope.transition(State.RESERVED, "adopted from Error, for its claim") if failed else None
    return _hold(scope, system.power_state, wanted)


def _is_exempt(scope: Scope) -> bool:
    """True in states that do not switch an undecided machine: Maintenance, Parked, and an Error of this operator."""
    if scope.status.state == State.PARKED:
        return True
    if scope.status.state == State.ERROR:
        return scope.status.failure is not None
    return scope.status.state == State.MAINTENANCE and scope.server.spec.server_maintenance_ref is not None


def _is_claimed(scope: Scope) -> bool:
    return scope.status.state == State.RESERVED and scope.server.spec.server_claim_ref is not None


def _wanted(scope: Scope, claim: ServerClaim | None) -> PowerState | None:
    """The power that the next step would not change; None when there is no such power."""
    traits = traits_of(scope.status.state)
    if not traits.discovered:
        return None
    if claim is None:
        return PowerState.OFF if traits.power in (PowerOwner.STATE, PowerOwner.CLAIM) else None
    if scope.tenancy.boot is None or claim.spec.power == PowerState.OFF:
        return PowerState.OFF
    return PowerState.ON


def _settle(scope: Scope, reason: str, why: str) -> None:
    scope.clear_wait()
    scope.condition(ConditionType.TAKEN_OVER, True, reason, f"adopted from another operator: {why}")


def _hold(scope: Scope, power: PowerState, wanted: PowerState | None) -> Requeue:
    found = f"{power.value} although {wanted.value} is required" if wanted else f"{power.value}"
    retry = f"kubectl annotate servers {scope.name} {scope.context.kinds.key(OPERATION)}=retry"
    text = (
        f"confirmation by an administrator: another operator left this server in {scope.status.state}, and its machine "
        f"is {found}. It is not changed; to continue: {retry}"
    )
    scope.condition(ConditionType.TAKEN_OVER, False, "Undecided", text)
    return scope.wait(WaitFor.TAKEOVER_GO_AHEAD, text)


def is_undecided(scope: Scope) -> bool:
    """True for another operator's server whose power does not match its state, until operation=retry."""
    known = scope.find_condition(ConditionType.TAKEN_OVER)
    return known is not None and known.status == "False"


def approve(scope: Scope) -> bool:
    """Adopt an undecided server unchanged; False if it was not undecided."""
    undecided = is_undecided(scope)
    if undecided:
        _settle(scope, "GoAhead", "an administrator confirmed it")
    return undecided


def resume_adopted(scope: Scope) -> Requeue | None:
    """Confirm an undecided server (operation=retry): its state continues, discovery from the beginning."""
    parked = scope.status.state == State.PARKED
    if not parked and approve(scope) and scope.status.state == State.DISCOVERY:
        return scope.transition(State.INITIAL, "adoption was confirmed; discovery starts from the beginning")
    return None
