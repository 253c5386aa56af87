"""Builds the manager's container image: `python images/manager/build.py [--out DIR]`.

The same commit, lock file and Debian packages give the same digest; earlier results are taken from the cache.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

if not __package__:  # started as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from images import debian, rootfs, tree
from images.debian import BuildError
from images.manager import butane, container, python, root, sbom

TOP = python.TOP
HERE = Path(__file__).resolve().parent
CACHE = TOP / ".cache/images"
LIMIT = 150 * 10**6
"""Most bytes that the image may weigh as it is pulled."""
SBOM = f"usr/share/sbom/{sbom.NAME}.spdx.json"
KEPT = 2
"""Results of older inputs that stay in the cache, per kind."""


@dataclass(frozen=True)
class Plan:
    """All that a build depends on, beside the code of this folder and the sources."""

    source_list: str
    packages: dict[str, str]
    version: str
    revision: str
    epoch: int
    butane: Path

    def root_digest(self) -> str:
        """Names Debian's part."""
        return _digest(self.packages, _files(HERE / "packages.txt", HERE / "root.py"))

    def image_digest(self) -> str:
        """Names the image."""
        code = _files(*sorted(HERE.glob("*")), *sorted(HERE.parent.glob("*.py")))
        inputs = _files(TOP / "uv.lock", TOP / "pyproject.toml", TOP / "README.md", TOP / "LICENSE")
        sources = [(name, entry.data.hex()) for name, entry in _sources().items()]
        program = _files(self.butane / "butane")
        return _digest(self.root_digest(), self.revision, self.epoch, code, inputs, sources, program)

    def labels(self) -> dict[str, str]:
        """What the image says about itself (OCI image spec, annotations)."""
        told = {
            "title": sbom.NAME,
            "description": "Bare-metal automation for Kubernetes: controllers, boot server and registry.",
            "licenses": "Apache-2.0",
            "version": self.version,
            "revision": self.revision,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.epoch)),
        }
        return {f"org.opencontainers.image.{name}": value for name, value in told.items()}


def make_plan() -> Plan:
    """Asks git for commit and time, and apt for versions. Raises BuildError."""
    listed = debian.sources()
    version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    revision = _git("rev-parse", "HEAD")
    if _git("status", "--porcelain", "--untracked-files=normal", "--", "src", "uv.lock", "pyproject.toml", "images"):
        revision += "-dirty"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))
    return Plan(listed, root.versions(listed), version, revision, epoch, butane.build())


def build(plan: Plan, cache: Path) -> Path:
    """The folder with the OCI layout `image` and the bill of materials, built unless the cache has it."""
    done = cache / f"manager-image-{plan.image_digest()}"
    if done.exists():
        os.utime(done)
        return done
    contents, bill = assemble(plan, cache)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        archive = Path(scratch, "root.tar")
        container.write_tar(contents, archive, plan.epoch)
        container.commit(archive, made / "image", plan.labels(), plan.version, plan.epoch)
        (made / "sbom.spdx.json").write_text(bill)
        made.rename(done)
    _forget_old(cache, "manager-image")
    return done


def assemble(plan: Plan, cache: Path) -> tuple[tree.Tree, str]:
    """Everything that is in the image, and its bill of materials."""
    debs = cache / f"manager-root-{plan.root_digest()}"
    if not debs.exists():
        root.bootstrap(plan.source_list, debs)
        _forget_old(cache, "manager-root")
    moved = [one.name for one in root.packages(debs) if plan.packages.get(one.name) != one.version]
    if moved:
        shutil.rmtree(debs)
        raise BuildError(f"the mirror has other versions than apt's index: run apt-get update ({', '.join(moved)})")
    contents = root.contents(debs)
    site, distributions = python.contents(TOP)
    tree.overlay(contents, site)
    programs, modules = butane.contents(plan.butane)
    tree.overlay(contents, programs)
    tree.overlay(contents, rootfs.byte_code(contents, also=[python.SITE]))
    bill = sbom.document(root.packages(debs), distributions, modules, plan.version, plan.epoch)
    contents[SBOM] = tree.file(bill.encode())
    tree.add_parents(contents)
    return contents, bill


def manifest(layout: Path) -> tuple[str, dict[str, object], int]:
    """Digest and text of the layout's only manifest, and the bytes that a pull transfers."""
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    text = json.loads((layout / "blobs" / described["digest"].replace(":", "/")).read_text())
    size = described["size"] + sum(part["size"] for part in [text["config"], *text["layers"]])
    return described["digest"], text, size


def publish(done: Path, out: Path) -> None:
    """Copy the layout and the bill of materials to the output directory."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(done / "image", out)
    shutil.copyfile(done / "sbom.spdx.json", out.with_name(f"{out.name}.spdx.json"))


def _sources() -> tree.Tree:
    found = tree.from_folder(TOP / "src")
    return {name: entry for name, entry in found.items() if "__pycache__" not in name}


def _git(*words: str) -> str:
    return debian.run("git", "-C", str(TOP), *words).strip()


def _files(*paths: Path) -> list[tuple[str, str]]:
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths if path.is_file()]


def _digest(*inputs: object) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def _forget_old(cache: Path, kind: str) -> None:
    found = sorted(cache.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[KEPT:]:
        shutil.rmtree(path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build the manager's container image as an OCI layout.")
    parser.add_argument("--out", type=Path, default=CACHE / "out/manager", help="folder of the layout (%(default)s)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder that keeps results (%(default)s)")
    options = parser.parse_args()
    try:
        _run(options.out, options.cache)
    except (BuildError, subprocess.SubprocessError, OSError) as failed:
        sys.exit(f"no image: {failed}")


def _run(out: Path, cache: Path) -> None:
    started = time.monotonic()
    cache.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = build(make_plan(), cache)
    digest, _, size = manifest(done / "image")
    if size > LIMIT:
        raise BuildError(f"it weighs {size} bytes; {LIMIT} are the limit")
    publish(done, out)
    print(f"{out}: {digest}, {size / 10**6:.1f} MB to pull ({time.monotonic() - started:.1f} s)")


if __name__ == "__main__":
    main()
