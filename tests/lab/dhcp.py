"""dnsmasq as the site's DHCP server, with a lease hook and the address of the boot script."""

from pathlib import Path

from tests.lab.netns import Namespace
from tests.lab.run import Run


class Dnsmasq:
    """Serves leases on one bridge and calls a hook for each: `HOOK add|old|del MAC IP [NAME]`."""

    def __init__(self, run: Run, where: Namespace, bridge: str, *, boot_url: str, hook: Path | None) -> None:
        self._leases = run.path("dnsmasq.leases")
        command = [
            "dnsmasq",
            "--no-daemon",
            "--conf-file=/dev/null",
            "--port=0",
            "--user=root",
            f"--interface={bridge}",
            "--except-interface=lo",
            "--bind-interfaces",
            "--dhcp-range=10.77.0.100,10.77.0.199,255.255.255.0,1h",
            "--dhcp-authoritative",
            # Without router advertisements the BIOS ROM waits 13 s for one.
            "--enable-ra",
            "--dhcp-range=fd77::,ra-only,64,1h",
            "--dhcp-userclass=set:ipxe,iPXE",
            f"--dhcp-boot=tag:ipxe,{boot_url}",
            f"--dhcp-leasefile={self._leases}",
            "--log-dhcp",
            *([f"--dhcp-script={hook}", "--dhcp-scriptuser=root"] if hook else []),
        ]
        run.start("dnsmasq", command, where)

    def address_of(self, mac: str) -> str | None:
        """The leased IPv4 address of a MAC, or None."""
        lines = self._leases.read_text().splitlines() if self._leases.exists() else []
        fields = [line.split() for line in lines]
        return next((words[2] for words in fields if len(words) > 2 and words[1] == mac), None)


def hook_script(run: Run, command: list[str]) -> Path:
    """A hook that passes dnsmasq's arguments to a command, and logs them to lease-hook.log."""
    path = run.path("lease-hook")
    quoted = " ".join(f"'{word}'" for word in command)
    log = run.path("lease-hook.log")
    path.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec {quoted} "$@" >>{log} 2>&1\n')
    path.chmod(0o755)
    return path
