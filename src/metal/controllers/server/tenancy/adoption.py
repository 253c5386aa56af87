"""Adopts servers whose status another operator wrote: the machine is left alone until it is what its state says.

In: a Server with `status.state` and without `status.since`. The Go operator does not write `since`; this one always
does.

`adopt` notes such a server once: it sets `since`, the condition `TakenOver` to False, and for a bound claim whose
machine may have booted it records the boot as had, so that no network boot overwrites its disk. With CRDs of another
operator the API drops these fields; then the server waits for `CustomResourceDefinitions` and nothing is done.

`hold` compares the machine's power with what the next step of its state would make of it. When they agree, the server
is adopted (`TakenOver` is True) and its state goes on. When they differ, what the other operator was doing is not
known: the server waits for `TakeoverGoAhead` and is not touched until operation=retry. Maintenance, Parked and an Error
of this operator need no such comparison, because they do not switch the machine.
"""

from metal.api.claim import ServerClaim
from metal.api.names import OPERATION
from metal.api.server import ClaimBoot, State
from metal.bmc.power import PowerState
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.tenancy import find_claim
from metal.controllers.server.traits import PowerOwner, traits_of
from metal.kube.controller.controller import Requeue


async def adopt(scope: Scope) -> Requeue | None:
    """Take note of a server that another operator left, once, before anything else is done for it."""
    if not scope.status.state or scope.status.since is not None:
        return None
    scope.set(since=scope.now)
    claim = await find_claim(scope)
    if claim is not None and _may_have_booted(scope, claim):
        uid, generation = claim.metadata.uid, claim.spec.boot_generation
        scope.set(tenant=uid, claim_boot=ClaimBoot(claim_uid=uid, booted_at=scope.now, boot_generation=generation))
        scope.condition(
            ConditionType.BOOT_ASSUMED, True, "TakenOver",
            "another operator bound this claim; it counts as booted, so that nothing boots over its disk",
        )  # fmt: skip
    scope.condition(
        ConditionType.TAKEN_OVER, False, "Undecided", f"another operator left this server in {scope.status.state}"
    )
    await scope.commit()
    return await_crds(scope) if scope.status.since is None else None


def await_crds(scope: Scope) -> Requeue:
    """With the CRDs of another operator a boot would be forgotten while it is under way, and a tenant with it."""
    text = (
        "CRDs that know this operator's fields: the API drops what is written of this server. Apply them (config/crd)"
    )
    return scope.wait(WaitFor.CUSTOM_RESOURCE_DEFINITIONS, text)


def _may_have_booted(scope: Scope, claim: ServerClaim) -> bool:
    """Phase Bound says that there was a boot configuration; before that, only a running machine shows a boot."""
    return claim.status.phase == "Bound" or scope.status.power_state not in ("", PowerState.OFF)


async def hold(scope: Scope) -> Requeue | None:
    """None for a server that may go on; else it is left alone, and says how it goes on. Raises BMCError."""
    if not is_undecided(scope) or _is_exempt(scope):
        return None
    system = await scope.observe()
    claim = await find_claim(scope)
    if _is_claimed(scope) and claim is None:
        _settle(scope, "ClaimGone", "its claim is gone")
        return None
    wanted = _wanted(scope, claim)
    if system.power_state is wanted:
        _settle(scope, "AsDeclared", f"power is {wanted.value}, as its state says")
        failed = scope.status.state == State.ERROR
        return scope.transition(State.RESERVED, "taken over from Error; the claim has its server") if failed else None
    return _hold(scope, system.power_state, wanted)


def _is_exempt(scope: Scope) -> bool:
    """A maintenance only watches the machine, Parked not even that; an Error of ours knows what it waits for."""
    if scope.status.state == State.PARKED:
        return True
    if scope.status.state == State.ERROR:
        return scope.status.failure is not None
    return scope.status.state == State.MAINTENANCE and scope.server.spec.server_maintenance_ref is not None


def _is_claimed(scope: Scope) -> bool:
    return scope.status.state == State.RESERVED and scope.server.spec.server_claim_ref is not None


def _wanted(scope: Scope, claim: ServerClaim | None) -> PowerState | None:
    """The power at which the next step leaves the machine as it is; None when there is no such step."""
    traits = traits_of(scope.status.state)
    if not traits.discovered:
        return None
    if claim is None:
        return PowerState.OFF if traits.power in (PowerOwner.STATE, PowerOwner.CLAIM) else None
    if scope.status.claim_boot is None or claim.spec.power == PowerState.OFF:
        return PowerState.OFF
    return PowerState.ON


def _settle(scope: Scope, reason: str, why: str) -> None:
    scope.clear_wait()
    scope.condition(ConditionType.TAKEN_OVER, True, reason, f"taken over from another operator: {why}")


def _hold(scope: Scope, power: PowerState, wanted: PowerState | None) -> Requeue:
    doing = f"{power.value} although {wanted.value} is called for" if wanted else f"{power.value}"
    text = (
        f"the word to go on: another operator left this server in {scope.status.state}, and its machine is {doing}. It "
        f"is left alone; to go on: kubectl annotate servers {scope.name} {scope.context.kinds.key(OPERATION)}=retry"
    )
    scope.condition(ConditionType.TAKEN_OVER, False, "Undecided", text)
    return scope.wait(WaitFor.TAKEOVER_GO_AHEAD, text)


def is_undecided(scope: Scope) -> bool:
    """True for another operator's server whose machine is not as its state says, until operation=retry."""
    known = scope.find_condition(ConditionType.TAKEN_OVER)
    return known is not None and known.status == "False"


def approve(scope: Scope) -> bool:
    """Adopt an undecided server as it is; False when it was decided before."""
    undecided = is_undecided(scope)
    if undecided:
        _settle(scope, "GoAhead", "somebody gave the word")
    return undecided


def resume_adopted(scope: Scope) -> Requeue | None:
    """What operation=retry does for a server that is left alone: its state's next step, from the beginning."""
    parked = scope.status.state == State.PARKED
    if not parked and approve(scope) and scope.status.state == State.DISCOVERY:
        return scope.transition(State.INITIAL, "the word to go on was given; discovery starts from the beginning")
    return None
