"""What an image's name in the cache depends on, and what apt is asked."""

import dataclasses
import io
import os
import tarfile
from pathlib import Path

import pytest
from images.build import Plan
from images.debian import BuildError

from images import build, debian, rootfs, tree

PLAN = Plan(
    source_list="deb http://deb.debian.org/debian bookworm main\n",
    packages=("systemd",),
    kernel="linux-image-6.1.0-1-cloud-amd64",
    kernel_version="6.1.1-1",
    versions={"systemd": "252.1", "linux-image-6.1.0-1-cloud-amd64": "6.1.1-1"},
)


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs that build images are not on every machine."""
    monkeypatch.setattr(build, "_tool", lambda *command: " ".join(command))
    monkeypatch.setattr(rootfs, "compiler", lambda version: version)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the front of PATH for made-up programs."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def fake(folder: Path, name: str, script: str) -> None:
    """A made-up program."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_the_same_inputs_have_the_same_name() -> None:
    """A name does not depend on the run, nor on which mirror had the packages."""
    elsewhere = dataclasses.replace(PLAN, source_list="deb http://mirror.example/debian bookworm main\n")

    assert PLAN.image_digest("demo") == PLAN.image_digest("demo") == elsewhere.image_digest("demo")


@pytest.mark.parametrize(
    "change",
    [
        {"packages": ("systemd", "udev")},
        {"versions": {"systemd": "252.2"}},
        {"kernel_version": "6.1.2-1"},
        {"kernel": "linux-image-6.1.0-1-amd64"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_input_counts(change: dict[str, object]) -> None:
    """Another version is another image."""
    assert dataclasses.replace(PLAN, **change).image_digest("demo") != PLAN.image_digest("demo")  # type: ignore[arg-type] # one table for fields of several types


def test_variants_differ_and_share_the_root() -> None:
    """An overlay counts for the image and not for the root filesystem."""
    before = PLAN.root_digest()
    assert PLAN.image_digest("discovery") != PLAN.image_digest("demo")

    new_kernel = dataclasses.replace(PLAN, versions={"systemd": "252.1", "linux-image-6.1.0-2-cloud-amd64": "6.1.2-1"})

    assert new_kernel.root_digest() == before


def test_an_overlay_file_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One changed byte of an overlay is another image."""
    monkeypatch.setattr(build, "OVERLAYS", tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/motd").write_text("a")
    before = PLAN.image_digest("demo")

    (tmp_path / "demo/motd").write_text("b")

    assert PLAN.image_digest("demo") != before


def test_only_debians_own_sources_are_used(program: Path) -> None:
    """Other vendors' packages would make images that cannot be reproduced elsewhere."""
    fake(
        program,
        "apt-get",
        "echo 'Debian http://deb.debian.org/debian/ bookworm main'; echo 'Other https://vendor.example/ nodistro main'",
    )

    found = debian.sources()

    assert found.endswith("http://deb.debian.org/debian/ bookworm main\n")
    assert "vendor" not in found
    assert debian.suite(found) == "bookworm"


def test_a_machine_without_debian_sources_is_told_what_to_do(program: Path) -> None:
    """The index may only be missing."""
    fake(program, "apt-get", "echo 'Other https://vendor.example/ nodistro main'")

    with pytest.raises(BuildError, match="apt-get update"):
        debian.sources()


def test_versions_come_from_apts_simulation(program: Path) -> None:
    """Epochs and plus signs are part of a version."""
    fake(program, "apt-get", "echo 'Inst libc6 (2.36-9+deb12u14 Debian:12) []'; echo 'Inst passwd (1:4.13 Debian:12)'")

    assert debian.resolve(["passwd"], PLAN.source_list) == {"libc6": "2.36-9+deb12u14", "passwd": "1:4.13"}


def test_a_program_that_fails_is_quoted(program: Path) -> None:
    """The end of its error output is what a person needs."""
    fake(program, "apt-get", "echo 'E: Unable to locate package nonsense' >&2; exit 100")

    with pytest.raises(BuildError, match=r"apt-get failed with 100:\nE: Unable to locate"):
        debian.resolve(["nonsense"], PLAN.source_list)


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With where to look."""
    with pytest.raises(BuildError, match=r"mmdebstrap-of-nobody is missing.*docs/lab.md"):
        debian.run("mmdebstrap-of-nobody")


def test_the_mirrors_versions_must_be_the_resolved_ones(tmp_path: Path) -> None:
    """A mirror that moved on since apt's index was read would give an image under a wrong name."""
    status = b"Package: systemd\nStatus: install ok installed\nVersion: 252.9\n\n"
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        member = tarfile.TarInfo("./var/lib/dpkg/status")
        member.size = len(status)
        archive.addfile(member, io.BytesIO(status))

    with pytest.raises(BuildError, match=r"apt-get update.*252\.9"):
        rootfs._check_versions(tmp_path / "root.tar", PLAN.versions)
    rootfs._check_versions(tmp_path / "root.tar", {"systemd": "252.9"})


def test_wanted_modules_bring_their_dependencies(tmp_path: Path) -> None:
    """A pattern with an exclamation mark takes away what another one chose, but not what others need."""
    (tmp_path / "modules.dep").write_text(
        "kernel/drivers/net/a.ko: kernel/lib/crc.ko\nkernel/lib/crc.ko:\nkernel/drivers/net/b.ko:\nkernel/fs/x.ko:\n"
    )

    assert rootfs._wanted_modules(tmp_path, ["drivers/net/*", "!drivers/net/b.ko"]) == {
        "kernel/drivers/net/a.ko",
        "kernel/lib/crc.ko",
    }


def test_the_overlays_are_complete() -> None:
    """What Ignition trips over without, and the first process itself, are in every image."""
    base = tree.from_folder(build.OVERLAYS / "base")

    assert base["init"].mode & 0o111
    assert base["etc/acpi/PWRF/00000080"].mode & 0o111
    assert base["usr/sbin/setfiles"] == tree.link("/usr/bin/true")
    assert b"SELINUXTYPE=none" in base["etc/selinux/config"].data
    for variant in build.VARIANTS:
        assert tree.from_folder(build.OVERLAYS / variant)


def test_masked_units_lead_nowhere() -> None:
    """A masked unit is a link to /dev/null."""
    made = rootfs.skeleton(build.HERE / "masked-units.txt")

    assert made["etc/systemd/system/apt-daily.timer"] == tree.link("/dev/null")
    assert made["dev/console"].device == (5, 1)
    assert made["tmp"] == tree.folder(0o1777)


def test_the_cache_keeps_the_newest(tmp_path: Path) -> None:
    """Old results go, whether file or folder; other kinds stay."""
    for number in range(build.KEPT + 2):
        path = tmp_path / f"demo-{number}"
        path.mkdir()
        os.utime(path, (number, number))
    (tmp_path / "root-1.tar").touch()

    build._forget_old(tmp_path, "demo")

    assert sorted(path.name for path in tmp_path.iterdir()) == [*(f"demo-{n}" for n in range(2, 6)), "root-1.tar"]
