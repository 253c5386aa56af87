"""Reads of systems and managers over Redfish, and the restart of the BMC."""

from contextlib import suppress

from metal.bmc.errors import BMCError, BMCManagerNotFound, BMCNotFound, BMCNotSupported
from metal.bmc.redfish import convert
from metal.bmc.redfish.capability import Capability
from metal.bmc.systems import ManagerInfo, SystemInfo
from metal.redfish import ConnectionDropped, Resource, members
from metal.redfish.paths import local_path
from metal.redfish.resources import Bios, Manager, System

_CONTROLS_RESET = ("GracefulRestart", "ForceRestart")


class RedfishSystems(Capability):
    """Reads of systems and managers, and the BMC's own restart."""

    async def systems(self) -> tuple[SystemInfo, ...]:
        """Systems in the BMC's order. One that cannot be read fails the call, so that no system seems to be removed."""
        root = await self.client.root()
        if not root.systems.odata_id:
            raise BMCNotSupported(f"{self.client.name} manages no computer systems.")
        found = await self._all(root.systems.odata_id)
        return tuple(convert.system_info(resource.path, resource.decode(System)) for resource in found)

    async def system(self, uri: str) -> SystemInfo:
        """Reads the ComputerSystem at this URI, with one request."""
        _, system = await self._read_system(uri)
        return convert.system_info(uri, system)

    async def bios_attributes(self, uri: str) -> dict[str, str | int | bool | None]:
        """Attributes of types that the schema does not allow are omitted."""
        _, system = await self._read_system(uri)
        if not system.bios.odata_id:
            return {}
        bios = (await self.client.get(local_path(system.bios.odata_id))).decode(Bios)
        return {
            name: value
            for name, value in bios.attributes.items()
            if value is None or isinstance(value, str | int | bool)
        }

    async def manager(self, uuid: str = "") -> ManagerInfo:
        """Reads the manager, with one request once its URI is known."""
        path, manager = await self._find_manager(uuid)
        return convert.manager_info(path, manager)

    async def reset_manager(self, uuid: str = "") -> None:
        """The manager with the console if there are several; forced only where graceful is not offered."""
        _, manager = await self._find_manager(uuid)
        with suppress(ConnectionDropped):  # many hang up at once instead of answering
            await self._reset_with_first(manager.actions.reset, _CONTROLS_RESET, "restart the BMC")

    async def _all(self, path: str) -> list[Resource]:
        resources: list[Resource] = []
        for member in await members(self.client, local_path(path)):
            if isinstance(member, BMCError):
                raise member
            resources.append(member)
        return resources

    async def _find_manager(self, uuid: str) -> tuple[str, Manager]:
        known = self._managers.get(uuid.lower())
        if known is not None:
            try:
                manager = (await self.client.get(known)).decode(Manager)
                if _is_manager(manager, uuid):
                    return known, manager
            except BMCNotFound:
                pass
            del self._managers[uuid.lower()]
        path, manager = await self._choose_manager(uuid)
        self._managers[uuid.lower()] = path
        return path, manager

    async def _choose_manager(self, uuid: str) -> tuple[str, Manager]:
        root = await self.client.root()
        if not root.managers.odata_id:
            raise BMCNotSupported(f"{self.client.name} lists no managers.")
        found = [(resource.path, resource.decode(Manager)) for resource in await self._all(root.managers.odata_id)]
        if not found:
            raise BMCNotFound(f"{self.client.name} lists no managers.")
        if uuid:
            return _with_uuid(found, uuid)
        consoles = [(path, manager) for path, manager in found if has_console(manager)]
        return min(consoles, key=lambda choice: choice[0]) if consoles else found[0]


def _is_manager(manager: Manager, uuid: str) -> bool:
    return not uuid or manager.uuid.lower() == uuid.lower()


def _with_uuid(managers: list[tuple[str, Manager]], uuid: str) -> tuple[str, Manager]:
    """The manager with this UUID: another one may belong to another machine. Raises BMCManagerNotFound."""
    for path, manager in managers:
        if _is_manager(manager, uuid):
            return path, manager
    seen = ", ".join(manager.uuid or "none" for _, manager in managers)
    raise BMCManagerNotFound(
        f"no manager of the BMC has the UUID {uuid} in spec.bmcUUID (the UUIDs are {seen}): correct the address if it "
        "leads to another BMC; if the BMC or its mainboard was replaced, correct spec.bmcUUID"
    )


def has_console(manager: Manager) -> bool:
    """True for the manager of the host, as opposed to an enclosure's or an auxiliary one."""
    console = manager.graphical_console
    return console.max_concurrent_sessions > 0 or bool(console.connect_types_supported)
