"""Error: reports what failed and what to do, until operation=retry, a maintenance, or the end of the cause.

A failure of an operation on the BMC ends when that operation succeeds. What every pass begins with (reading the system)
is repeated here. Any other operation is repeated in the interrupted state, where it is known whether it is still
wanted: when its pause is over the server returns there, and the next failure leads back to Error at once. The count of
network boots that failed stays.
"""

from metal.api.claim import ServerClaim
from metal.api.server import Failure, State
from metal.bmc.power import PowerState
from metal.bmc.systems import SystemInfo
from metal.controllers.server.bmc import failing
from metal.controllers.server.bmc.bmc_errors import REFUSED
from metal.controllers.server.netboot import readiness, trust
from metal.controllers.server.netboot.progress import belongs, tenant_of
from metal.controllers.server.reasons import CONTACT, ConditionType, Operation, Reason, WaitFor, is_of_bmc, summary
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import maintenance
from metal.controllers.server.tenancy import erased_elsewhere, reimage
from metal.controllers.server.tenancy.tenancy import assume_booted, find_claim
from metal.controllers.server.traits import traits_of
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy

_BY_SPEC = (Reason.INVALID_SPEC, *REFUSED)
"""Failures that a change of the Server's spec may resolve."""
_REACHED = {PowerState.ON: Reason.POWER_ON_TIMEOUT, PowerState.OFF: Reason.POWER_OFF_TIMEOUT}
"""The failure that ends once the machine has this power."""
_SWITCHED = {
    PowerState.ON: (Operation.POWER_ON,),
    PowerState.OFF: (Operation.POWER_OFF, Operation.FORCE_POWER_OFF),
}
"""The operations whose result this power is."""


async def run(scope: Scope) -> Requeue:
    """Return to the interrupted state once the cause has ended. Raises BMCError while the BMC is the cause."""
    failure = scope.status.failure
    system = await scope.observe(max_age=scope.settings.bmc_retry)
    if failure is None:
        return _resume(scope, start_over(scope), "the failure is unknown")
    claim = await find_claim(scope) if _interrupted(failure) is State.RESERVED else None
    if _interrupted(failure) is State.RESERVED:
        if claim is None:
            return _resume(scope, State.CLEANUP, "the claim no longer exists; the server is being cleaned up")
        if reimage.request_changed(scope, claim, failure):
            return _resume(scope, State.RESERVED, "the claim requests another network boot, or none any more")
    if is_of_bmc(failure.reason) and (reason := _operation_recovery(scope, failure, system)):
        return _resume(scope, _interrupted(failure), reason, attempts=scope.status.boot_attempts)
    recovered = _recovery_reason(scope, failure, system, claim)
    if recovered:
        return _resume(scope, _interrupted(failure), recovered)
    scope.condition(ConditionType.READY, False, failure.reason, failure.message)
    known = failing.find(scope, failure.operation)
    left = failing.seconds_left(scope, known) if known is not None else 0.0
    poll = min(left, scope.settings.resync) if left else None
    text = summary(failure.reason, failure.message)
    if failure.reason == Reason.SANITIZATION_OWED and (found := await erased_elsewhere.sentence(scope)):
        text = f"{text}. {found}"
    return scope.wait(WaitFor.REPAIR, text, poll=poll)


def _operation_recovery(scope: Scope, failure: Failure, system: SystemInfo) -> str:
    """Why a server whose operation on the BMC failed may continue; empty while it fails and its pause lasts."""
    operation, known = failure.operation, failing.find(scope, failure.operation)
    if known is None:
        return f"{operation} succeeded" if operation not in ("", *CONTACT) else "the BMC answers again"
    if operation in _SWITCHED.get(system.power_state, ()):
        return "the power reached the requested state"
    if operation == Operation.CLEAR_BOOT_OVERRIDE and not system.boot.is_network:
        return "the network boot override was cleared"
    return "" if failing.seconds_left(scope, known) else f"{operation} is tried again"


def _recovery_reason(scope: Scope, failure: Failure, system: SystemInfo, claim: ServerClaim | None) -> str:
    """Why the server may continue; empty if it may not."""
    minimum = trust.required(scope, claim.spec.minimum_boot_trust if claim is not None else "")
    if failure.reason == Reason.BOOT_TRUST_TOO_LOW:
        return f"a network boot can have the trust {minimum}" if trust.is_reachable(scope, minimum) else ""
    in_maintenance = failure.state == State.MAINTENANCE
    config = scope.maintenance_config() if in_maintenance else scope.boot_config()
    if in_maintenance and maintenance.is_over(scope, failure.reason, system):
        return "the maintenance in which it failed has ended"
    is_ready = readiness.is_ready(config) or _is_other_probe_image(scope, failure)
    if failure.reason == Reason.BOOT_CONFIGURATION_NOT_READY and is_ready:
        return "the boot configuration is ready now"
    if _REACHED.get(system.power_state) == failure.reason:
        return "the power reached the requested state"
    if failure.reason == Reason.BOOT_OVERRIDE_KEPT and not system.boot.is_network:
        return "the network boot override was cleared"
    window = scope.status.boot_window
    if failure.reason == Reason.FORMER_TENANT:
        return "the decision is awaited in the interrupted state"
    if failure.reason == Reason.NETWORK_BOOT_FAILED and config is not None and window is not None:
        return "" if belongs(window, config, tenant_of(window)) else "the boot configuration has changed"
    changed = scope.status.observed_generation != scope.server.metadata.generation
    return "the server's spec was changed" if failure.reason in _BY_SPEC and changed else ""


def _is_other_probe_image(scope: Scope, failure: Failure) -> bool:
    """True when discovery or cleanup would now boot another image than the one that failed."""
    config = scope.boot_config()
    return traits_of(failure.state).boots_probe and (config is None or config.spec.image != scope.settings.probe_image)


def resume_interrupted(scope: Scope) -> Requeue:
    """What operation=retry does: back to the interrupted state, with a fresh set of attempts and a fresh boot."""
    failure = scope.status.failure
    if failure is None or not failure.state or not traits_of(failure.state).resumable:
        return _resume(scope, start_over(scope), "retry was requested")
    scope.set(failing_operations=())
    scope.close_window()
    state = _interrupted(failure)
    return _resume(scope, State.INITIAL if state is State.DISCOVERY else state, "retry was requested")


def _interrupted(failure: Failure) -> State:
    return State(failure.state or State.INITIAL)


def start_over(scope: Scope) -> State:
    """The state to continue in when the interrupted one is unknown: a claimed machine is left unchanged."""
    if scope.tenancy.uid or tenancy.holds_data(scope.tenancy):
        return State.RESERVED
    if scope.server.spec.server_claim_ref is None:
        return State.INITIAL
    assume_booted(scope)
    return State.RESERVED


def _resume(scope: Scope, state: State, message: str, *, attempts: int = 0) -> Requeue:
    if state is State.AVAILABLE and (scope.tenancy.uid or tenancy.holds_data(scope.tenancy)):
        state = State.CLEANUP  # a tenant's data is on its drives, so it is cleaned up first
    scope.set(boot_attempts=attempts)
    return scope.transition(state, message)
