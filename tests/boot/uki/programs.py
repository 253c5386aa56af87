"""Small EFI programs, keys, and programs of Debian to look at results with."""

import struct
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from metal.boot.uki.image import CachedFile

AMD64, ARM64 = 0x8664, 0xAA64
HEADERS = 0x400


def program(
    path: Path, *, machine: int = AMD64, memory: int = 0x5000, sections: int = 1, headers: int = HEADERS, gap: int = 0
) -> Path:
    """Write a PE file of `sections` sections of 512 bytes each, and symbols behind them, as in systemd's stub."""
    end = headers + gap + sections * 512
    coff = struct.pack("<HHIIIHH", machine, sections, 0, end, 1, 240, 0x2022)
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", 0x20B, 0, 0, 512, 0, 0, 0x1000, 0x1000, 0, 0x1000, 512, 0, 0, 0, 0, 0, 0, 0,
        memory, headers, 0xABCD, 10, 0, 0, 0, 0, 0, 0, 16,
    )  # fmt: skip
    table = b"".join(
        struct.pack("<8sIIIIIIHHI", b".text%d" % n, 512, 0x1000 * (n + 1), 512, headers + gap + 512 * n, 0, 0, 0, 0, 0)
        for n in range(sections)
    )
    start = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0" + coff + optional.ljust(240, b"\0") + table
    path.write_bytes(start.ljust(headers + gap, b"\0") + b"\xc3" * (sections * 512) + b"symbols\0" * 3)
    return path


def cached(path: Path) -> CachedFile:
    """A file as of the image cache."""
    return CachedFile(f"sha256:{path.name}", path)


@cache
def site_key(name: str = "site") -> tuple[bytes, bytes]:
    """A certificate and its key, PEM."""
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


def run(*command: str | Path) -> str:
    """What a program prints, on both streams; raises CalledProcessError when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout)
    return done.stdout.decode(errors="replace")
