"""Operations: what an administrator requests with the annotation metal.ironcore.dev/operation.

In: the value of the annotation; `KNOWN` lists the values. `ignore` acts as long as it stays (see
`finalize.is_ignored`). Every other operation is executed or refused once, an Event says which, and the annotation is
removed. The result is written before the annotation is removed: when a manager is killed in between, the operation may
be executed twice.

A reset must not be executed twice, so it takes more steps. The annotation becomes `status.operationRequest`; the
annotation is removed; the time of the request to the BMC is written; only then the request is sent, in a pass that has
reached the BMC. A manager that finds a request with a time does not know whether the BMC received it: the Event is
`OperationUnconfirmed` and the reset is dropped, never repeated. For a busy BMC the request is sent three times. A
request that could not be sent within `power_timeout` is dropped, because a reset must not happen when it is no longer
expected.

`_refusal` lists the states in which a reset is refused; it is evaluated when the annotation is read, and once more
before the request is sent.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from metal.api.claim import ServerClaim
from metal.api.claim_boot import requests_boot
from metal.api.interruption import OperationRequest
from metal.api.names import (
    ACCEPT_INTERFACES,
    FORCE_OFF,
    FORCE_ON,
    GRACEFUL_RESTART,
    HARD_RESTART,
    IGNORE,
    OPERATION,
    PARK,
    POWER_CYCLE,
    RETRY,
    UNPARK,
)
from metal.api.server import State
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCConflict, BMCError, BMCForbidden, BMCNotSupported
from metal.bmc.power import PowerState, ResetType
from metal.controllers.server import power
from metal.controllers.server.bmc import host_key, reported_interfaces
from metal.controllers.server.netboot.boot import clear_override, is_override_kept
from metal.controllers.server.netboot.progress import has_booted, is_in_progress
from metal.controllers.server.reasons import Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import discovery, error, parked
from metal.controllers.server.tenancy import erase_permission, owed_drives, sanitization_policy, sanitization_result
from metal.controllers.server.tenancy.adoption import takeover
from metal.controllers.server.traits import PowerOwner, traits_of
from metal.controllers.shared.access.host_key import ACCEPT as ACCEPT_HOST_KEY
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import Key

RESETS: Mapping[str, ResetType] = {
    GRACEFUL_RESTART: ResetType.GRACEFUL_RESTART,
    HARD_RESTART: ResetType.FORCE_RESTART,
    POWER_CYCLE: ResetType.POWER_CYCLE,
    FORCE_OFF: ResetType.FORCE_OFF,
    FORCE_ON: ResetType.FORCE_ON,
}
_RESTARTS = (ResetType.GRACEFUL_RESTART, ResetType.FORCE_RESTART, ResetType.POWER_CYCLE)
_TRIES = 3
"""How often a request is sent to a busy BMC."""
KNOWN = (
    IGNORE, RETRY, sanitization_result.ACCEPT, owed_drives.ACCEPT, sanitization_policy.SANITIZE, ACCEPT_HOST_KEY,
    ACCEPT_INTERFACES, PARK, UNPARK, *RESETS,
)  # fmt: skip
"""Values of the annotation."""


async def run(scope: Scope) -> Requeue | None:
    """Execute metal.ironcore.dev/operation once. An unknown value is refused with an Event and removed."""
    annotation = scope.context.kinds.key(OPERATION)
    wanted = scope.server.metadata.annotations.get(annotation)
    if wanted is None:
        return None
    if wanted in (PARK, UNPARK):
        await parked.request(scope, wanted)
        return None
    if wanted in RESETS and not parked.is_marked(scope):
        await _accept_reset(scope, wanted)
        return None
    result = _retry(scope) if wanted == RETRY else None
    if wanted == sanitization_result.ACCEPT:
        result = await _accept_owed(scope)
    if wanted == sanitization_policy.SANITIZE:
        result = sanitization_policy.sanitize(scope)
    if wanted == owed_drives.ACCEPT:
        owed_drives.accept(scope)
    if wanted == ACCEPT_INTERFACES:
        result = await _accept_interfaces(scope)
    if wanted == ACCEPT_HOST_KEY:
        host_key.accept(scope)
    _refuse(scope, wanted)
    await scope.commit()  # before the annotation is removed: twice, if killed in between, rather than never
    await scope.patch({"metadata": {"annotations": {annotation: None}}})
    return result


def _retry(scope: Scope) -> Requeue | None:
    if scope.status.state == State.ERROR:
        takeover.resume_adopted(scope)
        return error.resume_interrupted(scope)
    erase_permission.ask_again(scope)
    return takeover.resume_adopted(scope)


async def _accept_owed(scope: Scope) -> Requeue | None:
    result = await sanitization_result.accept(scope)
    if result is None:
        scope.record_event(
            "NothingOwed",
            f"operation {sanitization_result.ACCEPT} has no effect: no erasure is outstanding",
            warning=True,
        )
    return result


async def _accept_interfaces(scope: Scope) -> Requeue | None:
    failure = scope.status.failure
    refused = scope.status.state == State.ERROR and failure and failure.reason == Reason.IDENTITY_MISMATCH
    try:
        report = await discovery.read_report(scope) if refused else None
    except (NotFound, KeyError, msgspec.DecodeError):
        report = None
    if report is None:
        text = f"operation {ACCEPT_INTERFACES} has no effect: no report with foreign interfaces is there"
        scope.record_event("NothingToAccept", text, warning=True)
        return None
    reported_interfaces.accept(scope, report)
    return error.resume_interrupted(scope)


def _refuse(scope: Scope, wanted: str) -> None:
    if wanted in RESETS:
        scope.record_event("ParkedOperationDropped", f"{wanted} was not executed: the server is parked", warning=True)
    elif wanted not in KNOWN:
        known = ", ".join(KNOWN)
        scope.record_event(
            "UnsupportedOperation", f"operation {wanted!r} is not supported: use one of {known}", warning=True
        )


async def _accept_reset(scope: Scope, operation: str) -> None:
    """Move the operation from the annotation to the status, or refuse it with an Event."""
    why = _refusal(scope, operation)
    if why:
        scope.record_event("OperationRefused", f"{operation} was not executed: {why}", warning=True)
    elif not _is_written_down(scope, operation):
        deadline = scope.now + timedelta(seconds=scope.settings.power_timeout)
        scope.set(operation_request=OperationRequest(operation=operation, requested_at=scope.now, deadline=deadline))
    await scope.commit()
    await scope.patch({"metadata": {"annotations": {scope.context.kinds.key(OPERATION): None}}})


def _is_written_down(scope: Scope, operation: str) -> bool:
    """True when a process was killed before it removed the annotation. A request that was sent had none any more."""
    request = scope.status.operation_request
    return request is not None and request.operation == operation and request.asked_at is None


async def expire_reset(scope: Scope) -> Requeue | None:
    """Drop a request that could not be sent before its deadline: a late reset would be unexpected."""
    request = scope.status.operation_request
    if request is not None and request.asked_at is None and request.deadline and scope.now >= request.deadline:
        seconds = scope.settings.power_timeout
        _drop(scope, "OperationFailed", f"it could not be sent to the BMC within {seconds:.0f} s and is dropped")
    return None


async def perform_reset(scope: Scope) -> Requeue | None:
    """Send the recorded reset to the BMC, if there is one. Raises BMCError as long as nothing was sent."""
    request = scope.status.operation_request
    if request is None:
        return None
    if request.asked_at is not None:
        return _unknown(scope, "the manager stopped while it sent the request")
    system = await scope.observe(max_age=0.0)
    kind = RESETS[request.operation]
    why = _refusal(scope, request.operation)
    if not why and kind in _RESTARTS and system.power_state is PowerState.OFF:
        why = "the machine is off; use force-on-server to switch it on"
    if not why and kind is not ResetType.FORCE_OFF:
        why = await _from_disk(scope)
    if why:
        _drop(scope, "OperationRefused", why)
        return None
    request = msgspec.structs.replace(request, asked_at=scope.now, attempts=request.attempts + 1)
    scope.set(operation_request=request)
    await scope.commit()
    return await _ask(scope, request, kind)


async def _from_disk(scope: Scope) -> str:
    """Why the machine would boot from the network now; empty if it boots from its disk. Raises BMCError."""
    await clear_override(scope, max_age=0.0)
    if not is_override_kept(scope):
        return ""
    return "the BMC keeps its network boot override, so the machine would not boot from its disk"


async def _ask(scope: Scope, request: OperationRequest, kind: ResetType) -> Requeue:
    scope.invalidate()
    scope.memo.reset_at = asyncio.get_running_loop().time()
    if kind is ResetType.FORCE_ON:
        power.record_power_on(scope)
    try:
        await scope.unrecorded().reset(scope.uri, kind)
    except (BMCConflict, BMCBusy) as exc:
        return _again(scope, request, exc)
    except (BMCNotSupported, BMCBadRequest, BMCForbidden) as exc:
        _drop(scope, "OperationFailed", str(exc))
        return Requeue(0)
    except BMCError as exc:
        return _unknown(scope, str(exc))
    _note_touched(scope)
    scope.set(operation_request=None)
    scope.record_event(
        "OperationDone", f"{request.operation}: the reset {kind} was sent to the BMC{_after(scope, kind)}"
    )
    return Requeue(scope.settings.power_poll)


def _again(scope: Scope, request: OperationRequest, exc: BMCError) -> Requeue:
    if request.attempts >= _TRIES:
        _drop(scope, "OperationFailed", f"the BMC rejected it {request.attempts} times: {exc}")
        return Requeue(0)
    scope.set(operation_request=msgspec.structs.replace(request, asked_at=None))
    return Requeue(scope.context.jitter(scope.settings.bmc_retry))


def _unknown(scope: Scope, why: str) -> Requeue:
    what = (
        f"it is unknown whether the BMC executed it ({why}); check the machine, and annotate the server again if the "
        "reset is still required"
    )
    _drop(scope, "OperationUnconfirmed", what)
    _note_touched(scope)
    return Requeue(scope.settings.power_poll)


def _drop(scope: Scope, reason: str, why: str) -> None:
    request = scope.status.operation_request
    scope.set(operation_request=None)
    scope.record_event(reason, f"{request.operation if request else 'a reset'}: {why}", warning=True)


def _note_touched(scope: Scope) -> None:
    visit = scope.status.interruption
    if visit is not None:
        scope.set(interruption=msgspec.structs.replace(visit, touched=True))


def _after(scope: Scope, kind: ResetType) -> str:
    if kind is ResetType.FORCE_OFF and scope.status.state == State.RESERVED and _claims_power(scope) == PowerState.ON:
        return "; its claim requests power On, so it is switched on again"
    return ""


def _refusal(scope: Scope, operation: str) -> str:
    """Why the state of the server forbids the reset; empty if it does not."""
    failure = scope.status.failure
    state = failure.state if scope.status.state == State.ERROR and failure is not None else scope.status.state
    if is_in_progress(scope):
        return "a network boot is in progress; wait until it has ended"
    if RESETS[operation] is ResetType.FORCE_OFF:
        return ""
    owner = traits_of(state).power
    if owner is PowerOwner.MAINTENANCE:
        return "the maintenance requests power Off" * (_maintenance_power(scope) == PowerState.OFF)
    if owner is not PowerOwner.CLAIM:
        return f"in the state {state} the operator controls the power; use force-off-server or wait for another state"
    if not has_booted(scope):
        return "the claim's first boot, over the network, is still pending"
    claim = _claim(scope)
    if claim is not None and requests_boot(claim, scope.tenancy.boot):
        return "the claim requests another network boot, which is still pending"
    return "its claim requests power Off, or no longer exists" * (_claims_power(scope) != PowerState.ON)


def _claims_power(scope: Scope) -> str:
    claim = _claim(scope)
    return claim.spec.power if claim is not None else ""


def _claim(scope: Scope) -> ServerClaim | None:
    ref = scope.server.spec.server_claim_ref
    claim = scope.deps.claims.get(Key(ref.name, ref.namespace)) if ref is not None else None
    return None if claim is None or claim.metadata.deletion_timestamp else claim


def _maintenance_power(scope: Scope) -> str:
    ref = scope.server.spec.server_maintenance_ref
    found = scope.deps.maintenances.get(Key(ref.name, ref.namespace)) if ref is not None else None
    return found.spec.server_power if found is not None else ""
