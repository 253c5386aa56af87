"""Searches for existing claims that may own the data on a server, before the server is taken from them or erased.

`spec.serverClaimRef` can be lost: another client replaces the Server without it, or a backup is restored. Therefore the
reference alone never ends a tenancy. The record names the claim by namespace, name and UID:

- `before_release` runs before a claimed server goes to Cleanup, and while Cleanup switches it off. It reads the claim
  of the record from the API, and claims that name this server from the cache.
- `before_switch_off` runs before Cleanup requests the power off of a running machine, and `before_erasure` before the
  boot that erases the drives. They list all claims in the API.

`ownership` says which of them may own the data. One whose UID is recorded gets its server back: `spec.serverClaimRef`
is written again. While another one is LIKELY the owner, nothing is erased and the server waits for an administrator
(`FormerTenant`).
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
from metal.controllers.server.tenancy.ownership import Ownership, names_another, ownership, record_of
from metal.controllers.server.tenancy.tenancy import read_claim, refer_to
from metal.controllers.shared.indexes import BY_SERVER
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import key_of
from metal.kube.meta.permissions import Permission
from metal.machine import tenancy


async def before_release(scope: Scope) -> Requeue | None:
    """None when no claim may own the data; else the server is given back, or waits. Raises ApiError."""
    near, tenant = scope.deps.claims.by_index(BY_SERVER, scope.name), scope.tenancy.claim_ref
    names = {(one.metadata.name, one.metadata.namespace): None for one in near}
    if tenant is not None and tenant.name:
        names[tenant.name, tenant.namespace] = None
    found = [claim for name in names if (claim := await read_claim(scope, *name)) is not None]
    return await _protect(scope, found)


async def before_switch_off(scope: Scope) -> Requeue | None:
    """As `before_erasure`, once before the power off of a running machine is requested. Raises ApiError, BMCError."""
    if scope.status.power_request is not None or (await scope.observe()).power_state is PowerState.OFF:
        return None
    return await before_erasure(scope)


async def before_erasure(scope: Scope) -> Requeue | None:
    """As `before_release`, among all claims in the API. Raises ApiError."""
    return await _protect(scope, (await scope.context.client.list(scope.context.kinds.claim)).items)


async def are_there(scope: Scope) -> bool:
    """Whether a claim in the API may own the data; nothing is changed. Raises ApiError."""
    owners = _owners(scope, (await scope.context.client.list(scope.context.kinds.claim)).items)
    return bool(owners.get(Ownership.PROVEN) or owners.get(Ownership.LIKELY))


def _ref(claim: ServerClaim) -> TenantRef:
    meta = claim.metadata
    return TenantRef(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _owners(scope: Scope, claims: Iterable[ServerClaim]) -> dict[Ownership, list[ServerClaim]]:
    known = record_of(scope.name, scope.tenancy.claim_ref)
    owners: dict[Ownership, list[ServerClaim]] = {}
    for claim in claims:
        if not names_another(claim, scope.name):
            owners.setdefault(ownership(claim, known), []).append(claim)
    return owners


async def _protect(scope: Scope, claims: Iterable[ServerClaim]) -> Requeue | None:
    owners = _owners(scope, claims)
    if proven := owners.get(Ownership.PROVEN):
        return await _give_back(scope, proven[0])
    likely = owners.get(Ownership.LIKELY)
    return _wait(scope, likely) if likely and tenancy.holds_data(scope.tenancy) else None


async def _give_back(scope: Scope, claim: ServerClaim) -> Requeue:
    """Write the reference of the claimed server again that was removed, or that names another claim."""
    text = f"the claim {key_of(claim)} exists, and its data is on this server"
    if await refer_to(scope, claim):
        scope.record_event(
            "ClaimReferenceRestored",
            f"{text}: spec.serverClaimRef was removed or changed by another client and is written again. To release "
            "the server, delete the claim",
            warning=True,
        )
    known = tenancy.not_erased(scope.tenancy, scope.now)
    scope.set(tenancy=msgspec.structs.replace(known, claim_ref=_ref(claim)))
    if scope.status.state == State.RESERVED:
        return Requeue(0)
    return scope.transition(State.RESERVED, f"{text}; nothing is erased", warning=True)


def _wait(scope: Scope, owners: list[ServerClaim]) -> Requeue:
    names = ", ".join(sorted({str(key_of(one)) for one in owners}))
    known = scope.tenancy.claim_ref
    former = f"{known.namespace}/{known.name} (UID {known.uid})" if known is not None else "unknown"
    return scope.wait(
        WaitFor.FORMER_TENANT,
        f"a manual decision: the last tenant is {former}, but {names} may own the data: it names this server in "
        "spec.serverRef, or it was restored without that. Nothing is erased. Delete that claim to have the server "
        "erased; or set spec.serverClaimRef of the Server to it and status.tenancy.claimRef.uid to its UID to keep "
        "its data",
    )


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.claim, ("get", "list"), "looks for a claim that may own the data before it is erased"),)
