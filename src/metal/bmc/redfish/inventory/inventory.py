"""Out-of-band inventory over Redfish, best effort and bounded in time.

The parts are read concurrently, within the client's limits. What cannot be read becomes a sentence in `problems`, and
the rest is kept; only a failure of the connection, the login or the system itself fails the whole.
"""

import asyncio
from dataclasses import dataclass, replace

from metal.bmc.inventory import Inventory, MemoryModule, NetworkInterface, Processor, Storage
from metal.bmc.redfish import convert
from metal.bmc.redfish.capability import Capability, system_quirks
from metal.bmc.redfish.inventory.network import read_network
from metal.bmc.redfish.inventory.reader import Reader
from metal.bmc.redfish.inventory.storage import read_storage
from metal.redfish import resources as schema

DEADLINE = 120.0
"""Seconds for all parts together; a machine with a hundred parts behind a slow BMC takes about one minute."""
_EMPTY_SLOT = "Absent"


@dataclass
class _Parts:
    processors: tuple[Processor, ...] = ()
    memory: tuple[MemoryModule, ...] = ()
    storages: tuple[Storage, ...] = ()
    network: tuple[NetworkInterface, ...] = ()


class RedfishInventory(Capability):
    """The parts of one system."""

    async def inventory(self, uri: str) -> Inventory:
        """Fails only with the system itself or the connection; other failures are listed in `problems`."""
        _, system = await self._read_system(uri)
        reader = Reader(self.client, expand=not system_quirks(system).no_expand)
        parts = _Parts()
        await _in_time(reader, parts, system)
        info = convert.system_info(uri, system)
        if not info.total_memory_bytes:
            info = replace(info, total_memory_bytes=sum(module.size_bytes for module in parts.memory))
        return Inventory(
            system=info,
            processors=parts.processors,
            memory=parts.memory,
            storages=parts.storages,
            network_interfaces=parts.network,
            problems=tuple(reader.problems),
        )


async def _in_time(reader: Reader, parts: _Parts, system: schema.System) -> None:
    try:
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            for read in (_processors, _memory, _storages, _network):
                group.create_task(read(reader, parts, system))
    except TimeoutError:
        reader.problems.append(f"The inventory is incomplete: it was not read within {DEADLINE:g} s.")
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _processors(reader: Reader, parts: _Parts, system: schema.System) -> None:
    found = await reader.all(system.processors, schema.Processor, "processors")
    parts.processors = tuple(convert.processor(cpu) for cpu in found if cpu.status.state != _EMPTY_SLOT)


async def _memory(reader: Reader, parts: _Parts, system: schema.System) -> None:
    if system.memory_summary.total_system_memory_gib > 0:
        return
    found = await reader.all(system.memory, schema.MemoryModule, "memory modules")
    parts.memory = tuple(convert.memory_module(m) for m in found if m.status.state != _EMPTY_SLOT and m.capacity_mib)


async def _storages(reader: Reader, parts: _Parts, system: schema.System) -> None:
    parts.storages = await read_storage(reader, system)


async def _network(reader: Reader, parts: _Parts, system: schema.System) -> None:
    parts.network = await read_network(reader, system)
