"""The boot configuration that a Server has for itself, in the manager's namespace: the probe, to look or to erase."""

from typing import Any

from metal.api.claim import ServerBootConfiguration
from metal.api.core import SECRET
from metal.api.kinds import Kinds
from metal.controllers.server.netboot import ignition
from metal.controllers.server.scope import Scope
from metal.kube.client.errors import NotFound
from metal.kube.meta.ownership import controller_reference
from metal.kube.meta.permissions import APPLY, Permission, Where, blocks, disowns

MANAGER = "metal-operator"
_DIGEST = "ignition-digest"


async def ask(scope: Scope, text: str) -> None:
    """Write the configuration and its Ignition, and point the Server at it. Raises ApiError."""
    deps, context, settings = scope.deps, scope.context, scope.settings
    await _write_ignition(scope, text, [])  # first, so that the boot operator never sees it missing
    config = await context.client.apply(context.kinds.boot_config, _config(scope, text), manager=MANAGER)
    deps.configs.observe(config)
    await _write_ignition(scope, text, [controller_reference(config, context.kinds.boot_config)])
    ref = {"namespace": settings.namespace, "name": scope.name}
    current = scope.server.spec.boot_configuration_ref
    if current is None or (current.namespace, current.name) != (settings.namespace, scope.name):
        await scope.patch({"spec": {"bootConfigurationRef": ref}})


def find(scope: Scope) -> ServerBootConfiguration | None:
    """The configuration, when the Server points at it."""
    config = scope.boot_config()
    return config if config is not None and is_internal(scope, config) else None


def is_internal(scope: Scope, config: ServerBootConfiguration) -> bool:
    """True for a configuration of ours, false for a claim's."""
    internal = config.metadata.annotations.get(scope.context.kinds.key("type")) == "Internal"
    return internal and config.metadata.namespace == scope.settings.namespace


def is_current(scope: Scope, config: ServerBootConfiguration, text: str) -> bool:
    """True when the configuration boots the present probe with this Ignition."""
    said = config.metadata.annotations.get(scope.context.kinds.key(_DIGEST))
    return config.spec.image == scope.settings.probe_image and said == ignition.digest(text)


async def drop(scope: Scope) -> None:
    """Delete the configuration; that it is gone already is no trouble. Raises ApiError."""
    config = find(scope)
    if config is None:
        return
    kinds, meta = scope.context.kinds, config.metadata
    try:
        await scope.context.client.delete(kinds.boot_config, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        scope.record_event("BootConfigurationGone", "the probe's boot configuration was deleted by somebody else")


async def _write_ignition(scope: Scope, text: str, owners: list[dict[str, Any]]) -> None:
    secret = {
        "metadata": {"name": scope.name, "namespace": scope.settings.namespace, "ownerReferences": owners},
        "type": "Opaque",
        # The Go operator wrote Butane under the same name, and said so in format.
        "data": {"ignition": ignition.base64_text(text), "format": ignition.base64_text("ignition")},
    }
    await scope.context.client.apply(SECRET, secret, manager=MANAGER)


def _config(scope: Scope, text: str) -> dict[str, object]:
    kinds, settings = scope.context.kinds, scope.settings
    owner = controller_reference(scope.server, kinds.server)
    return {
        "metadata": {
            "name": scope.name,
            "namespace": settings.namespace,
            "ownerReferences": [owner],
            "annotations": {
                kinds.key("type"): "Internal",
                kinds.key("is-default-os-image"): "true",
                kinds.key(_DIGEST): ignition.digest(text),
            },
        },
        "spec": {
            "serverRef": {"name": scope.name},
            "image": settings.probe_image,
            "ignitionSecretRef": {"name": scope.name},
        },
    }


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What this module does with the API. The Secret has the Server's name, which no rule can know before."""
    home = Where.HOME
    return (
        Permission(kinds.boot_config, (*APPLY, "delete"), "asks for the probe's boot, and removes it once it is over",
               where=home),
        disowns(kinds.boot_config, home),
        Permission(SECRET, APPLY, "writes the Ignition of the probe's boot", where=home),
        disowns(SECRET, home),
        blocks(kinds.boot_config, home),
        blocks(kinds.server),
    )  # fmt: skip
