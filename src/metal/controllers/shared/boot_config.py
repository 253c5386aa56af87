"""Writes the ServerBootConfigurations that controllers own, references them in a Server, and deletes them.

Three controllers boot something on a server: a claim the tenant's image, a maintenance its own, and the Server the
probe. Each owns one configuration with a name that follows from the owner, and decides when it is written and with
which content. This module writes it: `apply` by server-side apply, `set_reference` by a patch of the Server that its
resourceVersion guards, `drop` only if it is still the same object, by UID.
"""

from collections.abc import Mapping
from typing import Any

from metal.api.claim import ServerBootConfiguration
from metal.api.common import ObjectRef
from metal.api.names import FIELD_MANAGER
from metal.api.server import Server
from metal.controllers.shared.scope import Context
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Key

CLAIM_REF = "bootConfigurationRef"
"""Field of a Server's spec: what a claim boots, or the probe."""
MAINTENANCE_REF = "maintenanceBootConfigurationRef"
"""Field of a Server's spec: what a maintenance boots."""


def manifest(
    key: Key, owner: Mapping[str, Any], spec: Mapping[str, Any], annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The configuration to apply; `owner` is its controller's owner reference."""
    metadata: dict[str, Any] = {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner]}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


async def apply(
    context: Context, configs: Informer[ServerBootConfiguration], desired: dict[str, Any]
) -> ServerBootConfiguration:
    """Write the configuration, and add it to the cache. Raises ApiError."""
    config = await context.client.apply(context.kinds.boot_config, desired, manager=FIELD_MANAGER)
    configs.observe(config)
    return config


def reference(field: str, current: ObjectRef | None, key: Key) -> dict[str, Any]:
    """The patch of a Server that sets `field` to the configuration; empty when it is set already."""
    if current is not None and (current.namespace, current.name) == (key.namespace, key.name):
        return {}
    return {"spec": {field: {"namespace": key.namespace, "name": key.name}}}


async def set_reference(
    context: Context, servers: Informer[Server], server: Server, field: str, current: ObjectRef | None, key: Key
) -> None:
    """Set `field` of a Server to the configuration. Raises ApiError; Conflict when the Server changed in between."""
    change = reference(field, current, key)
    if not change:
        return
    body = {"metadata": {"resourceVersion": server.metadata.resource_version}, **change}
    servers.observe(await context.client.patch(context.kinds.server, server.metadata.name, body))


async def drop(context: Context, config: ServerBootConfiguration) -> bool:
    """Delete the configuration; False if it did not exist. Raises ApiError."""
    meta = config.metadata
    try:
        await context.client.delete(context.kinds.boot_config, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        return False
    return True
