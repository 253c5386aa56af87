"""What a simulated firmware finds in a file."""

from metal.sim.machine import efi_image
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
