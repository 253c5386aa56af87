"""Whether a tenant may have left data on a machine, and what must become of it."""

from enum import StrEnum

from metal.api.boot_window import Purpose
from metal.api.claim import ServerClaim
from metal.api.sanitization import Firmware, Policy
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.evidence.verdict import is_weaker

LABEL = "sanitization-policy"
"""Label of a Server (under the API group): its owner's word, which goes before the setting."""
FIRMWARE_LABEL = "sanitization-firmware"
"""Label of a Server: what of its firmware is put back, which goes before the setting."""


def policy_for(scope: Scope, claim: ServerClaim | None) -> str:
    """The claim's word, else the server's label, else the setting; without opt-out a claim may not ask for less."""
    ours = _label(scope) or scope.settings.sanitization_policy
    asked = claim.spec.sanitization_policy if claim is not None else ""
    if not asked or (is_weaker(asked, ours) and not scope.settings.sanitization_opt_out):
        return ours
    return asked


def firmware_for(scope: Scope) -> str:
    """What of the firmware is put back after a tenant: the server's label, else the setting."""
    return _known(scope, FIRMWARE_LABEL, Firmware) or scope.settings.sanitization_firmware


def _label(scope: Scope) -> str:
    return _known(scope, LABEL, Policy)


def _known(scope: Scope, label: str, words: type[StrEnum]) -> str:
    told = _value(scope, label)
    return told if told in tuple(words) else ""


def _value(scope: Scope, label: str) -> str:
    return scope.server.metadata.labels.get(scope.context.kinds.key(label), "")


def record_policy(scope: Scope, claim: ServerClaim | None) -> None:
    """Write down what is owed after this tenant: once the claim is gone, nobody else can tell."""
    scope.set(sanitization_policy=policy_for(scope, claim))
    wrong = [
        f"the label {scope.context.kinds.key(label)} is {_value(scope, label)!r}, and ignored: write {', '.join(words)}"
        for label, words in ((LABEL, Policy), (FIRMWARE_LABEL, Firmware))
        if _value(scope, label) and not _known(scope, label, words)
    ]
    if wrong:
        scope.condition("SanitizationPolicyValid", False, "InvalidLabel", "; ".join(wrong))
    elif scope.find_condition("SanitizationPolicyValid") is not None:
        scope.condition("SanitizationPolicyValid", True, "Valid", "the label says a policy, or is gone")


def is_owed(scope: Scope) -> bool:
    """True while something of a tenant may be on the drives that nobody has erased or decided to leave.

    A claimed server that another operator left may carry anything.
    """
    if scope.status.sanitization:
        return False
    return has_traces(scope) or (not scope.status.tenant and scope.find_condition(ConditionType.TAKEN_OVER) is not None)


def has_traces(scope: Scope) -> bool:
    """True when the machine was handed something of a tenant's boot, and no cleanup has come to its end since."""
    status, window = scope.status, scope.status.boot_window
    if status.sanitization:
        return False
    if status.claim_boot is not None or status.tenant_served:
        return True
    if window is None or window.purpose == Purpose.DISCOVERY:
        return False
    return window.purpose == Purpose.SANITIZATION or window.script_served_at is not None
