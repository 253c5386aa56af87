"""Machines with UEFI firmware (OVMF) in QEMU, without a libvirt of their own.

Their network is QEMU's own: a DHCP server, and `GATEWAY`, behind which are the ports of the namespace's loopback.
"""

import subprocess
import sys
from pathlib import Path

from tests.lab.netns import Namespace
from tests.lab.run import Run

OVMF = Path("/usr/share/OVMF")
GATEWAY = "10.0.2.2"
OWNER = "6b1f0cd4-9f3e-4a55-9d0c-6f3c8f3f2a11"
"""Owner of the keys in the firmware's variables; any GUID."""


def variables(run: Run, name: str, *, boot_uri: str = "", secure_boot: Path | None = None) -> Path:
    """Variables of a firmware that loads `boot_uri` once, as a BMC sets HttpBootUri.

    `secure_boot` is the certificate of the only key that it accepts; without one it starts everything.
    """
    path = run.path(f"{name}/variables.fd")
    changes = ["--set-boot-uri", boot_uri] if boot_uri else []
    if secure_boot is not None:
        for what in ("--set-pk", "--add-kek", "--add-db"):
            changes += [what, OWNER, str(secure_boot)]
        changes.append("--secure-boot")
    tool = Path(sys.executable).with_name("virt-fw-vars")
    subprocess.run([tool, "-i", OVMF / "OVMF_VARS_4M.fd", "-o", path, *changes], check=True, capture_output=True)
    return path


def power_on(run: Run, where: Namespace, name: str, variables: Path, *devices: str) -> Path:
    """Start a machine with these devices; returns the file with what it prints on its serial console."""
    console = run.path(f"{name}/console.log")
    command = (
        "qemu-system-x86_64 -machine q35,smm=on -accel tcg,thread=multi -cpu max -m 512 "
        "-no-reboot -nodefaults -display none "
        f"-drive if=pflash,format=raw,readonly=on,file={OVMF}/OVMF_CODE_4M.secboot.fd "
        f"-drive if=pflash,format=raw,file={variables} "
        f"-global driver=cfi.pflash01,property=secure,value=on -serial file:{console}"
    )
    run.start(name, [*command.split(), *devices], where)
    return console


def nic() -> tuple[str, ...]:
    """A network interface that the firmware itself uses: QEMU's ROM would start iPXE."""
    return "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="


def cd(url: str) -> tuple[str, ...]:
    """A CD drive whose medium is read from a URL in ranges, as BMCs do for virtual media."""
    return "-drive", f"file={url},format=raw,media=cdrom,readonly=on"
