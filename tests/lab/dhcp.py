"""dnsmasq and Kea as the site's DHCP server, with what `metalctl dhcp-config` writes, and a lease hook."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from tests.lab.netns import Namespace
from tests.lab.run import Run

_METALCTL = str(Path(sys.executable).with_name("metalctl"))
_ADVERTISE = ("--enable-ra", "--dhcp-range=fd77::,ra-only,64,1h")
"""Without router advertisements the BIOS ROM waits 13 s for one."""


class DHCPServer(Protocol):
    """Serves leases on one bridge and calls a hook for each."""

    def address_of(self, mac: str) -> str | None:
        """The leased IPv4 address of a MAC, or None."""
        ...


class Dnsmasq:
    """DHCP, router advertisements and TFTP. boot_url is the base URL of the boot server."""

    def __init__(self, run: Run, where: Namespace, bridge: str, *, boot_url: str, hook: Path | None) -> None:
        self._leases = run.path("dnsmasq.leases")
        config = write_configuration(run, "dnsmasq", bridge, boot_url, hook)["dnsmasq.conf"]
        start_dnsmasq(run, where, config, f"--dhcp-leasefile={self._leases}", *_ADVERTISE)

    def address_of(self, mac: str) -> str | None:
        """The leased IPv4 address of a MAC, or None."""
        lines = self._leases.read_text().splitlines() if self._leases.exists() else []
        fields = [line.split() for line in lines]
        return next((words[2] for words in fields if len(words) > 2 and words[1] == mac), None)


class Kea:
    """DHCP by Kea; dnsmasq beside it has TFTP and the router advertisements."""

    def __init__(self, run: Run, where: Namespace, bridge: str, *, boot_url: str, hook: Path | None) -> None:
        files = write_configuration(run, "kea", bridge, boot_url, hook)
        start_dnsmasq(run, where, files["tftp.conf"], *_ADVERTISE)
        self._leases = start_kea(run, where, files["kea-dhcp4.conf"], 4)

    def address_of(self, mac: str) -> str | None:
        """The leased IPv4 address of a MAC, or None."""
        lines = self._leases.read_text().splitlines() if self._leases.exists() else []
        fields = [line.split(",") for line in lines]
        return next((words[0] for words in reversed(fields) if words[1] == mac and words[3] != "0"), None)


def write_configuration(run: Run, server: str, bridge: str, boot_url: str, hook: Path | None) -> dict[str, Path]:
    """The files of `metalctl dhcp-config`, by their names."""
    folder = run.path(f"{server}/x").parent
    command = [
        _METALCTL, "dhcp-config", server, "--boot-url", boot_url, "--interface", bridge, "--subnet", "10.77.0.0/24",
        "--range", "10.77.0.100-10.77.0.199", "--output", str(folder), *(["--hook", str(hook)] if hook else []),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return {path.name: path for path in folder.iterdir()}


def start_dnsmasq(run: Run, where: Namespace, config: Path, *more: str) -> None:
    """dnsmasq with this configuration file."""
    command = ["dnsmasq", "--no-daemon", f"--conf-file={config}", "--user=root", "--log-dhcp", *more]
    run.start("dnsmasq", command, where)


def start_kea(run: Run, where: Namespace, config: Path, version: int) -> Path:
    """Kea with this configuration file, but for the folders of its state; returns its lease file."""
    made = json.loads(re.sub(r"^//.*\n", "", config.read_text(), flags=re.MULTILINE))
    server, leases = made[f"Dhcp{version}"], config.with_name(f"leases{version}.csv")
    server["lease-database"]["name"] = str(leases)
    # Kea looks for expired leases every 10 s.
    server["expired-leases-processing"] = {"reclaim-timer-wait-time": 1}
    if version == 6:
        server["data-directory"] = str(config.parent)
    changed = config.with_name(f"run-{config.name}")
    changed.write_text(json.dumps(made))
    state = {"KEA_PIDFILE_DIR": str(config.parent), "KEA_LOCKFILE_DIR": str(config.parent)}
    run.start("kea", [f"kea-dhcp{version}", "-c", str(changed)], where, **state)
    return leases


def hook_script(run: Run, command: list[str]) -> Path:
    """A hook that passes the DHCP server's arguments to a command, and logs them to lease-hook.log."""
    path = run.path("lease-hook")
    quoted = " ".join(f"'{word}'" for word in command)
    log = run.path("lease-hook.log")
    path.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec {quoted} "$@" >>{log} 2>&1\n')
    path.chmod(0o755)
    return path
