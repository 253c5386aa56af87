"""Network adapters: PCI address, speed, connectors and firmware."""

from __future__ import annotations

import re

from metal.probe.collectors import Fields, network
from metal.probe.ethtool import Ethtool
from metal.probe.host import Host

PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def collect(host: Host, driver: Ethtool) -> list[Fields]:
    """One entry per adapter; an empty list is not a failure."""
    return [_nic(host, driver, name) for name in network.interfaces(host)]


def _nic(host: Host, driver: Ethtool, name: str) -> Fields:
    top = network.NET + name
    modes, ports = driver.modes(name)
    speed = host.number(top + "/speed", -1)
    return {
        "name": name,
        "mac": network.mac(host, name),
        "pciAddress": _pci_address(host, top),
        "speed": f"{speed}Mb/s" if speed > 0 else "Unknown",
        "linkModes": modes,
        "supportedPorts": ports,
        "firmwareVersion": driver.firmware(name),
        "driver": _driver(host, top),
    }


def _pci_address(host: Host, top: str) -> str:
    """The last PCI address on the way to the device: virtio and others have a bus of their own behind it."""
    parts = host.real_parts(top + "/device")
    return next((part for part in reversed(parts) if PCI_ADDRESS.fullmatch(part)), "")


def _driver(host: Host, top: str) -> str:
    return host.real_parts(top + "/device/driver")[-1] if host.exists(top + "/device/driver") else ""
