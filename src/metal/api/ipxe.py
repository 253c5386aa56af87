"""IPXEBootConfig: what the boot server serves to one machine over iPXE (group boot.ironcore.dev)."""

from datetime import datetime
from typing import Annotated

import msgspec

from metal.api.common import LocalRef
from metal.api.markers import Choice, Length, Required
from metal.api.meta import Conditions, Model, ObjectMeta


class IPXEBootConfigSpec(Model, frozen=True, kw_only=True):
    """What the machine boots."""

    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """SMBIOS UUID of the machine."""
    system_ips: tuple[str, ...] = msgspec.field(name="systemIPs", default=())
    """IP addresses of the machine."""
    image: str = ""
    """Deprecated. OCI reference of the image."""
    kernel_url: Annotated[str, Length(1), Required()] = msgspec.field(name="kernelURL", default="")
    """URL of the kernel."""
    initrd_url: Annotated[str, Length(1), Required()] = msgspec.field(name="initrdURL", default="")
    """URL of the initial RAM disk."""
    squashfs_url: str = msgspec.field(name="squashfsURL", default="")
    """URL of the root file system, if the image has one."""
    ipxe_server_url: str = msgspec.field(name="ipxeServerURL", default="")
    """Deprecated. Base URL of the boot server."""
    ignition_secret_ref: LocalRef | None = None
    """Secret whose key ignition holds the Ignition configuration."""
    ipxe_script_secret_ref: LocalRef | None = msgspec.field(name="ipxeScriptSecretRef", default=None)
    """Secret whose key ipxe-script holds a script that replaces the generated one."""


class IPXEBootConfigStatus(Model, frozen=True, kw_only=True):
    """Observed state of an IPXEBootConfig."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """State of the configuration: Pending, Ready (it can be served) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the configuration."""


class IPXEBootConfig(Model, frozen=True, kw_only=True):
    """Configures what the boot server serves to one machine over iPXE."""

    metadata: ObjectMeta = ObjectMeta()
    spec: IPXEBootConfigSpec = IPXEBootConfigSpec()
    status: IPXEBootConfigStatus = IPXEBootConfigStatus()
