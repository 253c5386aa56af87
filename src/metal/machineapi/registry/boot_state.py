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
    type="BootStateReceived",
    status="True",
    reason="BootStateReceived",
    message="the machine reported that it has booted",
)


async def record(client: Client, kinds: Kinds, window: BootWindow, now: datetime) -> None:
    """Set the condition on the window's boot configuration; no effect when it does not exist. Raises ApiError."""
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
    """The permissions of this module."""
    return (
        Permission(kinds.boot_config, ("get",), "reads the boot configuration that a machine has booted"),
        Permission(kinds.boot_config, ("patch",), "sets the condition BootStateReceived", "status"),
    )
