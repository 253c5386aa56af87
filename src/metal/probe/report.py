"""Assembles a report from all collectors, with a sentence for each that failed."""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable
from typing import Any

from metal.probe import netlink
from metal.probe.collectors import cpu, memory, neighbors, network, nics, pci, storage, system
from metal.probe.ethtool import Ethtool
from metal.probe.host import Host
from metal.probe.listener import Listener

Collectors = dict[str, "tuple[Callable[[], Any], Any]"]
"""By key of the report: the collector, and the value when it fails."""

log = logging.getLogger("metalprobe")


def collectors(
    host: Host,
    listener: Listener,
    lldp_seconds: float,
    *,
    addresses: network.Addresses = netlink.addresses,
    driver: Ethtool | None = None,
    architecture: Callable[[], str] = platform.machine,
) -> Collectors:
    """All of them; LLDP last, because its frames arrive while the others work."""
    return {
        "architecture": (architecture, ""),
        "systemInfo": (lambda: system.collect(host), {}),
        "cpu": (lambda: cpu.collect(host), []),
        "networkInterfaces": (lambda: network.collect(host, addresses), []),
        "storage": (lambda: storage.collect(host), []),
        "memory": (lambda: memory.collect(host), []),
        "nics": (lambda: nics.collect(host, driver or Ethtool()), []),
        "pciDevices": (lambda: pci.collect(host), []),
        "lldp": (lambda: neighbors.collect(listener, lldp_seconds), []),
    }


def gather(chosen: Collectors, wall: Callable[[], float] = time.time) -> dict[str, Any]:
    """Run the collectors. One that fails leaves its own part empty, and is listed under `problems`."""
    problems: list[str] = []
    data = {key: _share(key, collect, missing, problems) for key, (collect, missing) in chosen.items()}
    data["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall()))
    data["problems"] = problems
    return data


def _share(key: str, collect: Callable[[], Any], missing: Any, problems: list[str]) -> Any:
    try:
        return collect()
    except Exception as failure:  # hardware and kernels fail in unforeseen ways
        problems.append(f"{key}: {str(failure) or type(failure).__name__}")
        log.warning("%s", problems[-1])
        return missing
