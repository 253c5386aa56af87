"""Lists what this machine lacks for `make images` and `make lab`.

Standard library only: it runs before anything is set up. Run as `python3 tests/lab/preflight.py images|dhcp|lab`.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

IMAGES = {
    "mmdebstrap": "mmdebstrap",
    "lz4": "lz4",
    "depmod": "kmod",
    "dpkg-deb": "dpkg",
}
"""What the images are built with: the program, or a file, and the Debian package that brings it."""
DHCP = {
    "ip": "iproute2",
    "setpriv": "util-linux",
    "flock": "util-linux",
    "dnsmasq": "dnsmasq-base",
    "kea-dhcp4": "kea-dhcp4-server",
    "kea-dhcp6": "kea-dhcp6-server",
    "/usr/lib/*/kea/hooks/libdhcp_run_script.so": "kea-common",
    "/usr/lib/ipxe/snponly.efi": "ipxe",
}
"""What the tests of DHCP servers start and offer."""
LAB = {
    **DHCP,
    "busybox": "busybox-static",
    "docker-registry": "docker-registry",
    "libvirtd": "libvirt-daemon",
    "virsh": "libvirt-clients",
    "qemu-system-x86_64": "qemu-system-x86",
    "/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so": "libvirt-daemon-driver-qemu",
    "/usr/lib/ipxe/qemu/efi-virtio.rom": "ipxe-qemu",
    "/usr/share/seabios/bios-256k.bin": "seabios",
    "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd": "ovmf",
    "/usr/lib/*/qemu/block-curl.so": "qemu-block-extra",
    "/usr/lib/systemd/boot/efi/linuxx64.efi.stub": "systemd-boot-efi",
    "/usr/include/libvirt/libvirt.h": "libvirt-dev",
    "pkg-config": "pkg-config",
    "gcc": "gcc",
}
"""What the lab starts, and what compiles libvirt-python."""


def missing(lane: str) -> str:
    """A sentence that says what to do before the lane can run, or an empty string."""
    if lane in ("lab", "dhcp") and os.geteuid() != 0:
        return "the lab makes network namespaces: run it as root"
    whole = {**IMAGES, **LAB, _python_header(): "python3-dev"}
    wanted = {"images": IMAGES, "dhcp": DHCP, "lab": whole}[lane]
    packages = {package for thing, package in wanted.items() if not _there(thing)}
    return f"apt-get install {' '.join(sorted(packages))}" if packages else ""


def _python_header() -> str:
    return str(Path(sysconfig.get_paths()["include"], "Python.h"))


def _there(thing: str) -> bool:
    return any(Path("/").glob(thing.lstrip("/"))) if thing.startswith("/") else bool(_which(thing))


def _which(program: str) -> "str | None":
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


if __name__ == "__main__":
    sys.exit(missing(sys.argv[1]) or 0)
