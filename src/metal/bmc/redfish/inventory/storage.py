"""Storage controllers with their drives and volumes; SimpleStorage where a BMC has no Storage."""

from metal.bmc.inventory import Drive, Storage
from metal.bmc.redfish import convert
from metal.bmc.redfish.inventory.reader import Reader
from metal.redfish import resources as schema


async def read_storage(reader: Reader, system: schema.System) -> tuple[Storage, ...]:
    """From Storage; from SimpleStorage when that is missing, empty or unreadable."""
    before = len(reader.problems)
    found = await reader.all(system.storage, schema.Storage, "storage controllers")
    if found or not system.simple_storage.odata_id:
        return tuple([await _controller(reader, storage) for storage in found])
    simple = await reader.all(system.simple_storage, schema.SimpleStorage, "simple storage")
    if simple:
        del reader.problems[before:]
    return tuple(_simple(storage) for storage in simple)


async def _controller(reader: Reader, storage: schema.Storage) -> Storage:
    name = storage.name or storage.id
    drives = await reader.linked(storage.drives, schema.Drive, f"drives of {name}")
    volumes = await reader.all(storage.volumes, schema.Volume, f"volumes of {name}")
    return Storage(
        name=name,
        state=storage.status.state,
        drives=tuple(convert.drive(disk) for disk in drives if _present(disk)),
        volumes=tuple(convert.volume(part, _members(part, drives)) for part in volumes),
    )


def _members(volume: schema.Volume, drives: list[schema.Drive]) -> tuple[Drive, ...]:
    """Its drives, or none where one of them is not known: an incomplete list would be misleading."""
    known = {disk.odata_id.rstrip("/"): disk for disk in drives if disk.odata_id}
    found = [known.get(link.odata_id.rstrip("/")) for link in volume.links.drives]
    return tuple(convert.drive(disk) for disk in found if disk is not None) if all(found) else ()


def _simple(storage: schema.SimpleStorage) -> Storage:
    drives = tuple(convert.drive(disk) for disk in storage.devices if _present(disk))
    return Storage(name=storage.name or storage.id, state=storage.status.state, drives=drives)


def _present(disk: schema.Drive) -> bool:
    return disk.status.state != "Absent" or disk.capacity_bytes > 0
