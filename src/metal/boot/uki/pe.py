"""EFI programs (PE/COFF): what their headers say, and new headers for added sections and signatures.

Headers are read and written by pefile; contents of sections are only referred to, because they are large.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pefile

from metal.boot.errors import ImageError
from metal.boot.uki.layout import Layout, padded

_SECTION_HEADER = 40
_READABLE_DATA = 0x40000040
"""IMAGE_SCN_CNT_INITIALIZED_DATA and IMAGE_SCN_MEM_READ."""
_PAGE = 4096
_SECURITY = 4
"""The data directory of signatures (IMAGE_DIRECTORY_ENTRY_SECURITY)."""
MACHINES = {"amd64": 0x8664, "arm64": 0xAA64}
"""PE machine types by architecture, as OCI names it."""


@dataclass(frozen=True)
class Section:
    """A section to add. `memory` is its size in memory, at least that of its content."""

    name: str
    content: Layout
    memory: int = 0


@dataclass(frozen=True)
class Facts:
    """What is read from the headers of an EFI program."""

    machine: int
    memory: int
    """Bytes it needs in memory (SizeOfImage)."""
    checksum: int
    """File offset of the checksum, four bytes."""
    signatures: int
    """File offset of the directory entry of the signatures: their file offset and size, four bytes each."""
    signed: tuple[int, int]
    """Offset and size of the signatures; zeros without any."""
    contiguous: bool
    """Whether headers and sections follow each other without a gap. A file with gaps cannot be signed."""


def facts(path: Path) -> Facts:
    """Read the headers of a file. Raises ImageError when it is no EFI program, OSError."""
    with _parsed(path.name, name=str(path)) as pe:
        return _facts(pe)


def with_sections(stub: Path, sections: Sequence[Section]) -> tuple[Layout, Facts]:
    """The stub with these sections appended, in this order, unsigned. Raises ImageError, OSError."""
    with _parsed(stub.name, data=stub.read_bytes()) as pe:
        return _with_sections(pe, sections)


def _with_sections(pe: Any, sections: Sequence[Section]) -> tuple[Layout, Facts]:
    end = max(section.PointerToRawData + section.SizeOfRawData for section in pe.sections)
    # The symbols follow the sections, where the new ones begin.
    pe.FILE_HEADER.PointerToSymbolTable = pe.FILE_HEADER.NumberOfSymbols = 0
    pe.OPTIONAL_HEADER.CheckSum = 0
    signatures = pe.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY]
    signatures.VirtualAddress = signatures.Size = 0
    alignment = pe.OPTIONAL_HEADER.FileAlignment
    body = Layout(())
    for section in sections:
        content = padded(section.content, alignment)
        _add(pe, section, end + body.size, content.size)
        body += content
    return Layout((bytes(pe.write())[:end],)) + body, _facts(pe)


@contextmanager
def _parsed(shown: str, **source: object) -> Iterator[Any]:
    try:
        pe = pefile.PE(fast_load=True, **source)
    except pefile.PEFormatError as exc:
        raise ImageError("NotAnEFIProgram", f"{shown} is no EFI program: {exc}") from None
    with closing(pe):
        if not pe.sections or pe.OPTIONAL_HEADER.NumberOfRvaAndSizes <= _SECURITY:
            raise ImageError("NotAnEFIProgram", f"{shown} is no EFI program: it has no sections or no data directories")
        yield pe


def _add(pe: Any, section: Section, offset: int, size: int) -> None:
    last = pe.sections[-1]
    place = last.get_file_offset() + _SECTION_HEADER
    if place + _SECTION_HEADER > min(other.PointerToRawData for other in pe.sections):
        raise ImageError("StubInvalid", f"the headers of the UEFI stub have no room for the section {section.name}")
    header = pefile.SectionStructure(pe.__IMAGE_SECTION_HEADER_format__, pe=pe)
    header.__unpack__(bytes(_SECTION_HEADER))
    header.set_file_offset(place)
    header.Name = section.name.encode()
    header.Misc_VirtualSize = header.Misc = max(section.content.size, section.memory)
    header.VirtualAddress = _aligned(last.VirtualAddress + last.Misc_VirtualSize, pe)
    header.PointerToRawData, header.SizeOfRawData = offset, size
    header.Characteristics = _READABLE_DATA
    pe.__structures__.append(header)
    pe.sections.append(header)
    pe.FILE_HEADER.NumberOfSections += 1
    pe.OPTIONAL_HEADER.SizeOfInitializedData += size
    pe.OPTIONAL_HEADER.SizeOfImage = _aligned(header.VirtualAddress + header.Misc_VirtualSize, pe)


def _aligned(address: int, pe: Any) -> int:
    alignment = max(pe.OPTIONAL_HEADER.SectionAlignment, _PAGE)
    return int(address + -address % alignment)


def _facts(pe: Any) -> Facts:
    optional = pe.OPTIONAL_HEADER
    directory = optional.DATA_DIRECTORY[_SECURITY]
    return Facts(
        machine=pe.FILE_HEADER.Machine,
        memory=optional.SizeOfImage,
        checksum=optional.get_field_absolute_offset("CheckSum"),
        signatures=directory.get_file_offset(),
        signed=(directory.VirtualAddress, directory.Size),
        contiguous=_is_contiguous(pe),
    )


def _is_contiguous(pe: Any) -> bool:
    end = pe.OPTIONAL_HEADER.SizeOfHeaders
    for section in sorted(pe.sections, key=lambda section: int(section.PointerToRawData)):
        if section.SizeOfRawData:
            if section.PointerToRawData != end:
                return False
            end += section.SizeOfRawData
    return True
