"""The claim that holds a Server, and what the Server's status records of it."""

import msgspec

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.kinds import Kinds
from metal.api.tenancy import ClaimBoot
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission
from metal.machine import tenancy


async def find_claim(scope: Scope) -> ServerClaim | None:
    """The claim that holds this server, or None when the API, not only the cache, confirms that it is gone.

    A new claim with the former one's name is another claim: the former tenant's data is erased first. A claim that
    names another server holds that one, not this.
    """
    ref = scope.server.spec.server_claim_ref
    if ref is None:
        return None
    claim = scope.deps.claims.get(Key(ref.name, ref.namespace))
    if claim is None or not _holds(claim, scope):
        claim = await read_claim(scope, ref.name, ref.namespace)
    return claim if claim is not None and _holds(claim, scope) else None


async def read_claim(scope: Scope, name: str, namespace: str) -> ServerClaim | None:
    """The claim as the API has it, because the cache may be behind; None when it does not exist. Raises ApiError."""
    try:
        return await scope.context.client.get(scope.context.kinds.claim, name, namespace)
    except NotFound:
        return None


def _holds(claim: ServerClaim, scope: Scope) -> bool:
    if claim.metadata.deletion_timestamp or scope.tenancy.uid not in ("", claim.metadata.uid):
        return False
    return claim.spec.server_ref is None or claim.spec.server_ref.name == scope.name


def claim_config(scope: Scope, claim: ServerClaim) -> ServerBootConfiguration | None:
    """The claim's own boot configuration for this server, if the server points at it already."""
    config = scope.boot_config()
    if config is None or config.metadata.namespace != claim.metadata.namespace:
        return None
    owned = any(ref.uid == claim.metadata.uid for ref in config.metadata.owner_references)
    return config if owned and config.spec.server_ref.name == scope.name else None


def assume_booted(scope: Scope) -> None:
    """A claimed server that lost its status: whether it booted is unknown, so it counts as booted."""
    unknown = tenancy.unknown(scope.tenancy, scope.now)
    scope.set(tenancy=msgspec.structs.replace(unknown, boot=ClaimBoot(booted_at=scope.now)))
    scope.condition(
        ConditionType.BOOT_ASSUMED,
        True,
        "StatusLost",
        "the status was lost; the claim counts as booted, so that no network boot overwrites its disk",
    )


async def refer_to(scope: Scope, claim: ServerClaim) -> bool:
    """Make spec.serverClaimRef refer to the claim; False when it does already. Raises Conflict and ApiError."""
    held, meta = scope.server.spec.server_claim_ref, claim.metadata
    if held is not None and (held.namespace, held.name) == (meta.namespace, meta.name):
        return False
    await scope.require_latest()
    if held is not None:  # a reference that names another claim is immutable
        await scope.patch({"spec": {"serverClaimRef": None}})
    await scope.patch({"spec": {"serverClaimRef": {"namespace": meta.namespace, "name": meta.name}}})
    return True


def record_tenant(scope: Scope, claim: ServerClaim) -> None:
    """Record the claim in the status before any of its data can be on the machine."""
    scope.set(tenancy=tenancy.begin(scope.tenancy, claim), boot_attempts=0)


async def record_kept(scope: Scope, claim: ServerClaim) -> None:
    """Record the boot of a former claim as this claim's, whose UID an administrator has written to keep the data.

    Also in the Lease of the machine. Raises ApiError.
    """
    scope.set(tenancy=tenancy.kept(scope.tenancy, claim, scope.now))
    scope.condition(
        ConditionType.BOOT_ASSUMED,
        True,
        "DataKept",
        "the data of a former claim was kept for this one, which counts as booted: no network boot overwrites it",
    )
    await scope.commit()
    await scope.require_in_charge(again=True)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.claim, ("get",), "confirms that a claim is gone before its server is cleaned up"),)
