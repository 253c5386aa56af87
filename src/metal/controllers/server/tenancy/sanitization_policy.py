"""Decides which sanitization policy applies, and whether an erasure is outstanding."""

from enum import StrEnum

from metal.api.boot_window import Purpose
from metal.api.claim import ServerClaim
from metal.api.sanitization import Firmware, Policy
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.evidence.verdict import is_weaker

LABEL = "sanitization-policy"
"""Label of a Server (under the API group): the policy, which overrides the setting."""
FIRMWARE_LABEL = "sanitization-firmware"
"""Label of a Server: which firmware settings are reset, which overrides the setting."""


def policy_for(scope: Scope, claim: ServerClaim | None) -> str:
    """The claim's policy, else the server's label, else the setting; without opt-out a claim may not require less."""
    base = _label(scope) or scope.settings.sanitization_policy
    asked = claim.spec.sanitization_policy if claim is not None else ""
    if not asked or (is_weaker(asked, base) and not scope.settings.sanitization_opt_out):
        return base
    return asked


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
    """Record which policy applies after this tenant: once the claim is gone, it cannot be read any more."""
    scope.set(sanitization_policy=policy_for(scope, claim))
    wrong = [
        f"label {scope.context.kinds.key(label)} {_value(scope, label)!r} is ignored: use one of {', '.join(words)}"
        for label, words in ((LABEL, Policy), (FIRMWARE_LABEL, Firmware))
        if _value(scope, label) and not _known(scope, label, words)
    ]
    if wrong:
        scope.condition("SanitizationPolicyValid", False, "InvalidLabel", "; ".join(wrong))
    elif scope.find_condition("SanitizationPolicyValid") is not None:
        scope.condition("SanitizationPolicyValid", True, "Valid", "the label is valid, or was removed")


def is_owed(scope: Scope) -> bool:
    """True while a tenant's data may be on the drives, and neither erased nor accepted.

    The drives of a claimed server that another operator managed may hold anything.
    """
    if scope.status.sanitization:
        return False
    return has_traces(scope) or (not scope.status.tenant and scope.find_condition(ConditionType.TAKEN_OVER) is not None)


def has_traces(scope: Scope) -> bool:
    """True when something of a tenant's boot was served to the machine, and no cleanup has ended since."""
    status, window = scope.status, scope.status.boot_window
    if status.sanitization:
        return False
    if status.claim_boot is not None or status.tenant_served:
        return True
    if window is None or window.purpose == Purpose.DISCOVERY:
        return False
    return window.purpose == Purpose.SANITIZATION or window.script_served_at is not None
