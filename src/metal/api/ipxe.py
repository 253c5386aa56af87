"""IPXEBootConfig: what the boot server serves to one machine over iPXE (group boot.ironcore.dev)."""

from datetime import datetime
from typing import Annotated

import msgspec

from metal.api.common import LocalRef
from metal.api.markers import Choice, Length, Required
from metal.api.meta import Conditions, Model, ObjectMeta


class IPXEBootConfigSpec(Model, frozen=True, kw_only=True):
    """Kernel, initial RAM disk and Ignition that the machine boots."""

    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """SMBIOS UUID of the machine."""
    system_ips: tuple[str, ...] = msgspec.field(name="systemIPs", default=())
    """IP addresses of the machine, for information. The boot server does not read them."""
    image: str = ""
    """OCI reference of the image, as in the ServerBootConfiguration. The boot server serves the URLs below."""
    kernel_url: Annotated[str, Length(1), Required()] = msgspec.field(name="kernelURL", default="")
    """URL of the kernel on the boot server. It must have the form that the controller writes."""
    initrd_url: Annotated[str, Length(1), Required()] = msgspec.field(name="initrdURL", default="")
    """URL of the initial RAM disk on the boot server. It must have the form that the controller writes."""
    squashfs_url: str = msgspec.field(name="squashfsURL", default="")
    """URL of the root file system (squashfs) on the boot server. Empty if the image has none."""
    ipxe_server_url: str = msgspec.field(name="ipxeServerURL", default="")
    """Deprecated. No controller reads or sets it."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the same namespace. Its key ignition holds the Ignition configuration in JSON."""
    ipxe_script_secret_ref: LocalRef | None = msgspec.field(name="ipxeScriptSecretRef", default=None)
    """Accepted for compatibility. The boot server does not read it: scripts are always generated."""


class IPXEBootConfigStatus(Model, frozen=True, kw_only=True):
    """Observed state of an IPXEBootConfig."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """State of the configuration: Pending, Ready (the boot server can serve it) or Error. It follows the state of the
    ServerBootConfiguration."""
    since: datetime | None = None
    """Not set by the controller. See status.since of the ServerBootConfiguration."""
    waiting_for: str = ""
    """Not set by the controller. See status.waitingFor of the ServerBootConfiguration."""
    observed_generation: int = 0
    """Not set by the controller. See status.observedGeneration of the ServerBootConfiguration."""
    conditions: Conditions = ()
    """Not set by the controller. The ServerBootConfiguration has the conditions."""


class IPXEBootConfig(Model, frozen=True, kw_only=True):
    """IPXEBootConfig is what the boot server serves to one machine over iPXE. The controller creates it for a
    ServerBootConfiguration; the boot server ignores objects that have no such owner."""

    metadata: ObjectMeta = ObjectMeta()
    spec: IPXEBootConfigSpec = IPXEBootConfigSpec()
    status: IPXEBootConfigStatus = IPXEBootConfigStatus()
