"""UKIs from a kernel, an initramfs and the command line of one machine.

The command line is the last section, of a fixed size. Everything before it is the same for all machines that boot an
image: it is laid out once, and for signatures hashed once.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from metal.boot.errors import ImageError, ScriptError
from metal.boot.uki import authenticode, pe
from metal.boot.uki.authenticode import Signer
from metal.boot.uki.layout import Layout, whole
from metal.boot.uki.pe import Facts, Section

if TYPE_CHECKING:
    from hashlib import _Hash

STUBS = {
    "amd64": Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub"),
    "arm64": Path("/usr/lib/systemd/boot/efi/linuxaa64.efi.stub"),
}
"""Where Debian's package systemd-boot-efi of each architecture has systemd-boot's stub."""
RESERVED = 2048
"""Bytes of the section of the command line: COMMAND_LINE_SIZE of x86 and arm64, with the terminating NUL."""
_BASES = 64
"""Kernels with an initramfs whose layout is kept in memory: some 100 KiB each."""


@dataclass(frozen=True)
class CachedFile:
    """A file of the image cache. Its digest says what it contains."""

    digest: str
    path: Path


@dataclass(frozen=True)
class _Base:
    """A UKI with an empty command line."""

    layout: Layout
    facts: Facts
    hashed: "_Hash | None"
    """The digest for signatures up to the command line; None where nothing is signed."""


class Ukis:
    """Makes UKIs for machines, signed where there is a signer. `stubs` has systemd-boot's stub of each architecture."""

    def __init__(self, stubs: Mapping[str, Path] = STUBS, signer: Signer | None = None) -> None:
        self._stubs, self._signer = stubs, signer
        self._bases: OrderedDict[tuple[str, str, str], _Base] = OrderedDict()
        self._making = asyncio.Lock()

    async def make(self, architecture: str, kernel: CachedFile, initramfs: CachedFile, command_line: str) -> Layout:
        """The UKI with this command line; the same arguments give the same bytes.

        Raises ScriptError for the command line, ImageError for the kernel or the stub, OSError.
        """
        section = reserved(command_line)
        base = await self._base(architecture, kernel, initramfs)
        content = base.layout.replaced(base.layout.size - RESERVED, section)
        if self._signer is None or base.hashed is None:
            return content
        hashed = base.hashed.copy()
        hashed.update(section)
        return authenticode.signed(content, base.facts, self._signer, hashed.digest())

    async def _base(self, architecture: str, kernel: CachedFile, initramfs: CachedFile) -> _Base:
        key = architecture, kernel.digest, initramfs.digest
        async with self._making:  # many machines boot the same image at once, and hashing takes time
            if key not in self._bases:
                self._bases[key] = await asyncio.to_thread(self._lay_out, architecture, kernel.path, initramfs.path)
            self._bases.move_to_end(key)
            if len(self._bases) > _BASES:
                self._bases.popitem(last=False)
            return self._bases[key]

    def _lay_out(self, architecture: str, kernel: Path, initramfs: Path) -> _Base:
        stub = self._stub(architecture)
        program = _checked(pe.facts(kernel), architecture, "kernel")
        sections = (
            # In memory as large as the kernel asks for: stubs before systemd 252 decompress it in place.
            Section(".linux", whole(kernel), program.memory),
            Section(".initrd", whole(initramfs)),
            Section(".cmdline", Layout((bytes(RESERVED),))),
        )
        layout, facts = pe.with_sections(stub, sections)
        _checked(facts, architecture, "UEFI stub")
        if self._signer is None:
            return _Base(layout, facts, None)
        beginning = layout.cut(0, layout.size - RESERVED)
        return _Base(layout, facts, authenticode.begin_digest(beginning, facts))

    def _stub(self, architecture: str) -> Path:
        stub = self._stubs.get(architecture)
        if stub is None or not stub.is_file():
            where = f"{stub} is missing" if stub else "none is configured"
            problem = (
                f"no UEFI stub for {architecture} ({where}): install Debian's systemd-boot-efi of that architecture"
            )
            raise ImageError("StubMissing", problem)
        return stub


def reserved(command_line: str) -> bytes:
    """The section of a command line. Raises ScriptError when the kernel would not read it as it is."""
    if not all(" " <= char <= "~" for char in command_line):
        raise ScriptError("the kernel's command line must be printable ASCII without line breaks")
    if len(command_line) >= RESERVED:
        raise ScriptError(
            f"the kernel's command line is longer than {RESERVED - 1} bytes: shorten the image's commandLine"
        )
    return command_line.encode().ljust(RESERVED, b"\0")


def _checked(facts: Facts, architecture: str, what: str) -> Facts:
    if facts.machine != pe.MACHINES.get(architecture):
        raise ImageError(
            "ArchitectureMismatch", f"the {what} is for machine {facts.machine:#x}, not for {architecture}"
        )
    return facts
