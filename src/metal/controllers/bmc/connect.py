"""Finds out how the BMC is reached, and whether it may be asked now."""

from metal.api.bmc import Refusal
from metal.api.core import SECRET
from metal.bmc.errors import BMCAuthError, BMCError
from metal.controllers.bmc.check import failed
from metal.controllers.bmc.scope import Scope
from metal.controllers.bmc.trust import pin_certificate
from metal.controllers.shared.bmc_endpoint import NOT_PINNED, Problem, endpoint_for_bmc
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Requeue, Result
from metal.kube.meta import permissions
from metal.kube.meta.conditions import find, is_true


async def find_access(scope: Scope) -> Result | None:
    """Build the access. What is missing becomes a condition; a change of it wakes the BMC up."""
    await _read_authority(scope)
    access = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    _mirror_address(scope)
    if isinstance(access, Problem) and access.reason == NOT_PINNED:
        try:
            await pin_certificate(scope)
        except BMCError as exc:
            return failed(scope, exc)
        access = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    if isinstance(access, Problem):
        scope.state("Pending", access.message)
        scope.report("Ready", False, access.reason, access.message)
        return Requeue(scope.context.jitter(scope.deps.settings.interval))
    scope.access = scope.memo.access = access
    return None


async def let_rest(scope: Scope) -> Result | None:
    """Leave a restarting BMC alone, and credentials that it refused."""
    settings = scope.deps.settings
    reset = find(scope.status.conditions, "Reset")
    if reset is not None and is_true(scope.status.conditions, "Reset"):
        left = scope.seconds_left(reset.last_transition_time, settings.reset_wait)
        if left:
            return Requeue(left)
    if scope.operation == "retry":
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
    scope.state("Error", f"right credentials in BMCSecret {name}")
    return Requeue(scope.context.jitter(left) + 1)


def _refusal(scope: Scope) -> Refusal | None:
    """The refusal, if nothing has changed since: neither the BMC nor the credentials themselves."""
    refused, secret = scope.status.refused, scope.secret
    ready = find(scope.status.conditions, "Ready")
    if refused is None or secret is None or ready is None or ready.reason != BMCAuthError.reason:
        return None
    if ready.observed_generation != scope.obj.metadata.generation:
        return None
    now = Refusal(secret_uid=secret.metadata.uid, secret_generation=secret.metadata.generation, at=refused.at)
    return now if now == refused or scope.memo.refused == scope.access else None


def _mirror_address(scope: Scope) -> None:
    """Show MAC and IP address of the endpoint or of the inline access."""
    source = scope.endpoint.spec if scope.endpoint else scope.obj.spec.access
    if source is None:
        return
    if scope.status.ip is not None and source.ip != scope.status.ip:
        scope.set(refused=None)  # another device may answer there
    scope.set(mac_address=source.mac_address, ip=source.ip or None)


async def _read_authority(scope: Scope) -> None:
    """Read the Secret that tls.caSecretRef names; nobody else reads it."""
    tls = scope.obj.spec.tls
    if tls is None or tls.ca_secret_ref is None:
        return
    name, authorities = tls.ca_secret_ref.name, scope.deps.defaults.authorities
    try:
        secret = await scope.context.client.get(SECRET, name, scope.deps.settings.namespace)
    except NotFound:
        authorities.pop(name, None)
        return
    authorities[name] = secret.data.get("ca.crt", b"").decode(errors="replace")


def required_permissions() -> tuple[permissions.Permission, ...]:
    """What this module does with the API. Which Secret it is, a BMC's tls.caSecretRef says."""
    why = "reads the authority that tls.caSecretRef of a BMC names"
    return (permissions.Permission(SECRET, ("get",), why, where=permissions.Where.HOME),)
