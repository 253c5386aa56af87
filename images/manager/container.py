"""Writes a file tree as an OCI image with buildah, the same bytes for the same tree, labels and time."""

import io
import os
import stat
import tarfile
import tempfile
from pathlib import Path

from images import debian
from images.manager.root import USER
from images.tree import Entry, Tree

ENTRYPOINT = '["/usr/local/bin/metalctl"]'
PORTS = ("8080/tcp", "8082/tcp", "10000/tcp")


def write_tar(contents: Tree, out: Path, epoch: int) -> None:
    """Writes the tree as a tar archive, sorted by path, every file of the same time."""
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(contents):
            _add(archive, name, contents[name], epoch)


def _add(archive: tarfile.TarFile, name: str, entry: Entry, epoch: int) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid, info.mtime = stat.S_IMODE(entry.mode), entry.uid, entry.gid, epoch
    if stat.S_ISDIR(entry.mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(entry.mode):
        info.type, info.linkname = tarfile.SYMTYPE, entry.data.decode()
    else:
        info.size = len(entry.data)
    archive.addfile(info, io.BytesIO(entry.data) if info.isreg() else None)


def commit(archive: Path, layout: Path, labels: dict[str, str], tag: str, epoch: int) -> None:
    """Makes an OCI layout of one layer in a new folder. Raises BuildError."""
    with tempfile.TemporaryDirectory(dir=layout.parent) as scratch:
        buildah = ("buildah", "--root", f"{scratch}/storage", "--runroot", f"{scratch}/run", "--storage-driver", "vfs")
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": scratch}
        container = debian.run(*buildah, "from", "scratch", env=environment).strip()
        try:
            debian.run(*buildah, "add", "--quiet", container, str(archive), "/", env=environment)
            debian.run(*buildah, "config", *_settings(labels), container, env=environment)
            debian.run(
                *buildah, "commit", "--quiet", "--format", "oci", "--timestamp", str(epoch), "--identity-label=false",
                "--disable-compression=false",
                container, f"oci:{layout}:{tag}", env=environment,
            )  # fmt: skip
        finally:
            debian.run(*buildah, "rm", container, env=environment)


def _settings(labels: dict[str, str]) -> list[str]:
    settings = ["--user", f"{USER}:{USER}", "--entrypoint", ENTRYPOINT, "--cmd", "manager", "--workingdir", "/data"]
    for port in PORTS:
        settings += ["--port", port]
    settings += ["--env", "PATH=/usr/local/bin:/usr/bin", "--env", "PYTHONDONTWRITEBYTECODE=1"]
    settings += ["--os", "linux", "--arch", "amd64", "--stop-signal", "SIGTERM"]
    for name, value in sorted(labels.items()):
        settings += ["--label", f"{name}={value}"]
    return settings
