"""Network interfaces: the system's own list, or the chassis' network adapters where that shows no MAC address."""

from metal.bmc.inventory import NetworkInterface
from metal.bmc.redfish import convert
from metal.bmc.redfish.inventory.reader import Reader
from metal.redfish import resources as schema


async def read_network(reader: Reader, system: schema.System) -> tuple[NetworkInterface, ...]:
    """One interface for each MAC address, in the BMC's order, which distinguishes port 1 from port 2."""
    found = await reader.all(system.ethernet_interfaces, schema.EthernetInterface, "network interfaces")
    interfaces = [_interface(nic.id, nic.permanent_mac_address or nic.mac_address, nic.link_status) for nic in found]
    if not any(interface.mac_address for interface in interfaces):
        interfaces = await _from_adapters(reader, system)
    return _unique(interfaces)


async def _from_adapters(reader: Reader, system: schema.System) -> list[NetworkInterface]:
    interfaces: list[NetworkInterface] = []
    for link in system.links.chassis:
        chassis = await reader.one(link, schema.Chassis, "chassis")
        adapters = chassis.network_adapters if chassis else schema.Ref()
        for adapter in await reader.all(adapters, schema.NetworkAdapter, "network adapters"):
            ports = adapter.network_device_functions
            functions = await reader.all(ports, schema.NetworkDeviceFunction, f"ports of {adapter.id}")
            interfaces += [_from_function(adapter, function) for function in functions]
    return interfaces


def _from_function(adapter: schema.NetworkAdapter, function: schema.NetworkDeviceFunction) -> NetworkInterface:
    ethernet = function.ethernet
    return _interface(f"{adapter.id}/{function.id}", ethernet.permanent_mac_address or ethernet.mac_address, "")


def _interface(name: str, address: str, link_status: str) -> NetworkInterface:
    return NetworkInterface(name=name, mac_address=convert.mac(address), link_status=link_status)


def _unique(interfaces: list[NetworkInterface]) -> tuple[NetworkInterface, ...]:
    """One per MAC address; those without one (host interface, empty slots) are left out."""
    by_mac: dict[str, NetworkInterface] = {}
    for interface in interfaces:
        if interface.mac_address:
            by_mac.setdefault(interface.mac_address, interface)
    return tuple(by_mac.values())
