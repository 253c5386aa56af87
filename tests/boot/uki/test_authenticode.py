"""Signatures for Secure Boot, verified by sbverify."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from metal.boot.errors import ImageError
from metal.boot.uki.authenticode import Signer, signed
from metal.boot.uki.layout import whole
from metal.boot.uki.pe import facts
from tests.boot.uki.programs import program, run, site_key

ECDSA = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)

ENCRYPTED = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"password")
)


def sign(path: Path, to: Path, name: str = "site") -> Path:
    to.write_bytes(signed(whole(path), facts(path), Signer.from_pem(*site_key(name))).read())
    return to


def verify(path: Path, name: str = "site") -> str:
    certificate = path.with_name(f"{name}.pem")
    certificate.write_bytes(site_key(name)[0])
    return run("sbverify", "--cert", certificate, path)


@pytest.mark.needs("sbverify")
def test_a_signed_program_is_valid_for_the_sites_certificate_alone(tmp_path: Path) -> None:
    """The program's size is no multiple of eight, which the signature's place must be."""
    path = program(tmp_path / "a.efi")
    path.write_bytes(path.read_bytes() + b"tail!")
    result = sign(path, tmp_path / "signed.efi")

    assert "Signature verification OK" in verify(result)
    with pytest.raises(subprocess.CalledProcessError):
        verify(result, "another")


@pytest.mark.needs("sbverify")
@pytest.mark.parametrize("offset", [2, 0x3F0, 0x400, -2000], ids=["DOS header", "headers", "section", "trailing data"])
def test_a_changed_byte_makes_the_signature_invalid(tmp_path: Path, offset: int) -> None:
    """Wherever it is."""
    path = program(tmp_path / "a.efi")
    path.write_bytes(path.read_bytes() + b"t" * 2000)
    content = bytearray(sign(path, tmp_path / "signed.efi").read_bytes())
    content[offset] ^= 1
    (tmp_path / "signed.efi").write_bytes(content)

    with pytest.raises(subprocess.CalledProcessError):
        verify(tmp_path / "signed.efi")


@pytest.mark.needs("sbverify")
def test_a_program_keeps_its_earlier_signature(tmp_path: Path) -> None:
    """A UKI that a distributor has signed is valid for both certificates."""
    once = sign(program(tmp_path / "a.efi"), tmp_path / "once.efi", "vendor")
    twice = sign(once, tmp_path / "twice.efi")

    assert "Signature verification OK" in verify(twice)
    assert "Signature verification OK" in verify(twice, "vendor")


def test_the_same_program_gets_the_same_signature(tmp_path: Path) -> None:
    """Ranges of it may be requested from several replicas."""
    path = program(tmp_path / "a.efi")
    assert sign(path, tmp_path / "b").read_bytes() == sign(path, tmp_path / "c").read_bytes()


def test_a_program_with_gaps_is_not_signed(tmp_path: Path) -> None:
    """Firmware would compute another digest."""
    with pytest.raises(ImageError, match="do not follow each other"):
        sign(program(tmp_path / "a.efi", gap=512), tmp_path / "b")


def test_a_program_with_data_behind_its_signatures_is_not_signed(tmp_path: Path) -> None:
    """It would not be covered by the signature."""
    path = sign(program(tmp_path / "a.efi"), tmp_path / "b")
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ImageError, match="not at its end"):
        sign(path, tmp_path / "c")


@pytest.mark.parametrize(
    ("key", "problem"),
    [(site_key("another")[1], "does not belong"), (ECDSA, "must be RSA"), (b"no key", "PEM"), (ENCRYPTED, "PEM")],
    ids=["another", "ECDSA", "no PEM", "encrypted"],
)
def test_a_key_that_does_not_fit_is_refused(key: bytes, problem: str) -> None:
    """It is noticed when the key is loaded, not when a machine boots."""
    with pytest.raises(ValueError, match=problem):
        Signer.from_pem(site_key()[0], key)


def test_the_repr_names_the_certificate() -> None:
    """And shows nothing of the key."""
    assert repr(Signer.from_pem(*site_key())) == "<Signer CN=site>"
