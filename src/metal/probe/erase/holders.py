"""Removes users of a drive: mounts, swap, device mapper maps and MD arrays. The probe itself runs from memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from metal.probe.erase.drives import Drive
from metal.probe.erase.runner import Run, ToolFailed, ask
from metal.probe.host import Host


def release(host: Host, run: Run, drive: Drive) -> list[str]:
    """Free a drive and its other paths; returns a sentence for each user that could not be removed."""
    names = [path[len("/dev/") :].replace("/", "!") for path in (drive.path, *drive.paths)]
    stack = list(dict.fromkeys(above for name in names for above in _stack(host, f"/sys/block/{name}")))
    attempts = [_try(host, run, attempt, folder) for folder in stack for attempt in (_unmount, _swap_off, _stop)]
    return [problem for problem in attempts if problem]


def _try(host: Host, run: Run, attempt: Callable[[Host, Run, str], None], folder: str) -> str:
    try:
        attempt(host, run, folder)
    except (ToolFailed, OSError) as failure:
        return str(failure)
    return ""


def _stack(host: Host, folder: str) -> Iterator[str]:
    """The folders in /sys of a device, its partitions and all that is built on them, the topmost first."""
    for holder in host.names(folder + "/holders"):
        yield from _stack(host, f"/sys/block/{holder}")
    for name in host.names(folder):
        if host.exists(f"{folder}/{name}/partition"):
            yield from _stack(host, f"{folder}/{name}")
    yield folder


def _unmount(host: Host, run: Run, folder: str) -> None:
    for point in reversed(_mounts(host, host.text(folder + "/dev"), _path(folder))):
        ask(run, "umount", "--", point)


def _mounts(host: Host, number: str, path: str) -> list[str]:
    """Where a device is mounted, by its number or, as btrfs has it, by its name alone (proc(5), mountinfo)."""
    found = []
    for line in host.text("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, source = before.split(), after.split()[1:2]
        if len(fields) > 4 and (fields[2] == number or source == [path]):
            found.append(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
    return found


def _swap_off(host: Host, run: Run, folder: str) -> None:
    path = _path(folder)
    if any(line.split()[:1] == [path] for line in host.text("/proc/swaps").splitlines()):
        ask(run, "swapoff", path)


def _stop(host: Host, run: Run, folder: str) -> None:
    if host.exists(folder + "/dm/name"):
        ask(run, "dmsetup", "remove", "--force", "--retry", host.text(folder + "/dm/name"))
    elif host.exists(folder + "/md/array_state"):
        host.put(folder + "/md/array_state", "clear")
    elif host.exists(folder + "/bcache/stop"):
        host.put(folder + "/bcache/stop", "1")


def _path(folder: str) -> str:
    return "/dev/" + folder.rpartition("/")[2].replace("!", "/")
