"""The Debian part of the manager's image: mmdebstrap extracts packages, and unneeded files are removed."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from images import debian, rootfs, tree
from images.debian import BuildError
from images.tree import Tree, file, folder, link

HERE = Path(__file__).resolve().parent
USER = 65532
"""User and group of the manager: the number that images without a shell have come to use."""
_PASSWD = f"root:x:0:0:root:/root:/sbin/nologin\nmetal:x:{USER}:{USER}:metal-operator:/data:/sbin/nologin\n"
_GROUP = f"root:x:0:\nmetal:x:{USER}:\n"
_AUTHORITIES = "usr/share/ca-certificates/mozilla/"


@dataclass(frozen=True)
class Package:
    """What the bill of materials says of a Debian package."""

    name: str
    version: str
    architecture: str
    source: str
    sha256: str


def wanted() -> tuple[list[str], set[str]]:
    """Packages to ask for, and packages of whose files none is kept."""
    listed = tree.lines(HERE / "packages.txt")
    return [name for name in listed if name[0] != "!"], {name[1:] for name in listed if name[0] == "!"}


def versions(source_list: str) -> dict[str, str]:
    """Versions of all that mmdebstrap will extract, out of apt's present index."""
    return debian.resolve(wanted()[0], source_list, base=())


def bootstrap(source_list: str, done: Path) -> None:
    """Extracts the packages into the folder `done`: `root` (dropped packages' files are gone) and packages.json."""
    include, dropped = wanted()
    kept_back = ["download/empty", "cleanup/apt", "essential/unlink"]
    with tempfile.TemporaryDirectory(dir=done.parent) as scratch:
        root = Path(scratch, "work", "root")
        root.parent.mkdir()
        debian.run(
            "mmdebstrap", "--variant=extract", f"--hook-dir={rootfs.MERGED_USR}", f"--include={','.join(include)}",
            *(f"--skip={step}" for step in kept_back), "--format=directory", debian.suite(source_list), str(root), "-",
            input=source_list, env={**os.environ, "SOURCE_DATE_EPOCH": str(tree.EPOCH)},
        )  # fmt: skip
        archives = sorted((root / "var/cache/apt/archives").glob("*.deb"))
        if not archives:
            raise BuildError("mmdebstrap kept no packages: its version has other names for --skip")
        kept = [_describe(archive) for archive in archives if not _drop(archive, root, dropped)]
        (root.parent / "packages.json").write_text(json.dumps([vars(package) for package in kept]))
        for unwanted in ("var", "dev"):  # devices cannot be read like files
            shutil.rmtree(root / unwanted)
        root.parent.rename(done)


def _drop(archive: Path, root: Path, dropped: set[str]) -> bool:
    if archive.name.partition("_")[0] not in dropped:
        return False
    for name in debian.run("dpkg-deb", "--contents", str(archive)).splitlines():
        path = name.split(maxsplit=5)[5].partition(" -> ")[0]
        if not path.endswith("/"):
            (root / path).unlink(missing_ok=True)
    return True


def _describe(archive: Path) -> Package:
    shown = "${Package}\n${Version}\n${Architecture}\n${source:Package}_${source:Version}"
    told = debian.run("dpkg-deb", "--show", f"--showformat={shown}", str(archive)).splitlines()
    name, version, architecture, source = told
    return Package(name, version, architecture, source, hashlib.sha256(archive.read_bytes()).hexdigest())


def packages(done: Path) -> list[Package]:
    """What is in a folder that `bootstrap` made."""
    return [Package(**described) for described in json.loads((done / "packages.json").read_text())]


def contents(done: Path) -> Tree:
    """The root tree: the packages' files that are wanted, and the few files that installing would have made."""
    excluded = tree.matcher(tree.lines(HERE / "exclude.txt"))
    found = tree.from_folder(done / "root")
    bundle = b"".join(entry.data for name, entry in sorted(found.items()) if name.startswith(_AUTHORITIES))
    if not bundle:
        raise BuildError("ca-certificates brought no authorities")
    kept = {name: entry for name, entry in found.items() if not excluded.match(name)}
    tree.overlay(kept, _made(bundle))
    return kept


def _made(bundle: bytes) -> Tree:
    made = {name: folder() for name in ("dev", "proc", "sys", "run", "etc", "root", "var")}
    made |= {"tmp": folder(0o1777), "var/run": link("/run"), "data": tree.Entry(folder().mode, b"", USER, USER)}
    made |= {"etc/passwd": file(_PASSWD.encode()), "etc/group": file(_GROUP.encode())}
    made |= {"etc/nsswitch.conf": file(b"hosts: files dns\n"), "etc/ssl/certs/ca-certificates.crt": file(bundle)}
    made |= {"usr/lib/ssl/cert.pem": link("/etc/ssl/certs/ca-certificates.crt")}  # where OpenSSL looks
    return made
