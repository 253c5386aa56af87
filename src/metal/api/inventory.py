"""The hardware of a server as the last Discovery found it. The next Discovery is compared with it."""

from datetime import datetime

from metal.api.markers import Quantity
from metal.api.meta import Model


class Part(Model, frozen=True, kw_only=True):
    """A replaceable part of the machine."""

    kind: str
    """Kind of the part: Drive, NetworkInterface or Processor."""
    id: str
    """Serial number, MAC address, or identifier from the BMC; the name of the part if it has none of these."""
    name: str = ""
    """Slot, bay or interface, as the BMC or the operating system names it."""
    text: str = ""
    """Size and model. For display only."""


class Inventory(Model, frozen=True, kw_only=True):
    """Result of a complete Discovery."""

    taken_at: datetime
    """Time at which the Discovery was complete."""
    bios_version: str = ""
    """BIOS version."""
    total_system_memory: Quantity = ""
    """Size of the memory, as a Kubernetes quantity."""
    parts: tuple[Part, ...] = ()
    """Drives, network interfaces and processors."""
