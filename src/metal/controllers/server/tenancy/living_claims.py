"""Searches for existing claims that may own the data on a server, before the server is taken from them or erased.

`spec.serverClaimRef` can be lost: another client replaces the Server without it, or a backup is restored. Therefore the
reference alone never ends a tenancy. The record names the claim by namespace, name and UID:

- `before_release` runs before a claimed server goes to Cleanup, and while Cleanup switches it off. It reads the claim
  of the record from the API, and claims that name this server from the cache.
- `before_switch_off` runs before Cleanup requests the power off of a running machine, and `before_erasure` before the
  boot that erases the drives. They list all claims in the API.

A claim with the UID of the record that does not name another server gets its server back: `spec.serverClaimRef` is
written again. A claim with another UID may own the data when its `spec.serverRef` names this server, and it has the
name of the record (a restored claim, whatever its phase), or the record has no UID and it reports to be bound. Nothing
is erased then; the server waits for an administrator (`FormerTenant`).
"""

from collections.abc import Iterable

import msgspec

from metal.api.claim import ServerClaim
from metal.api.kinds import Kinds
from metal.api.server import State
from metal.api.tenancy import TenantRef
from metal.bmc.power import PowerState
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.shared.condition_types import BOOTED
from metal.controllers.shared.indexes import BY_SERVER
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.permissions import Permission
from metal.machine import tenancy

_NO_UID = ("", "unknown")
"""UIDs of a tenant that nobody recorded."""


async def before_release(scope: Scope) -> Requeue | None:
    """None when no claim may own the data; else the server is given back, or waits. Raises ApiError."""
    near = scope.deps.claims.by_index(BY_SERVER, scope.name)
    found = [claim for one in near if (claim := await _read(scope, _ref(one))) is not None]
    tenant = scope.tenancy.claim_ref
    if tenant is not None and tenant.name and (claim := await _read(scope, tenant)) is not None:
        found.append(claim)
    return await _protect(scope, found)


async def before_switch_off(scope: Scope) -> Requeue | None:
    """As `before_erasure`, once before the power off of a running machine is requested. Raises ApiError, BMCError."""
    if scope.status.power_request is not None or (await scope.observe()).power_state is PowerState.OFF:
        return None
    return await before_erasure(scope)


async def before_erasure(scope: Scope) -> Requeue | None:
    """As `before_release`, among all claims in the API. Raises ApiError."""
    return await _protect(scope, (await scope.context.client.list(scope.context.kinds.claim)).items)


def _ref(claim: ServerClaim) -> TenantRef:
    meta = claim.metadata
    return TenantRef(namespace=meta.namespace, name=meta.name, uid=meta.uid)


async def _read(scope: Scope, ref: TenantRef) -> ServerClaim | None:
    try:
        return await scope.context.client.get(scope.context.kinds.claim, ref.name, ref.namespace)
    except NotFound:
        return None


async def _protect(scope: Scope, claims: Iterable[ServerClaim]) -> Requeue | None:
    existing = [
        one for one in claims if one.metadata.deletion_timestamp is None and not _has_another_server(scope, one)
    ]
    known = scope.tenancy
    for claim in existing:
        if known.uid and claim.metadata.uid == known.uid:
            return await _give_back(scope, claim)
    owners = [one for one in existing if _may_own(scope, one)] if tenancy.holds_data(known) else []
    return _wait(scope, owners) if owners else None


def _has_another_server(scope: Scope, claim: ServerClaim) -> bool:
    return claim.spec.server_ref is not None and claim.spec.server_ref.name != scope.name


def _may_own(scope: Scope, claim: ServerClaim) -> bool:
    """True for a claim that names this server, when the record does not show that it is another."""
    if claim.spec.server_ref is None:
        return False
    tenant = scope.tenancy.claim_ref
    if tenant is None or tenant.uid in _NO_UID:
        return claim.status.phase == "Bound" or conditions.is_true(claim.status.conditions, BOOTED)
    return (tenant.namespace, tenant.name) == (claim.metadata.namespace, claim.metadata.name)


async def _give_back(scope: Scope, claim: ServerClaim) -> Requeue:
    """Write the reference again that was removed from the claimed server."""
    ref = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
    text = f"the claim {ref['namespace']}/{ref['name']} exists, and its data is on this server"
    if scope.server.spec.server_claim_ref is None:
        await scope.require_latest()
        await scope.patch({"spec": {"serverClaimRef": ref}})
        scope.record_event(
            "ClaimReferenceRestored",
            f"{text}: spec.serverClaimRef was removed by another client and is written again. To release the server, "
            "delete the claim",
            warning=True,
        )
    known = tenancy.not_erased(scope.tenancy, scope.now)
    scope.set(tenancy=msgspec.structs.replace(known, claim_ref=_ref(claim)))
    if scope.status.state == State.RESERVED:
        return Requeue(0)
    return scope.transition(State.RESERVED, f"{text}; nothing is erased", warning=True)


def _wait(scope: Scope, owners: list[ServerClaim]) -> Requeue:
    names = ", ".join(sorted({f"{one.metadata.namespace}/{one.metadata.name}" for one in owners}))
    known = scope.tenancy.claim_ref
    former = f"{known.namespace}/{known.name} (UID {known.uid})" if known is not None else "unknown"
    return scope.wait(
        WaitFor.FORMER_TENANT,
        f"a manual decision: the last tenant is {former}, but spec.serverRef of {names} is this server, so "
        "the data may be that claim's. Nothing is erased. Delete that claim to have the server erased; or set "
        "spec.serverClaimRef of the Server to it and status.tenancy.claimRef.uid to its UID to keep its data",
    )


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.claim, ("get", "list"), "looks for a claim that may own the data before it is erased"),)
