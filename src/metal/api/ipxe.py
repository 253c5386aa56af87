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
    """Addresses that the machine was seen with."""
    image: str = ""
    """Deprecated: OCI reference of the image."""
    kernel_url: Annotated[str, Length(1), Required()] = msgspec.field(name="kernelURL", default="")
    """Where the kernel is served."""
    initrd_url: Annotated[str, Length(1), Required()] = msgspec.field(name="initrdURL", default="")
    """Where the initial RAM disk is served."""
    squashfs_url: str = msgspec.field(name="squashfsURL", default="")
    """Where the root file system is served, if the image has one."""
    ipxe_server_url: str = msgspec.field(name="ipxeServerURL", default="")
    """Deprecated: base address of the boot server."""
    ignition_secret_ref: LocalRef | None = None
    """Secret with the Ignition under key ignition."""
    ipxe_script_secret_ref: LocalRef | None = msgspec.field(name="ipxeScriptSecretRef", default=None)
    """Secret with a script of one's own under key ipxe-script."""


class IPXEBootConfigStatus(Model, frozen=True, kw_only=True):
    """Whether it can be served."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """Pending, Ready or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Why, in detail."""


class IPXEBootConfig(Model, frozen=True, kw_only=True):
    """What the boot server serves to one machine over iPXE."""

    metadata: ObjectMeta = ObjectMeta()
    spec: IPXEBootConfigSpec = IPXEBootConfigSpec()
    status: IPXEBootConfigStatus = IPXEBootConfigStatus()
