"""UKIs from a kernel, an initramfs and a command line."""

import asyncio
from pathlib import Path
from typing import Any

import pefile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.boot.errors import ImageError, ScriptError
from metal.boot.uki import authenticode
from metal.boot.uki.authenticode import Signer, signed
from metal.boot.uki.image import RESERVED, STUBS, CachedFile, Ukis
from metal.boot.uki.layout import Layout
from metal.boot.uki.pe import Facts, facts
from tests.boot.uki.programs import ARM64, cached, program, run, site_key

LINES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=RESERVED - 1)
SIGNER = Signer.from_pem(*site_key())


class Parts:
    """A stub, a kernel and an initramfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stub = program(folder / "stub")
        self.kernel = cached(program(folder / "vmlinuz", memory=0x9000))
        (folder / "initrd").write_bytes(b"070701 initramfs " * 100)
        self.initramfs = cached(folder / "initrd")

    def ukis(self, signer: Signer | None = None) -> Ukis:
        return Ukis({"amd64": self.stub}, signer)

    def make(self, ukis: Ukis, line: str) -> Layout:
        return asyncio.run(ukis.make("amd64", self.kernel, self.initramfs, line))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("uki"))


def test_a_uki_has_kernel_initramfs_and_command_line(parts: Parts) -> None:
    """In the sections where systemd's stub looks for them; the kernel has the memory that it asks for."""
    layout = parts.make(parts.ukis(), "console=ttyS0 quiet")

    with pefile.PE(data=layout.read()) as pe:
        sections = {section.Name.rstrip(b"\0").decode(): section for section in pe.sections}
        kernel, initramfs = parts.kernel.path.read_bytes(), parts.initramfs.path.read_bytes()
        assert list(sections) == [".text0", ".linux", ".initrd", ".cmdline"]
        assert sections[".linux"].get_data()[: len(kernel)] == kernel
        assert sections[".linux"].Misc_VirtualSize == 0x9000
        assert sections[".initrd"].get_data()[: len(initramfs)] == initramfs
        assert sections[".initrd"].Misc_VirtualSize == len(initramfs)
        assert sections[".cmdline"].get_data() == b"console=ttyS0 quiet".ljust(RESERVED, b"\0")


@given(first=LINES, second=LINES)
def test_only_the_command_line_differs_between_machines(parts: Parts, first: str, second: str) -> None:
    """Size and all other bytes are the same, so that they are known before a machine asks."""
    ukis = parts.ukis()
    one, other = parts.make(ukis, first).read(), parts.make(ukis, second).read()

    assert one[:-RESERVED] == other[:-RESERVED]
    assert one[-RESERVED:].rstrip(b"\0").decode() == first
    assert other[-RESERVED:].rstrip(b"\0").decode() == second


@settings(max_examples=20)
@given(line=LINES)
def test_the_signature_covers_the_command_line(parts: Parts, line: str) -> None:
    """The digest that continues from what all machines have in common is that of the whole program."""
    plain = parts.make(parts.ukis(), line)
    (parts.folder / "plain").write_bytes(plain.read())
    expected = signed(plain, facts(parts.folder / "plain"), SIGNER)

    ukis = parts.ukis(SIGNER)
    parts.make(ukis, "another machine")
    assert parts.make(ukis, line).read() == expected.read()


def test_the_common_part_is_hashed_once(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred machines that boot an image at once cost one reading of it."""
    begun: list[Layout] = []
    begin = authenticode.begin_digest

    def counted(beginning: Layout, facts: Facts) -> Any:
        begun.append(beginning)
        return begin(beginning, facts)

    monkeypatch.setattr(authenticode, "begin_digest", counted)
    ukis = parts.ukis(SIGNER)

    async def boot() -> list[Layout]:
        wanted = (ukis.make("amd64", parts.kernel, parts.initramfs, f"machine={number}") for number in range(20))
        return await asyncio.gather(*wanted)

    made = asyncio.run(boot())

    assert len({layout.read() for layout in made}) == 20
    assert len({layout.size for layout in made}) == len(begun) == 1


@pytest.mark.parametrize("line", ["a\nb", "a\rb", "a\0b", "a\tb", "ä", "x" * RESERVED])
def test_a_command_line_that_the_kernel_would_not_read_as_it_is_is_refused(parts: Parts, line: str) -> None:
    """Line breaks and NUL end it, and it has a longest size."""
    with pytest.raises(ScriptError, match="command line"):
        parts.make(parts.ukis(), line)


def test_a_kernel_for_another_architecture_is_refused(parts: Parts) -> None:
    """The firmware would refuse it, without saying so to anybody."""
    kernel = cached(program(parts.folder / "arm", machine=ARM64))
    with pytest.raises(ImageError, match="the kernel is for machine 0xaa64, not for amd64") as caught:
        asyncio.run(parts.ukis().make("amd64", kernel, parts.initramfs, ""))
    assert caught.value.reason == "ArchitectureMismatch"


@pytest.mark.parametrize("stubs", [{}, {"arm64": Path("/nonexistent/stub")}])
def test_a_missing_stub_names_its_package(parts: Parts, stubs: dict[str, Path]) -> None:
    """The operator knows what to install."""
    with pytest.raises(ImageError, match="install Debian's systemd-boot-efi") as caught:
        asyncio.run(Ukis(stubs).make("arm64", parts.kernel, parts.initramfs, ""))
    assert caught.value.reason == "StubMissing"


@pytest.mark.needs("sbverify", str(STUBS["amd64"]))
def test_a_uki_on_systemds_stub_is_accepted_by_sbverify(parts: Parts) -> None:
    """No gaps between its sections, and a valid signature."""
    kernel = CachedFile("stub", STUBS["amd64"])  # any EFI program
    layout = asyncio.run(Ukis(signer=SIGNER).make("amd64", kernel, parts.initramfs, "console=ttyS0"))
    (parts.folder / "uki.efi").write_bytes(layout.read())
    (parts.folder / "site.pem").write_bytes(site_key()[0])

    printed = run("sbverify", "--cert", parts.folder / "site.pem", parts.folder / "uki.efi")

    assert printed == "Signature verification OK\n"
