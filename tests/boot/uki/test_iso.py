"""The ISO image, read by xorriso."""

import re
import struct
from pathlib import Path

import pytest

from metal.boot.uki.fat import fat
from metal.boot.uki.iso import iso
from metal.boot.uki.layout import FilePart, Layout, whole
from tests.boot.uki.programs import run

MIB = 1024**2


@pytest.mark.needs("xorriso")
@pytest.mark.parametrize(("size", "sectors"), [(5 * MIB, r"1\d{4}"), (33 * MIB, "0")])
def test_the_image_boots_its_file_system_by_uefi(tmp_path: Path, size: int, sectors: str) -> None:
    """xorriso finds one El Torito entry for UEFI and the file system in it; above 32 MiB it extends to the end."""
    program, image = tmp_path / "program", tmp_path / "image.iso"
    with program.open("wb") as file:
        file.write(b"program " * 1000)
        file.truncate(size)
    image.write_bytes(iso(whole(program), "amd64").read())

    printed = run("xorriso", "-indev", image, "-report_el_torito", "plain")
    run("xorriso", "-osirrox", "on", "-indev", image, "-extract", "/EFI.IMG", tmp_path / "efi.img")

    assert re.search(rf"El Torito boot img : +1 +UEFI +y +none +0x0000 +0x00 +{sectors} +23\n", printed), printed
    assert "El Torito img path :   1  /EFI.IMG" in printed
    assert "FAILURE" not in printed
    assert "WARNING" not in printed
    assert (tmp_path / "efi.img").read_bytes().startswith(fat(whole(program), "amd64").read())


def test_the_size_is_known_without_reading_the_program(tmp_path: Path) -> None:
    """HEAD is answered from it; the volume descriptor says the same."""
    layout = iso(Layout((FilePart(tmp_path / "absent", 0, 300 * MIB),)), "amd64")
    (blocks,) = struct.unpack("<I", layout.cut(16 * 2048 + 80, 4).read())
    assert layout.size == blocks * 2048


def test_images_of_two_machines_differ_in_the_program_alone() -> None:
    """A range that was requested twice has the same bytes: no times, no random numbers."""
    one, other = (iso(Layout((letter * 10000,)), "amd64").read() for letter in (b"a", b"b"))
    assert one.replace(b"a" * 10000, b"b" * 10000) == other
