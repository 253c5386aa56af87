"""Decides which sanitization policy applies after a tenant.

The claim's policy applies where it is not weaker than the required one: the server's label, else the setting. With
opt-out a claim may require less than the setting, never less than the label. Once data of a claim may be on the
drives, its policy is only raised by a change of claim, label or setting. Until then it follows them: a claim whose
first boot script was not served has left nothing, so a lower policy gives away no data. A dropped
`spec.sanitizationPolicy` is refused by the API at any time (422).

A server whose claim opted out of the erasure gets the taint `data-not-erased` with the claim's namespace as value. Only
claims of this namespace can tolerate it (`claim.matching`): a tenant may keep its own data, and does not decide about
that of another. An erasure removes the taint: after a later claim, or with operation=sanitize.
"""

from enum import StrEnum

import msgspec

from metal.api.claim import ServerClaim
from metal.api.common import Taint
from metal.api.names import NOT_ERASED, OPERATION
from metal.api.sanitization import Firmware, Policy
from metal.api.server import State
from metal.api.tenancy import Data
from metal.controllers.server.scope import Scope
from metal.evidence.verdict import is_weaker
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy

LABEL = "sanitization-policy"
"""Label of a Server (under the API group): the policy, which overrides the setting."""
SANITIZE = "sanitize"
"""Operation that erases an Available server."""
FIRMWARE_LABEL = "sanitization-firmware"
"""Label of a Server: which firmware settings are reset, which overrides the setting."""


def policy_for(scope: Scope, claim: ServerClaim | None) -> str:
    """The claim's policy, unless it is weaker than what is required; else the server's label, else the setting."""
    label, setting = _label(scope), scope.settings.sanitization_policy
    asked = claim.spec.sanitization_policy if claim is not None else ""
    required = label if scope.settings.sanitization_opt_out else label or setting
    return asked if asked and not is_weaker(asked, required) else label or setting


def firmware_for(scope: Scope) -> str:
    """Which firmware settings are reset after a tenant: the server's label, else the setting."""
    return _known(scope, FIRMWARE_LABEL, Firmware) or scope.settings.sanitization_firmware


def _label(scope: Scope) -> str:
    return _known(scope, LABEL, Policy)


def _known(scope: Scope, label: str, words: type[StrEnum]) -> str:
    value = _value(scope, label)
    return value if value in tuple(words) else ""


def _value(scope: Scope, label: str) -> str:
    return scope.server.metadata.labels.get(scope.context.kinds.key(label), "")


def record_policy(scope: Scope, claim: ServerClaim | None) -> None:
    """Record which policy applies after this tenant: once the claim is gone, it cannot be read any more.

    Once data may be on the drives it is only raised: another client's update may drop the field that required it.
    Before that, nothing of the claim needs an erasure, and an administrator may still lower it by label or setting.
    """
    known, policy = scope.tenancy, policy_for(scope, claim)
    if not (tenancy.holds_data(known) and is_weaker(policy, known.policy)):
        scope.set(tenancy=msgspec.structs.replace(known, policy=policy))
    wrong = [
        f"label {scope.context.kinds.key(label)} {_value(scope, label)!r} is ignored: use one of {', '.join(words)}"
        for label, words in ((LABEL, Policy), (FIRMWARE_LABEL, Firmware))
        if _value(scope, label) and not _known(scope, label, words)
    ]
    if wrong:
        scope.condition("SanitizationPolicyValid", False, "InvalidLabel", "; ".join(wrong))
    elif scope.find_condition("SanitizationPolicyValid") is not None:
        scope.condition("SanitizationPolicyValid", True, "Valid", "the label is valid, or was removed")


def taints(scope: Scope) -> dict[str, object]:
    """The change of the spec for a server that leaves Cleanup: the taint for data that a claim's opt-out left."""
    key, before, known = scope.context.kinds.key(NOT_ERASED), scope.server.spec.taints, scope.tenancy
    after = [taint for taint in before if taint.key != key]
    left = known.sanitization == Policy.NONE and known.data == Data.ACCEPTED
    if left and policy_for(scope, None) != Policy.NONE:
        after.append(Taint(key=key, value=known.claim_ref.namespace if known.claim_ref is not None else ""))
    elif known.sanitization not in (Policy.CLEAR, Policy.PURGE):
        return {}
    return (
        {"taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in after]} if after != [*before] else {}
    )


def sanitize(scope: Scope) -> Requeue | None:
    """Execute operation=sanitize: erase an Available server; elsewhere an Event says why not."""
    if scope.status.state != State.AVAILABLE or scope.server.spec.server_claim_ref is not None:
        scope.record_event(
            "OperationRefused", f"{SANITIZE} was not executed: the server is not Available and unclaimed", warning=True
        )
        return None
    policy = policy_for(scope, None)
    owed = tenancy.owed(scope.tenancy, "", Policy.CLEAR if policy == Policy.NONE else policy, scope.now)
    scope.set(tenancy=owed, boot_window=None, boot_attempts=0)
    return scope.transition(State.CLEANUP, "an administrator requested the erasure of the server")


def left_data(scope: Scope) -> str:
    """What the condition says of data that was left, with the way to erase it."""
    operation = f"{scope.context.kinds.key(OPERATION)}={SANITIZE}"
    return (
        f"the sanitization policy is None: the data of the last tenant was left. To erase it: kubectl annotate servers "
        f"{scope.name} {operation}"
    )
