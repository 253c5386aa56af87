"""The machine: a libvirt domain in a libvirtd of its own, isolated from the host's libvirt."""

import shlex
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.lab import attach, drives
from tests.lab.drives import Backing, Drive
from tests.lab.netns import Namespace
from tests.lab.run import Run

STATE = ("/var/lib/libvirt", "/run/libvirt", "/etc/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
"""Folders compiled into libvirtd; the run's own are mounted over them, in its mount namespace only."""
QEMU_CONF = """\
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
"""
LIBVIRTD_CONF = """\
unix_sock_dir = "{sockets}"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "2:stderr"
"""
DISK = Drive("virtio", "node0-disk0", 1024**3)
"""What a machine has when nothing else is asked for."""


class Libvirt:
    """libvirtd inside a namespace; `uri` reaches it from every namespace."""

    def __init__(self, run: Run, where: Namespace) -> None:
        self._run = run
        home = run.path("libvirt/x").parent
        sockets = home / "sockets"
        sockets.mkdir()
        self.uri = f"qemu+unix:///system?socket={sockets}/libvirt-sock"
        mounts = [_own_folder(home, path) for path in STATE] + [_with_user(home, path) for path in ("passwd", "group")]
        (home / "etc-libvirt/qemu.conf").write_text(QEMU_CONF)
        config = home / "libvirtd.conf"
        config.write_text(LIBVIRTD_CONF.format(sockets=sockets))
        start = f"exec libvirtd --config {shlex.quote(str(config))} --pid-file {shlex.quote(str(home / 'pid'))}"
        # `ip netns exec` has made a mount namespace already.
        run.start("libvirtd", ["sh", "-ec", "\n".join([*mounts, start])], where)
        run.wait_for("libvirtd's socket", (sockets / "libvirt-sock").exists, 20)

    def virsh(self, *arguments: str) -> str:
        """Run virsh and return its output; an error has what it printed."""
        done = subprocess.run(["virsh", "-q", "-c", self.uri, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"virsh {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()


def _own_folder(home: Path, path: str) -> str:
    own = home / path.strip("/").replace("/", "-")
    own.mkdir()
    return f"mkdir -p {path} && mount --bind {shlex.quote(str(own))} {path}"


def _with_user(home: Path, name: str) -> str:
    """libvirtd requires Debian's user libvirt-qemu, although the machines run as root."""
    path, own = Path("/etc", name), home / name
    text = path.read_text()
    more = (
        "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n"
        if name == "passwd"
        else "libvirt-qemu:x:64055:\n"
    )
    own.write_text(text if "\nlibvirt-qemu:" in text else text + more)
    return f"mount --bind {shlex.quote(str(own))} {path}"


class Machine:
    """A BIOS machine with one virtio NIC, its drives and its serial console in console.log."""

    def __init__(
        self,
        run: Run,
        libvirt: Libvirt,
        bridge: str,
        *,
        name: str = "node0",
        mac: str = "52:54:00:77:00:11",
        with_drives: Sequence[Drive] = (DISK,),
    ) -> None:
        self.name, self.mac = name, mac
        self.uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.memory_size = 1024 * 1024**2
        self.console = run.path(f"{name}-console.log")
        self.libvirt = libvirt
        self.backings = drives.create(run.path(f"{name}-drives/x").parent, with_drives)
        libvirt.virsh("define", str(self._write_domain(run, bridge)))

    def is_running(self) -> bool:
        """Whether the machine has power."""
        return self.libvirt.virsh("domstate", self.name) == "running"

    def cut_power(self) -> None:
        """Cut the power."""
        if self.is_running():
            self.libvirt.virsh("destroy", self.name)

    def slow_down(self, backing: Backing, rate: int) -> None:
        """From the next power-on limit the drive to so many bytes a second."""
        source = str(backing.path)
        self.libvirt.virsh("blkdeviotune", self.name, source, "--write-bytes-sec", str(rate), "--config")

    def _write_domain(self, run: Run, bridge: str) -> Path:
        path = run.path(f"{self.name}.xml")
        path.write_text(self._domain(bridge))
        return path

    def _domain(self, bridge: str) -> str:
        return f"""\
            <domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
              <name>{self.name}</name><uuid>{self.uuid}</uuid>
              <memory unit='b'>{self.memory_size}</memory><vcpu>1</vcpu>
              <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
              <features><acpi/></features><cpu mode='maximum'/>
              <on_reboot>restart</on_reboot>
              <devices>
                <emulator>/usr/bin/qemu-system-x86_64</emulator>
                {attach.devices(self.backings)}
                <interface type='bridge'>
                  <source bridge='{bridge}'/><mac address='{self.mac}'/><model type='virtio'/>
                </interface>
                <serial type='file'><source path='{self.console}'/><target port='0'/></serial>
              </devices>
              {attach.arguments(self.backings)}
            </domain>"""
