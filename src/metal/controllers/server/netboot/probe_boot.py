"""The boot configuration of the probe, in the manager's namespace, for discovery and for sanitization."""

from typing import Any

from metal.api.claim import ServerBootConfiguration
from metal.api.core import SECRET
from metal.api.kinds import Kinds
from metal.api.names import FIELD_MANAGER
from metal.controllers.server.netboot import ignition
from metal.controllers.server.scope import Scope
from metal.controllers.shared import boot_config
from metal.kube.client.withheld import withheld
from metal.kube.meta.objects import Key
from metal.kube.meta.ownership import controller_reference
from metal.kube.meta.permissions import APPLY, Permission, Where, blocks, disowns

_DIGEST = "ignition-digest"
"""Annotation of the configuration: which Ignition it boots."""
_TYPE, _INTERNAL = "type", "Internal"
"""Annotation of the configuration: it belongs to the Server, not to a claim."""


async def write(scope: Scope, text: str) -> None:
    """Write the configuration and its Ignition, and point the Server at it. Raises ApiError."""
    kinds = scope.context.kinds
    await _write_ignition(scope, text, [])  # first, so that the boot operator never finds it missing
    config = await boot_config.apply(scope.context, scope.deps.configs, _config(scope, text))
    await _write_ignition(scope, text, [controller_reference(config, kinds.boot_config)])
    change = boot_config.reference(boot_config.CLAIM_REF, scope.server.spec.boot_configuration_ref, _key(scope))
    if change:
        await scope.patch(change)


def _key(scope: Scope) -> Key:
    """The configuration, its Secret and the Server have the same name."""
    return Key(scope.name, scope.settings.namespace)


def find(scope: Scope) -> ServerBootConfiguration | None:
    """The configuration, when the Server points at it."""
    config = scope.boot_config()
    return config if config is not None and _is_internal(scope, config) else None


def _is_internal(scope: Scope, config: ServerBootConfiguration) -> bool:
    """True for a configuration of the operator, false for a claim's."""
    internal = config.metadata.annotations.get(scope.context.kinds.key(_TYPE)) == _INTERNAL
    return internal and config.metadata.namespace == scope.settings.namespace


def is_current(scope: Scope, config: ServerBootConfiguration, text: str) -> bool:
    """True when the configuration boots the configured probe image with this Ignition."""
    booted = config.metadata.annotations.get(scope.context.kinds.key(_DIGEST))
    return config.spec.image == scope.settings.probe_image and booted == ignition.digest(text)


async def drop(scope: Scope) -> None:
    """Delete the configuration, if it still exists. Raises ApiError."""
    config = find(scope)
    if config is not None and not await boot_config.drop(scope.context, config):
        scope.record_event("BootConfigurationGone", "the probe's boot configuration was deleted by another client")


async def _write_ignition(scope: Scope, text: str, owners: list[dict[str, Any]]) -> None:
    secret = {
        "metadata": {"name": scope.name, "namespace": scope.settings.namespace, "ownerReferences": owners},
        "type": "Opaque",
        # The Go operator wrote Butane under the same name, with its format.
        "data": {"ignition": ignition.base64_text(text), "format": ignition.base64_text("ignition")},
    }
    with withheld():
        await scope.context.client.apply(SECRET, secret, manager=FIELD_MANAGER)


def _config(scope: Scope, text: str) -> dict[str, Any]:
    kinds, settings = scope.context.kinds, scope.settings
    annotations = {
        kinds.key(_TYPE): _INTERNAL,
        kinds.key("is-default-os-image"): "true",
        kinds.key(_DIGEST): ignition.digest(text),
    }
    spec = {
        "serverRef": {"name": scope.name},
        "image": settings.probe_image,
        "ignitionSecretRef": {"name": scope.name},
    }
    owner = controller_reference(scope.server, kinds.server)
    return boot_config.manifest(_key(scope), owner, spec, annotations)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module. The Secret has the Server's name, which no rule can know in advance."""
    home = Where.HOME
    return (
        Permission(kinds.boot_config, (*APPLY, "delete"), "requests boots of the probe, and removes these requests",
               where=home),
        disowns(kinds.boot_config, home),
        Permission(SECRET, APPLY, "writes the Ignition of the probe's boot", where=home),
        disowns(SECRET, home),
        blocks(kinds.boot_config, home),
        blocks(kinds.server),
    )  # fmt: skip
