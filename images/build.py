"""Builds OS images from Debian packages as OCI layouts: `python images/build.py discovery demo --out DIR`.

The same inputs give the same digest; earlier results are taken from the cache.
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
from dataclasses import dataclass
from pathlib import Path

if not __package__:  # started as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from images import debian, oci, rootfs, tree
from images.debian import BuildError

HERE = Path(__file__).resolve().parent
OVERLAYS = HERE / "overlay"
CACHE = HERE.parent / ".cache/images"
VARIANTS = ("discovery", "demo")
KERNELS = {"cloud": "linux-image-cloud-amd64", "generic": "linux-image-amd64"}
COMMAND_LINE = "console=tty0 console=ttyS0,115200 loglevel=5"
KEPT = 4
"""Results of older inputs that stay in the cache, per kind."""


@dataclass(frozen=True)
class Plan:
    """All inputs of a build."""

    source_list: str
    packages: tuple[str, ...]
    kernel: str
    kernel_version: str
    versions: dict[str, str]

    def root_digest(self) -> str:
        """Names the root filesystem; building it does not depend on overlays or the kernel."""
        mine = {name: version for name, version in self.versions.items() if not name.startswith("linux-image-")}
        return _digest(self.packages, mine, _tool("mmdebstrap", "--version"), _files(HERE / "rootfs.py"))

    def image_digest(self, variant: str) -> str:
        """Names an image."""
        code = _files(*sorted(HERE.glob("*.py")), *sorted(HERE.glob("*.txt")))
        python = _tool(rootfs.compiler("python3.11"), "--version")
        above = [tree.from_folder(OVERLAYS / name) for name in ("base", variant)]
        contents = [(name, entry.mode, entry.data.hex()) for layer in above for name, entry in layer.items()]
        tools = [python, _tool("lz4", "--version"), _tool("depmod", "--version")]
        return _digest(self.root_digest(), self.kernel, self.kernel_version, code, contents, tools, COMMAND_LINE)


def make_plan(kernel: str) -> Plan:
    """Resolve the packages with apt's index."""
    source_list = debian.sources()
    packages = tuple(tree.lines(HERE / "packages.txt"))
    versions = debian.resolve([*packages, KERNELS[kernel]], source_list)
    (image,) = [name for name in versions if name.startswith("linux-image-") and name not in KERNELS.values()]
    return Plan(source_list, packages, image, versions[image], versions)


def build(plan: Plan, variant: str, cache: Path) -> Path:
    """The image's OCI layout, built unless the cache has it."""
    done = cache / f"{variant}-{plan.image_digest(variant)}"
    if done.exists():
        os.utime(done)
        return done
    contents = assemble(plan, variant, cache)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        initramfs = Path(scratch, "initramfs")
        compress(contents, initramfs)
        (vmlinuz,) = (kernel_files(plan, cache) / "boot").glob("vmlinuz-*")
        layout = Path(scratch, "layout")
        oci.write_layout(layout, {"kernel": vmlinuz, "initramfs": initramfs}, COMMAND_LINE)
        layout.rename(done)
    _forget_old(cache, variant)
    return done


def assemble(plan: Plan, variant: str, cache: Path) -> tree.Tree:
    """All files of the initramfs."""
    contents = tree.from_tar(root_archive(plan, cache), tree.matcher(tree.lines(HERE / "exclude.txt")))
    tree.overlay(contents, rootfs.byte_code(contents))
    tree.overlay(contents, rootfs.modules(kernel_files(plan, cache), HERE / "modules.txt"))
    tree.overlay(contents, rootfs.skeleton(HERE / "masked-units.txt"))
    for layer in ("base", variant):
        tree.overlay(contents, tree.from_folder(OVERLAYS / layer))
    tree.add_parents(contents)
    return contents


def compress(contents: tree.Tree, out: Path) -> None:
    """Writes the initramfs in lz4's legacy format, the one that the kernel reads."""
    with tempfile.NamedTemporaryFile(dir=out.parent) as plain:
        with open(plain.name, "wb") as archive:
            tree.write_cpio(contents, archive)
        debian.run("lz4", "-9", "-l", "-q", plain.name, str(out))


def root_archive(plan: Plan, cache: Path) -> Path:
    """The root filesystem as a tar archive, made unless the cache has it."""
    done = cache / f"root-{plan.root_digest()}.tar"
    if not done.exists():
        rootfs.bootstrap(list(plan.packages), plan.source_list, plan.versions, done)
        _forget_old(cache, "root")
    return done


def kernel_files(plan: Plan, cache: Path) -> Path:
    """The unpacked kernel package, fetched unless the cache has it."""
    done = cache / f"kernel-{plan.kernel}-{plan.kernel_version}"
    if not done.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            unpacked = Path(scratch, "kernel")
            debian.unpack(plan.kernel, plan.kernel_version, plan.source_list, unpacked)
            unpacked.rename(done)
        _forget_old(cache, "kernel")
    return done


def publish(layout: Path, out: Path) -> None:
    """Copy the layout (with hard links where possible) to the output directory."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(layout, out, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _forget_old(cache: Path, kind: str) -> None:
    found = sorted(cache.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[KEPT:]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _tool(*command: str) -> str:
    return debian.run(*command).strip()


def _files(*paths: Path) -> list[tuple[str, str]]:
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths]


def _digest(*inputs: object) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def check_reproducible(plan: Plan, variants: list[str], cache: Path) -> None:
    """Build everything a second time without the cache and compare every byte.

    Raises:
        BuildError: a digest differs.
    """
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for variant in variants:
            first, second = build(plan, variant, cache), build(plan, variant, Path(scratch))
            if (first / "index.json").read_bytes() != (second / "index.json").read_bytes():
                raise BuildError(f"the {variant} image differs when built again: {_differences(first, second)}")
            print(f"{variant}: built twice, same digest")


def _differences(first: Path, second: Path) -> str:
    names = [{path.name for path in (layout / "blobs/sha256").iterdir()} for layout in (first, second)]
    return f"only in the first {sorted(names[0] - names[1])}, only in the second {sorted(names[1] - names[0])}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build OS images from Debian packages as OCI layouts.")
    parser.add_argument("variant", nargs="*", choices=[*VARIANTS, []], help="which images (default: all)")
    parser.add_argument("--out", type=Path, default=CACHE / "out", help="folder that gets one layout per image")
    parser.add_argument("--kernel", choices=sorted(KERNELS), default="cloud", help="generic for real hardware")
    parser.add_argument("--check-reproducible", action="store_true", help="build twice from nothing and compare")
    options = parser.parse_args()
    try:
        _run(options)
    except (BuildError, subprocess.SubprocessError, OSError) as failed:
        sys.exit(f"no image: {failed}")


def _run(options: argparse.Namespace) -> None:
    variants = options.variant or list(VARIANTS)
    CACHE.mkdir(parents=True, exist_ok=True)
    plan = make_plan(options.kernel)
    if options.check_reproducible:
        check_reproducible(plan, variants, CACHE)
        return
    for variant in variants:
        started = time.monotonic()
        layout = build(plan, variant, CACHE)
        publish(layout, options.out / variant)
        digest = hashlib.sha256((layout / "index.json").read_bytes()).hexdigest()
        print(f"{options.out / variant}: sha256:{digest} ({time.monotonic() - started:.1f} s)")


if __name__ == "__main__":
    main()
