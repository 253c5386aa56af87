"""Storage controllers of a server with their drives and volumes, as inventories report them."""

import msgspec

from metal.api.markers import Quantity
from metal.api.meta import Model


class StorageDrive(Model, frozen=True, kw_only=True):
    """StorageDrive is a drive of a storage controller."""

    name: str = ""
    """Name of the drive."""
    media_type: str = ""
    """Media type, such as HDD or SSD."""
    type: str = ""
    """Protocol, such as NVMe, SATA or SAS."""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    vendor: str = ""
    """Manufacturer of the drive."""
    model: str = ""
    """Model of the drive."""
    serial_number: str = ""
    """Serial number of the drive."""
    wwn: str = ""
    """World Wide Name, or its equivalent (EUI-64, NGUID). Empty when the BMC reports none."""
    state: str = ""
    """Redfish state, such as Enabled, Disabled or Absent."""


class StorageVolume(Model, frozen=True, kw_only=True):
    """A volume of a storage controller."""

    name: str = ""
    """Name of the volume."""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    state: str = ""
    """Redfish state, such as Enabled, Disabled or Absent."""
    raid_type: str = msgspec.field(name="raidType", default="")
    """Redfish RAID type, such as RAID1."""
    volume_usage: str = ""
    """Redfish usage of the volume, such as Data or SystemData."""


class Storage(Model, frozen=True, kw_only=True):
    """A storage controller."""

    name: str = ""
    """Name of the storage controller."""
    state: str = ""
    """Redfish state, such as Enabled, Disabled or Absent."""
    volumes: tuple[StorageVolume, ...] = ()
    """Volumes of the storage controller."""
    drives: tuple[StorageDrive, ...] = ()
    """Drives of the storage controller."""
