"""The condition BootStateReceived of a boot configuration."""

from datetime import datetime

import msgspec

from metal.api.boot_window import BootWindow
from metal.api.kinds import Kinds
from metal.api.meta import Condition
from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.meta.conditions import set_condition
from metal.kube.meta.permissions import Permission

_RECEIVED = Condition(
    type="BootStateReceived", status="True", reason="BootStateReceived", message="the machine says that it has booted"
)


async def record(client: Client, kinds: Kinds, window: BootWindow, now: datetime) -> None:
    """Say on the window's boot configuration that the machine has booted; nothing when it is gone. Raises ApiError."""
    ref = window.config_ref
    try:
        config = await client.get(kinds.boot_config, ref.name, ref.namespace)
    except NotFound:
        return
    conditions = set_condition(config.status.conditions, _RECEIVED, now)
    if conditions is config.status.conditions or config.metadata.uid != window.config_uid:
        return
    body = {
        "metadata": {"resourceVersion": config.metadata.resource_version},
        "status": {"conditions": msgspec.to_builtins(conditions)},
    }
    await client.patch_status(kinds.boot_config, ref.name, body, ref.namespace)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What this module does with the API."""
    return (
        Permission(kinds.boot_config, ("get",), "looks at what a machine says it has booted"),
        Permission(kinds.boot_config, ("patch",), "notes that a machine has booted", "status"),
    )
