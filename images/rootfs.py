"""Builds the root filesystem: Debian packages by mmdebstrap, Python byte code, and kernel modules."""

import fnmatch
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from images import debian
from images.debian import BuildError
from images.tree import EPOCH, Entry, Tree, file, folder, lines, link

MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"
MODULE_INDEX = ("modules.builtin", "modules.builtin.modinfo", "modules.order")
UNUSED_INDEX = {"modules.dep", "modules.alias", "modules.symbols", "modules.order", "modules.builtin.modinfo"}
"""kmod reads the binary twins of these."""


def bootstrap(packages: list[str], source_list: str, versions: dict[str, str], out: Path) -> None:
    """Writes the root filesystem as a tar archive, and checks that it holds the versions that were resolved."""
    command = ["mmdebstrap", "--variant=essential", f"--hook-dir={MERGED_USR}", f"--include={','.join(packages)}"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    unfinished = out.with_suffix(".part.tar")
    release = debian.suite(source_list)
    debian.run(*command, "--format=tar", release, str(unfinished), "-", input=source_list, env=environment)
    _check_versions(unfinished, versions)
    unfinished.rename(out)


def _check_versions(root: Path, wanted: dict[str, str]) -> None:
    with tarfile.open(root) as archive:
        status = archive.extractfile("./var/lib/dpkg/status")
        text = status.read().decode() if status else ""
    found = dict(re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)$", text, re.MULTILINE))
    moved = {name: version for name, version in found.items() if wanted.get(name) != version}
    if moved or not found:
        raise BuildError(
            f"the mirror has other versions than apt's index: run apt-get update ({moved or 'no packages'})"
        )


def byte_code(tree: Tree, also: Sequence[str] = ()) -> Tree:
    """Compiles the image's standard library; unchecked hashes, so that no file's date matters (PEP 552).

    The machine's Python of the same minor version does it: byte code is the same within one. `also` names other folders
    with modules, as prefixes of paths.
    """
    versions = {name.split("/")[2] for name in tree if name.startswith("usr/lib/python3.")}
    compiled: Tree = {}
    for version in sorted(versions):
        for prefix in (f"usr/lib/{version}/", *also):
            with tempfile.TemporaryDirectory() as scratch:
                compiled.update(_compile(tree, prefix, compiler(version), Path(scratch)))
    return compiled


def compiler(version: str) -> str:
    """The interpreter that compiles for `version` (such as python3.11): Debian's, else the running one."""
    if Path("/usr/bin", version).exists():
        return f"/usr/bin/{version}"
    if version == f"python{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    raise BuildError(f"{version} is needed to compile the image's Python: apt-get install {version}-minimal")


def _compile(tree: Tree, prefix: str, python: str, scratch: Path) -> Tree:
    for name, entry in tree.items():
        if name.startswith(prefix) and name.endswith(".py") and stat.S_ISREG(entry.mode):
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)
    command = [python, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", "-s", str(scratch), "-p", "/"]
    # Sets of constants are written in hash order, and a few library files are meant not to compile (exit code 1).
    subprocess.run([*command, str(scratch / prefix)], env={"PYTHONHASHSEED": "0"}, check=False, capture_output=True)
    found = sorted(scratch.rglob("*.pyc"))
    if not found:
        raise BuildError(f"{python} compiled nothing below {prefix}")
    return {path.relative_to(scratch).as_posix(): file(path.read_bytes()) for path in found}


def modules(kernel: Path, patterns: Path) -> Tree:
    """The wanted kernel modules and all they depend on, with an index made for just these."""
    (source,) = (kernel / "lib/modules").iterdir()
    debian.run("depmod", "-b", str(kernel), source.name)
    wanted = _wanted_modules(source, lines(patterns))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "lib/modules", source.name)
        for name in [*sorted(wanted), *MODULE_INDEX]:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)
        debian.run("depmod", "-b", scratch, source.name)
        kept = [path for path in sorted(target.rglob("*")) if path.name not in UNUSED_INDEX]
        return {
            f"usr/lib/modules/{path.relative_to(target.parent).as_posix()}": folder()
            if path.is_dir()
            else file(path.read_bytes())
            for path in [target, *kept]
        }


def _wanted_modules(source: Path, patterns: list[str]) -> set[str]:
    chosen = [f"kernel/{pattern}" for pattern in patterns if not pattern.startswith("!")]
    dropped = [f"kernel/{pattern[1:]}" for pattern in patterns if pattern.startswith("!")]
    wanted: set[str] = set()
    for line in (source / "modules.dep").read_text().splitlines():
        name, _, needs = line.partition(":")
        if _matches(name, chosen) and not _matches(name, dropped):
            wanted |= {name, *needs.split()}
    return wanted


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def skeleton(masked: Path) -> Tree:
    """Files of every image: mount points, the first console, and masked units for a quick start."""
    tree = {name: folder() for name in ("proc", "sys", "dev", "run")}
    tree["tmp"] = folder(0o1777)
    tree["dev/console"] = Entry(stat.S_IFCHR | 0o600, device=(5, 1))
    tree |= {f"etc/systemd/system/{unit}": link("/dev/null") for unit in lines(masked)}
    return tree
