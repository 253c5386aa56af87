"""The ServerBootConfiguration of a claim: follows the claim until its first boot, and stays as it was afterwards."""

from typing import Any

from metal.api.claim import ServerBootConfiguration
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.controllers.claim.scope import ClaimScope
from metal.kube.errors import NotFound
from metal.kube.objects import key_of
from metal.kube.ownership import controller_of, controller_reference
from metal.kube.rbac import APPLY, Access, blocks, disowns

MANAGER = "metal-operator"


async def follow(scope: ClaimScope, server: Server) -> None:
    """Write the boot configuration where it differs from the claim, and point the server at it."""
    claim = scope.claim
    config = scope.deps.configs.get(key_of(claim))
    if config is not None and not _is_ours(scope, config):
        if not _is_a_claims(scope, config):
            _say_taken(scope, config)
            return
        await _drop(scope, config)
        config = None
    if _has_booted(scope, server):
        _say_what_waits(scope, server, config)
        return
    desired = _desired(scope, server)
    if config is None or _differs(config, desired):
        applied = await scope.context.client.apply(scope.context.kinds.boot_config, desired, manager=MANAGER)
        scope.deps.configs.observe(applied)
    await _point(scope, server)


def _is_ours(scope: ClaimScope, config: ServerBootConfiguration) -> bool:
    return any(ref.uid == scope.claim.metadata.uid for ref in config.metadata.owner_references)


def _is_a_claims(scope: ClaimScope, config: ServerBootConfiguration) -> bool:
    """Only what a former claim left, or nobody owns, may be replaced; a maintenance may be booting its own."""
    owner = controller_of(config)
    return owner is None or owner.kind == scope.context.kinds.claim.kind


def _say_taken(scope: ClaimScope, config: ServerBootConfiguration) -> None:
    owner = controller_of(config)
    what = f"{owner.kind} {owner.name}" if owner is not None else "something else"
    name = f"{config.metadata.namespace}/{config.metadata.name}"
    message = f"the ServerBootConfiguration {name} belongs to {what}: remove that, or make the claim under another name"
    scope.say("Current", False, "BootConfigurationNameTaken", message)


async def _drop(scope: ClaimScope, config: ServerBootConfiguration) -> None:
    """A former claim of this name left it; the garbage collector may not have come by yet."""
    meta = config.metadata
    try:
        await scope.context.client.delete(scope.context.kinds.boot_config, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        return


def _has_booted(scope: ClaimScope, server: Server) -> bool:
    boot = server.status.claim_boot
    return boot is not None and boot.booted_at is not None and boot.claim_uid == scope.claim.metadata.uid


def _say_what_waits(scope: ClaimScope, server: Server, config: ServerBootConfiguration | None) -> None:
    spec, boot = scope.claim.spec, server.status.claim_boot
    booted = boot.image if boot is not None else ""
    same_image = not booted or booted == spec.image
    if same_image and (config is None or config.spec.ignition_secret_ref == spec.ignition_secret_ref):
        scope.say("Current", True, "Current", "the server booted what the claim describes")
        return
    scope.say(
        "Current", False, "ChangedAfterBoot",
        "image or Ignition changed after the first boot; the running system is left alone. A new claim boots them",
    )  # fmt: skip


def _desired(scope: ClaimScope, server: Server) -> dict[str, Any]:
    claim, kinds = scope.claim, scope.context.kinds
    spec: dict[str, Any] = {"serverRef": {"name": server.metadata.name}}
    if claim.spec.image:
        spec["image"] = claim.spec.image
    if claim.spec.ignition_secret_ref is not None:
        spec["ignitionSecretRef"] = {"name": claim.spec.ignition_secret_ref.name}
    owner = controller_reference(claim, kinds.claim)
    metadata = {"name": claim.metadata.name, "namespace": claim.metadata.namespace, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": spec}


def _differs(config: ServerBootConfiguration, desired: dict[str, Any]) -> bool:
    spec = desired["spec"]
    secret = config.spec.ignition_secret_ref
    return bool(
        config.spec.server_ref.name != spec["serverRef"]["name"]
        or config.spec.image != spec.get("image", "")
        or (secret.name if secret else None) != spec.get("ignitionSecretRef", {}).get("name")
    )


async def _point(scope: ClaimScope, server: Server) -> None:
    claim, ref = scope.claim, server.spec.boot_configuration_ref
    wanted = (claim.metadata.namespace, claim.metadata.name)
    if ref is not None and (ref.namespace, ref.name) == wanted:
        return
    body = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "spec": {"bootConfigurationRef": {"namespace": wanted[0], "name": wanted[1]}},
    }
    updated = await scope.context.client.patch(scope.context.kinds.server, server.metadata.name, body)
    scope.deps.servers.observe(updated)


def access(kinds: Kinds) -> tuple[Access, ...]:
    """What this module does with the API."""
    return (
        Access(kinds.boot_config, (*APPLY, "delete"), "asks for what a claim boots; removes what a former one left"),
        Access(kinds.server, ("patch",), "points the server at the claim's boot configuration"),
        blocks(kinds.claim),
        disowns(kinds.boot_config),
    )
