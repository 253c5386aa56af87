"""From an image to a script."""

import pytest
from hypothesis import given

from metal.boot.errors import ScriptError
from metal.boot.oci import Reference
from metal.boot.plan import DEFAULT_ARGS, Blob, Plan
from tests.boot.test_oci import DIGEST, REFERENCES

OTHER = "sha256:" + "cd" * 32
IMAGE = Reference("registry.test:5000", "team/os", "", DIGEST)
BASE = "http://10.0.0.1:8082"


def plan(line: str = "console=ttyS0", *, squashfs: bool = False, ignition: bool = True) -> Plan:
    root = Blob(IMAGE, "sha256:" + "ef" * 32) if squashfs else None
    return Plan(Blob(IMAGE, DIGEST), Blob(IMAGE, OTHER), root, line, ignition)


@given(REFERENCES)
def test_a_blob_survives_its_url(reference: Reference) -> None:
    """Host, port, slashes and colons are preserved."""
    blob = Blob(reference.pinned(DIGEST), OTHER)
    assert Blob.from_url(blob.url(BASE, uuid="u", token="t")) == blob


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"imageName": "a/b", "layerDigest": DIGEST},
        {"imageName": "a/b", "layerDigest": "x", "version": DIGEST},
        {"imageName": "a b", "layerDigest": DIGEST, "version": DIGEST},
        {"imageName": "a@b", "layerDigest": DIGEST, "version": DIGEST},
    ],
)
def test_a_url_that_is_not_ours_is_refused(query: dict[str, str]) -> None:
    """A URL of another form is rejected."""
    with pytest.raises(ValueError, match=r"digest|image"):
        Blob.from_query(query)


def test_ignition_is_only_asked_for_where_there_is_one() -> None:
    """An image without Ignition does not wait for a server."""
    assert "ignition.firstboot=1 ignition.platform.id=metal ignition.config.url=" in plan().script(BASE, "u", "t")
    assert "ignition" not in plan(ignition=False).script(BASE, "u", "t")


def test_an_image_without_arguments_gets_consoles() -> None:
    """Consoles show the boot."""
    assert DEFAULT_ARGS in plan("").script(BASE, "u", "t")


def test_a_squashfs_is_named_to_garden_linux() -> None:
    """As a live system over HTTP, with the boot's token."""
    script = plan(squashfs=True).script(BASE, "u", "t0ken")
    assert "gl.ovl=/:tmpfs gl.url=http://10.0.0.1:8082/image?" in script
    assert "gl.live=1" in script
    assert "gl." not in plan().script(BASE, "u", "t0ken")


def test_the_arguments_are_those_of_the_script_without_what_only_ipxe_needs() -> None:
    """A UKI has its initramfs, and no iPXE expands the MAC address."""
    arguments = plan("quiet").arguments(BASE, "u", "t0ken")
    assert arguments == (
        "quiet",
        "ignition.firstboot=1",
        "ignition.platform.id=metal",
        "ignition.config.url=http://10.0.0.1:8082/ignition/u?token=t0ken",
    )
    assert f"initrd=initrd.img {' '.join(arguments)} BOOTIF=" in plan("quiet").script(BASE, "u", "t0ken")


def test_a_plan_is_checked_before_any_machine_asks() -> None:
    """With a UUID and token of the greatest length."""
    plan("quiet").check(BASE)
    with pytest.raises(ScriptError, match="cannot be booted"):
        plan("a${b}").check(BASE)
    with pytest.raises(ScriptError, match="2047"):
        plan("x" * 1900).check(BASE)
