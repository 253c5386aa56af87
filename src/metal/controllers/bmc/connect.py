"""Resolves the address, credentials and certificate policy of a BMC, and pauses requests that would fail again."""

from metal.api.bmc import Refusal
from metal.api.names import RETRY
from metal.bmc.errors import BMCAuthError, BMCError
from metal.controllers.bmc.check import report_failure
from metal.controllers.bmc.scope import Scope
from metal.controllers.bmc.trust import keep_in_secret, pin_certificate
from metal.controllers.shared.access import authorities, secret_use
from metal.controllers.shared.access.bmc_endpoint import NOT_PINNED, endpoint_for_bmc
from metal.controllers.shared.access.enrolment_policy import PENDING_APPROVAL
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.access.secret_use import NOT_BOUND
from metal.controllers.shared.condition_types import RESET
from metal.kube.controller.controller import Requeue, Result
from metal.kube.meta.conditions import find, is_true
from metal.machine.report import normal_mac

MAC_VALID = "MACAddressValid"
"""Condition of a BMC whose spec has, or had, a malformed MAC address."""


async def resolve_endpoint(scope: Scope) -> Result | None:
    """Resolve the endpoint. What is missing is reported in the condition Ready; its creation causes the next pass."""
    settings = scope.deps.settings
    await authorities.read(scope.context, settings.namespace, scope.obj.spec.tls, scope.deps.defaults)
    not_allowed = await _bind_secret(scope)
    found = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    _show_address(scope)
    if isinstance(found, Problem) and found.reason == NOT_PINNED:
        try:
            await pin_certificate(scope)
        except BMCError as exc:
            return report_failure(scope, exc)
        found = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    if isinstance(found, Problem) and found.reason == NOT_BOUND:
        found = not_allowed or found
    if isinstance(found, Problem):
        scope.state(PENDING_APPROVAL if found.reason == PENDING_APPROVAL else "Pending", found.message)
        scope.report("Ready", False, found.reason, found.message)
        return Requeue(scope.context.jitter(scope.deps.settings.interval))
    await keep_in_secret(scope)
    scope.bmc_endpoint = scope.memo.bmc_endpoint = found
    return None


async def back_off(scope: Scope) -> Result | None:
    """Send nothing shortly after a restart, nor with credentials that were refused a short time ago."""
    settings = scope.deps.settings
    reset = find(scope.status.conditions, RESET)
    if reset is not None and is_true(scope.status.conditions, RESET):
        left = scope.seconds_left(reset.last_transition_time, settings.reset_wait)
        if left:
            return Requeue(left)
    if scope.operation == RETRY:
        await scope.consume_operation()
        scope.set(refused=None)
    refused = _refusal(scope)
    scope.set(refused=refused)
    if refused is None:
        return None
    left = scope.seconds_left(refused.at, settings.credentials_rest)
    if not left:
        return None
    name = scope.obj.spec.bmc_secret_ref.name
    scope.state("Error", f"valid credentials in BMCSecret {name}")
    return Requeue(scope.context.jitter(left) + 1)


def _refusal(scope: Scope) -> Refusal | None:
    """The refusal, if neither the BMC nor its credentials have changed since."""
    refused, secret = scope.status.refused, scope.secret
    ready = find(scope.status.conditions, "Ready")
    if refused is None or secret is None or ready is None or ready.reason != BMCAuthError.reason:
        return None
    if ready.observed_generation != scope.obj.metadata.generation:
        return None
    now = Refusal(secret_uid=secret.metadata.uid, secret_generation=secret.metadata.generation, at=refused.at)
    return now if now == refused or scope.memo.refused == scope.bmc_endpoint else None


def _show_address(scope: Scope) -> None:
    """Copy MAC and IP address of the Endpoint or of spec.access into the status."""
    source = scope.endpoint.spec if scope.endpoint else scope.obj.spec.access
    if source is None:
        return
    if scope.status.ip is not None and source.ip != scope.status.ip:
        scope.set(refused=None)  # another device may have this address
    mac = source.mac_address if normal_mac(source.mac_address) else ""
    scope.set(mac_address=mac, ip=source.ip or None)
    if source.mac_address and not mac:
        text = (
            f"macAddress {source.mac_address[:64]!r} is not a MAC address (six pairs of hexadecimal digits), and is not"
            " used: spec.access cannot be changed, so create the BMC again with the correct address, or without one"
        )
        scope.report(MAC_VALID, False, "Malformed", text)
    elif find(scope.status.conditions, MAC_VALID) is not None:
        scope.report(MAC_VALID, True, "Valid", "the MAC address is valid, or is not set")


async def _bind_secret(scope: Scope) -> Problem | None:
    """Bind the BMCSecret to its first users, before a password is sent."""
    deps, secret = scope.deps, scope.secret
    annotation = deps.defaults.policy.bound_to
    if secret is None or secret_use.is_bound(secret, annotation):
        return None
    users = secret_use.users_of(secret, deps.bmcs, deps.servers)
    return await secret_use.bind(scope.context, deps.secrets, users, secret, annotation)
