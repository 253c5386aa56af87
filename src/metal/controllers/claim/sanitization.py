"""Reports whether the claim's sanitization policy applies to its server."""

from metal.api.server import Server
from metal.controllers.claim.scope import ClaimScope
from metal.evidence.verdict import is_weaker
from metal.kube.meta import conditions
from metal.machine import tenancy

HONORED = "SanitizationPolicyHonored"
"""Condition of a claim: its sanitizationPolicy applies; absent as long as it always did."""


def report(scope: ClaimScope, server: Server) -> None:
    """Report a policy of the claim that is weaker than the one that applies, and the end of that."""
    known = tenancy.of(server)
    asked, applied = scope.claim.spec.sanitization_policy, known.policy
    if known.uid != scope.claim.metadata.uid or not applied:
        return
    if asked and is_weaker(asked, applied):
        message = (
            f"spec.sanitizationPolicy {asked} is not honored: {applied} applies, which {_cause(scope, server)}; set "
            f"spec.sanitizationPolicy to {applied}"
        )
        scope.report(HONORED, False, "WeakerThanRequired", message)
    elif conditions.find(scope.status.conditions, HONORED) is not None:
        scope.report(HONORED, True, "Honored", f"{applied} applies, as spec.sanitizationPolicy allows")


def _cause(scope: ClaimScope, server: Server) -> str:
    """What requires the policy that applies."""
    label = scope.deps.context.kinds.key("sanitization-policy")
    applied = tenancy.of(server).policy
    if server.metadata.labels.get(label) == applied:
        return f"label {label}={applied} of server {server.metadata.name} requires"
    return (
        "the manager's configuration (sanitization.policy) requires, unless it has sanitization.optOut: true, or the "
        "claim required before its data was written"
    )
