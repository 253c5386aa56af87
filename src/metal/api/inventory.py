"""What a server was made of when it was last discovered: enough to tell what has changed since."""

from datetime import datetime

from metal.api.markers import Quantity
from metal.api.meta import Model


class Part(Model, frozen=True, kw_only=True):
    """One thing that a person can pull out of the machine."""

    kind: str
    """Drive, NetworkInterface or Processor."""
    id: str
    """Serial number, MAC address or the BMC's id; where there is none, the name."""
    name: str = ""
    """Slot, bay or interface, as the BMC or the system calls it."""
    text: str = ""
    """Size and model, for people."""


class Inventory(Model, frozen=True, kw_only=True):
    """One complete discovery."""

    taken_at: datetime
    """When it was complete."""
    bios_version: str = ""
    """BIOS version."""
    total_system_memory: Quantity = ""
    """Memory as a Kubernetes quantity."""
    parts: tuple[Part, ...] = ()
    """Drives, network interfaces and processors."""
