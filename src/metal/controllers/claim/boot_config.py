"""The ServerBootConfiguration of a claim: updated until the claim has booted, and again when a new boot is
requested."""

from typing import Any

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.claim_boot import booted_generation, has_booted, requests_boot
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.api.tenancy import ClaimBoot
from metal.controllers.claim.scope import ClaimScope
from metal.controllers.shared import boot_config as shared
from metal.kube.meta.objects import key_of
from metal.kube.meta.ownership import controller_of, controller_reference
from metal.kube.meta.permissions import APPLY, Permission, blocks, disowns
from metal.machine import tenancy


async def reconcile(scope: ClaimScope, server: Server) -> None:
    """Write the boot configuration if it differs from the claim, and reference it in the server."""
    claim = scope.claim
    config = scope.deps.configs.get(key_of(claim))
    if config is not None and not _is_owned(scope, config):
        if not _is_replaceable(scope, config):
            _report_name_taken(scope, config)
            return
        await shared.drop(scope.context, config)  # left by a former claim of this name, and not garbage-collected yet
        config = None
    booted = tenancy.of(server).boot
    if has_booted(booted, claim) and not requests_boot(claim, booted):
        _report_differences(scope, server, config)
        return
    desired = _desired(scope, server)
    if config is None or _differs(config, desired):
        await shared.apply(scope.context, scope.deps.configs, desired)
    current = server.spec.boot_configuration_ref
    await shared.set_reference(scope.context, scope.deps.servers, server, shared.CLAIM_REF, current, key_of(claim))


def _is_owned(scope: ClaimScope, config: ServerBootConfiguration) -> bool:
    return any(ref.uid == scope.claim.metadata.uid for ref in config.metadata.owner_references)


def _is_replaceable(scope: ClaimScope, config: ServerBootConfiguration) -> bool:
    """Whether it has no owner or is that of a former claim; a maintenance may be booting its own."""
    owner = controller_of(config)
    return owner is None or owner.kind == scope.context.kinds.claim.kind


def _report_name_taken(scope: ClaimScope, config: ServerBootConfiguration) -> None:
    owner = controller_of(config)
    what = f"{owner.kind} {owner.name}" if owner is not None else "another owner"
    name = str(key_of(config))
    message = f"ServerBootConfiguration {name} is owned by {what}: delete it, or create the claim with another name"
    scope.report("Current", False, "BootConfigurationNameTaken", message)


def _report_differences(scope: ClaimScope, server: Server, config: ServerBootConfiguration | None) -> None:
    claim, boot = scope.claim, tenancy.of(server).boot
    differences = _differences(claim, boot or ClaimBoot(), config)
    if not differences:
        scope.report("Current", True, "Current", "the server booted what the claim describes")
        return
    number = max(booted_generation(claim, boot), claim.spec.boot_generation) + 1
    scope.report(
        "Current", False, "ChangedAfterBoot",
        f"{' and '.join(differences)}; the running system is not changed. To boot this over the network "
        f"once, set spec.bootGeneration to {number}",
    )  # fmt: skip


def _differences(claim: ServerClaim, boot: ClaimBoot, config: ServerBootConfiguration | None) -> list[str]:
    """The differences between the claim and what the server booted, as far as that is recorded."""
    found, ref = [], claim.spec.ignition_secret_ref
    if boot.image and boot.image != claim.spec.image:
        found.append(f"the claim has image {claim.spec.image}, the server booted {boot.image}")
    wanted, ignition = ref.name if ref is not None else "", boot.ignition_secret
    if ignition is None and config is not None:
        ignition = config.spec.ignition_secret_ref.name if config.spec.ignition_secret_ref is not None else ""
    if ignition is not None and ignition != wanted:
        found.append(f"the claim has {_secret(wanted)}, the server booted {_secret(ignition)}")
    return found


def _secret(name: str) -> str:
    return f"the Ignition of Secret {name}" if name else "no Ignition"


def _desired(scope: ClaimScope, server: Server) -> dict[str, Any]:
    claim, kinds = scope.claim, scope.context.kinds
    spec: dict[str, Any] = {"serverRef": {"name": server.metadata.name}}
    if claim.spec.image:
        spec["image"] = claim.spec.image
    if claim.spec.ignition_secret_ref is not None:
        spec["ignitionSecretRef"] = {"name": claim.spec.ignition_secret_ref.name}
    return shared.manifest(key_of(claim), controller_reference(claim, kinds.claim), spec)


def _differs(config: ServerBootConfiguration, desired: dict[str, Any]) -> bool:
    spec = desired["spec"]
    secret = config.spec.ignition_secret_ref
    return bool(
        config.spec.server_ref.name != spec["serverRef"]["name"]
        or config.spec.image != spec.get("image", "")
        or (secret.name if secret else None) != spec.get("ignitionSecretRef", {}).get("name")
    )


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (
        Permission(
            kinds.boot_config, (*APPLY, "delete"), "asks for what a claim boots; removes what a former one left"
        ),
        Permission(kinds.server, ("patch",), "points the server at the claim's boot configuration"),
        blocks(kinds.claim),
        disowns(kinds.boot_config),
    )
