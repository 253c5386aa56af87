"""Processors by socket: /proc/cpuinfo for names, the topology in /sys for counts."""

from __future__ import annotations

import re

from metal.probe.collectors import Fields
from metal.probe.host import Host

SYSTEM = "/sys/devices/system/cpu/"


def collect(host: Host) -> list[Fields]:
    """One entry per socket.

    Raises:
        LookupError: the kernel shows no processors.
    """
    described = {int(block.get("processor", "-1")): block for block in _blocks(host.text("/proc/cpuinfo"))}
    threads = [int(name[3:]) for name in host.names(SYSTEM) if re.fullmatch(r"cpu\d+", name)] or sorted(described)
    sockets: dict[int, list[int]] = {}
    for thread in threads:
        sockets.setdefault(_socket(host, thread, described.get(thread, {})), []).append(thread)
    if not sockets:
        raise LookupError("neither /proc/cpuinfo nor /sys/devices/system/cpu shows a processor")
    return [_socket_fields(host, number, sorted(sockets[number]), described) for number in sorted(sockets)]


def _blocks(cpuinfo: str) -> list[dict[str, str]]:
    blocks = []
    for block in re.split(r"\n\s*\n", cpuinfo):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        if fields.get("processor", "").isdecimal():
            blocks.append(fields)
    return blocks


def _socket(host: Host, thread: int, described: dict[str, str]) -> int:
    told = described.get("physical id", "")
    missing = int(told) if told.isdecimal() else 0
    return max(0, host.number(f"{SYSTEM}cpu{thread}/topology/physical_package_id", missing))


def _socket_fields(host: Host, number: int, threads: list[int], described: dict[int, dict[str, str]]) -> Fields:
    cores = {host.text(f"{SYSTEM}cpu{thread}/topology/core_id") or thread for thread in threads}
    first = described.get(threads[0], {})
    return {
        "id": number,
        "totalCores": len(cores),
        "totalHardwareThreads": len(threads),
        "vendor": first.get("vendor_id") or first.get("CPU implementer", ""),
        "model": first.get("model name") or first.get("CPU part", ""),
        "capabilities": (first.get("flags") or first.get("Features", "")).split(),
    }
