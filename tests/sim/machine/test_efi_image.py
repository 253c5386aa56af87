"""What a simulated firmware finds in a file."""

from pathlib import Path

import pytest

from metal.boot.uki.authenticode import Signer
from metal.boot.uki.image import Ukis
from metal.boot.uki.iso import iso as own_iso
from metal.sim.images.registry import fake_image
from metal.sim.machine import efi_image
from tests.boot.uki.programs import cached, program, site_key
from tests.sim.machine.efi import iso, pe, uki


def test_a_unified_kernel_image_has_kernel_initrd_and_arguments() -> None:
    """Without the padding of its sections."""
    image = efi_image.read(uki("quiet token=secret", b"K" * 700, b"I"))
    assert image is not None
    assert (image.kernel, image.initrd, image.args) == (b"K" * 700, b"I", ("quiet", "token=secret"))
    assert image.is_uki
    assert not image.signed
    assert "secret" not in repr(image)


def test_any_other_image_is_ipxe_with_its_script() -> None:
    """Embedded in its data, up to the zero byte."""
    image = efi_image.read(pe({".data": b"xx#!ipxe\nchain http://x/\n\0yy"}, signed=True))
    assert image is not None
    assert (image.is_uki, image.signed, image.script) == (False, True, "#!ipxe\nchain http://x/\n")
    plain = efi_image.read(pe({".text": b"code"}))
    assert plain is not None
    assert plain.script == ""


def test_the_image_in_an_iso_is_found() -> None:
    """The letters MZ elsewhere do not mislead."""
    image = efi_image.read_iso(iso(uki("quiet")))
    assert image is not None
    assert image.args == ("quiet",)
    assert efi_image.read_iso(iso(b"")) is None


def test_what_is_no_image_is_none() -> None:
    """Text, a cut header, nothing."""
    for data in (b"", b"<html>", b"MZ", uki()[:80], b"MZ" + b"\xff" * 100):
        assert efi_image.read(data) is None


async def test_the_kernels_of_simulated_images_fit_into_a_unified_kernel_image(tmp_path: Path) -> None:
    """So that a simulated machine runs the same image by each boot method."""
    image, kernel, initrd = fake_image("demo"), tmp_path / "kernel", tmp_path / "initrd"
    kernel.write_bytes(image.kernel)
    initrd.write_bytes(image.initrd)
    made = await Ukis({"amd64": program(tmp_path / "stub")}).make("amd64", cached(kernel), cached(initrd), "quiet")
    read = efi_image.read(made.read())
    assert read is not None
    assert (read.kernel, read.initrd) == (image.kernel, image.initrd)


@pytest.mark.parametrize("signed", [True, False])
async def test_what_the_boot_server_makes_is_read(tmp_path: Path, signed: bool) -> None:
    """Kernel, initramfs and arguments of its unified kernel images, and of its ISOs; and whether they are signed."""
    kernel, stub, initrd = program(tmp_path / "kernel"), program(tmp_path / "stub"), tmp_path / "initrd"
    initrd.write_bytes(b"an initramfs")
    ukis = Ukis({"amd64": stub}, Signer.from_pem(*site_key()) if signed else None)
    made = await ukis.make("amd64", cached(kernel), cached(initrd), "quiet console=ttyS0")
    for image in (efi_image.read(made.read()), efi_image.read_iso(own_iso(made, "amd64").read())):
        assert image is not None
        assert image.args == ("quiet", "console=ttyS0")
        assert (image.kernel, image.initrd) == (kernel.read_bytes().rstrip(b"\0"), b"an initramfs")
        assert image.signed is signed
