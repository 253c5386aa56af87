"""Headers of EFI programs."""

from pathlib import Path

import pefile
import pytest

from metal.boot.errors import ImageError
from metal.boot.uki.layout import Layout
from metal.boot.uki.pe import Section, facts, with_sections
from tests.boot.uki.programs import AMD64, ARM64, program


@pytest.mark.parametrize("machine", [AMD64, ARM64])
def test_added_sections_are_read_back(tmp_path: Path, machine: int) -> None:
    """Each follows the one before, in the file and in memory; symbols behind the sections are left out."""
    stub = program(tmp_path / "stub", machine=machine)
    sections = (Section(".linux", Layout((b"k" * 700,)), 9000), Section(".cmdline", Layout((b"c" * 512,))))

    layout, found = with_sections(stub, sections)

    with pefile.PE(data=layout.read()) as pe:
        assert [section.Name.rstrip(b"\0") for section in pe.sections] == [b".text0", b".linux", b".cmdline"]
        assert pe.sections[1].get_data().rstrip(b"\0") == b"k" * 700
        assert pe.sections[2].get_data() == b"c" * 512
        assert pe.sections[1].Misc_VirtualSize == 9000
        assert pe.sections[2].VirtualAddress == 0x2000 + 0x3000
        assert pe.OPTIONAL_HEADER.SizeOfImage == 0x6000
        assert pe.FILE_HEADER.PointerToSymbolTable == pe.FILE_HEADER.NumberOfSymbols == 0
    assert layout.size == 0x400 + 512 + 1024 + 512
    assert found.contiguous
    assert found.machine == machine


def test_a_stub_without_room_for_headers_is_refused(tmp_path: Path) -> None:
    """Its sections begin right after their headers."""
    stub = program(tmp_path / "stub", headers=512, sections=4)
    with pytest.raises(ImageError, match=r"no room for the section \.linux"):
        with_sections(stub, [Section(".linux", Layout((b"k",)))])


@pytest.mark.parametrize("content", [b"", b"#!ipxe\n", b"MZ" + bytes(200)], ids=["empty", "script", "DOS"])
def test_what_is_no_efi_program_is_refused(tmp_path: Path, content: bytes) -> None:
    """The error names the file."""
    path = tmp_path / "vmlinuz"
    path.write_bytes(content)
    with pytest.raises(ImageError, match="vmlinuz is no EFI program") as caught:
        facts(path)
    assert caught.value.reason == "NotAnEFIProgram"


def test_a_gap_between_sections_is_seen(tmp_path: Path) -> None:
    """The firmware would not hash it."""
    assert facts(program(tmp_path / "a")).contiguous
    assert not facts(program(tmp_path / "b", gap=512)).contiguous
