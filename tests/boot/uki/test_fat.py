"""The FAT file system, read by mtools and checked by fsck.vfat."""

from pathlib import Path

import pytest

from metal.boot.errors import ImageError
from metal.boot.uki.fat import fat
from metal.boot.uki.layout import FilePart, Layout, whole
from tests.boot.uki.programs import run

MIB = 1024**2


@pytest.mark.needs("mcopy", "fsck.vfat")
@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
@pytest.mark.parametrize("size", [1, 2048, 9 * MIB + 1])
def test_the_program_is_read_back(tmp_path: Path, size: int, architecture: str) -> None:
    """At the name that firmware of this architecture starts; fsck finds nothing to repair."""
    program, image = tmp_path / "program", tmp_path / "image"
    program.write_bytes((b"0123456789abcdef" * (size // 16 + 1))[:size])
    image.write_bytes(fat(whole(program), architecture).read())

    name = {"amd64": "BOOTX64.EFI", "arm64": "BOOTAA64.EFI"}[architecture]
    run("mcopy", "-i", image, f"::EFI/BOOT/{name}", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == program.read_bytes()
    assert "3 files" in run("fsck.vfat", "-n", image)


@pytest.mark.needs("fsck.vfat")
@pytest.mark.parametrize(
    "size",
    [
        4082 * 2048,  # the fewest clusters
        65522 * 2048,  # the most clusters of 2 KiB
        65522 * 2048 + 1,  # clusters of 4 KiB
        65522 * 32768,  # the largest
    ],
)
def test_every_size_is_a_valid_fat16(tmp_path: Path, size: int) -> None:
    """At the limits between cluster sizes. The content is a hole in a sparse file."""
    layout = fat(Layout((FilePart(tmp_path / "absent", 0, size),)), "amd64")
    headers = layout.parts[0]
    assert isinstance(headers, bytes)
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.write(headers)
        file.truncate(layout.size)

    printed = run("fsck.vfat", "-nv", image)

    assert "16 bit" in printed
    assert "3 files" in printed


def test_a_program_above_two_gibibytes_is_refused(tmp_path: Path) -> None:
    """FAT16 has no larger clusters that all firmware reads."""
    with pytest.raises(ImageError, match="does not fit"):
        fat(Layout((FilePart(tmp_path / "absent", 0, 65522 * 32768 + 1),)), "amd64")
