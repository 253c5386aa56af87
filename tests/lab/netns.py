"""Network namespaces, connected with each other only, so that the host's own network never changes."""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

PREFIX = "metal-lab"
RUN = Path("/run/netns")
CLONE_NEWNET = 0x40000000
T = TypeVar("T")


def ip(*arguments: str) -> str:
    """Run ip(8) and return its output; an error has what it printed."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Namespace:
    """One network namespace with its loopback up."""

    def __init__(self, role: str) -> None:
        self.name = f"{PREFIX}-{os.getpid()}-{role}"
        ip("netns", "add", self.name)
        self.ip("link", "set", "lo", "up")

    def ip(self, *arguments: str) -> str:
        """Run ip(8) inside."""
        return ip("-n", self.name, *arguments)

    def command(self, *command: str) -> list[str]:
        """The command line that runs a program inside and ends it with the parent process."""
        return ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", self.name, *command]

    def inside(self, work: Callable[[], T]) -> T:
        """Call `work` in a thread inside the namespace. Sockets opened there stay there."""
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                _enter(self.name)
                outcome.append(work())
            except BaseException as raised:
                failure.append(raised)

        thread = threading.Thread(target=run)  # a thread of its own: it never leaves the namespace again
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    def delete(self) -> None:
        """Kill the processes inside and remove the namespace with all its interfaces."""
        _delete(self.name)


def _enter(name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(RUN / name, "rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)


def _delete(name: str) -> None:
    for process in ip("netns", "pids", name).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
    ip("netns", "delete", name)


def reap_stale() -> None:
    """Remove what an interrupted run left: namespaces whose process has ended."""
    for path in RUN.glob(f"{PREFIX}-*"):
        owner = re.match(rf"{PREFIX}-(\d+)-", path.name)
        if owner and not Path("/proc", owner.group(1)).exists():
            _delete(path.name)


def bridge(inside: Namespace, name: str, *addresses: str) -> None:
    """A bridge with addresses. IPv6 skips duplicate detection: the addresses must work at once."""
    inside.ip("link", "add", name, "type", "bridge", "forward_delay", "0")
    for address in addresses:
        flags = ["nodad"] if ":" in address else []
        inside.ip("address", "add", address, "dev", name, *flags)
    inside.ip("link", "set", name, "up")


def cable(switch: Namespace, bridge_name: str, port: str, host: Namespace, mac: str, nic: str = "eth0") -> None:
    """A veth pair from a port of the bridge to an interface with this MAC in another namespace."""
    switch.ip("link", "add", port, "type", "veth", "peer", "name", nic, "netns", host.name)
    switch.ip("link", "set", port, "master", bridge_name, "up")
    host.ip("link", "set", nic, "address", mac, "up")
