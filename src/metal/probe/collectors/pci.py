"""PCI devices, with names where the machine has the public list of them (package pci.ids)."""

from __future__ import annotations

import re

from metal.probe.collectors import Fields
from metal.probe.host import Host

DEVICES = "/sys/bus/pci/devices/"
NAMES = "/usr/share/misc/pci.ids"


def collect(host: Host) -> list[Fields]:
    """One entry per PCI function; an empty list is not a failure."""
    vendors, products = _names(host.text(NAMES))
    return [_device(host, address, vendors, products) for address in host.names(DEVICES)]


def _device(host: Host, address: str, vendors: dict[str, str], products: dict[tuple[str, str], str]) -> Fields:
    vendor = host.text(f"{DEVICES}{address}/vendor").replace("0x", "", 1)
    product = host.text(f"{DEVICES}{address}/device").replace("0x", "", 1)
    return {
        "address": address,
        "vendor": vendors.get(vendor, ""),
        "vendorID": vendor,
        "product": products.get((vendor, product), ""),
        "productID": product,
        "numaNodeID": max(0, host.number(f"{DEVICES}{address}/numa_node")),
    }


def _names(listing: str) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    vendors: dict[str, str] = {}
    products: dict[tuple[str, str], str] = {}
    vendor = ""
    for line in listing.splitlines():
        found = re.match(r"(\t?)([0-9a-f]{4})  (\S.*)", line)
        if found and found.group(1) and vendor:
            products[vendor, found.group(2)] = found.group(3)
        elif found:
            vendor = found.group(2)
            vendors[vendor] = found.group(3)
        elif line.startswith("C "):  # device classes follow; they reuse the numbers
            break
    return vendors, products
