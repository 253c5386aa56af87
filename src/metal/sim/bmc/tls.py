"""Certificates of a fleet: a CA, and one certificate that names every BMC's address.

They are created at start, or kept in a file, so that BMCs show the same certificate after a restart.
"""

import ssl
import tempfile
from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = timedelta(days=3650)
_LEFT = timedelta(days=30)
"""A certificate that ends sooner is replaced at start."""
_SKEW = timedelta(hours=1)


def context(addresses: Iterable[str], now: datetime) -> tuple[ssl.SSLContext, str]:
    """The TLS context of all BMCs, and the CA certificate (PEM) that clients have to trust."""
    pair, authority = _made(addresses, now)
    return _load(pair), authority.decode()


def kept_context(path: Path, addresses: Iterable[str], now: datetime) -> tuple[ssl.SSLContext, str]:
    """The same, from a file that is written when it is missing, outdated or for other addresses. Raises OSError."""
    addresses = tuple(addresses)
    try:
        text = path.read_bytes()
        leaf, authority = x509.load_pem_x509_certificates(text)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        known = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
        if leaf.not_valid_after_utc - now > _LEFT and known.issuperset(addresses):
            return _load(text), authority.public_bytes(serialization.Encoding.PEM).decode()
    except (FileNotFoundError, ValueError):
        pass  # none yet, or not written by this version
    pair, ca = _made(addresses, now)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(pair + ca)
    return _load(pair), ca.decode()


def _made(addresses: Iterable[str], now: datetime) -> tuple[bytes, bytes]:
    """Key and certificate of the BMCs, and the certificate of their CA, in PEM."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _name("simulated BMCs' authority"), _name("simulated BMC")
    authority = (
        _builder(issuer, issuer, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(_usage(), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(subject, issuer, key, now)
        .add_extension(names, critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return _pair(certificate, key), authority.public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bytes:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _load(pair: bytes) -> ssl.SSLContext:
    loaded = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    loaded.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="sim-bmc-") as folder:  # ssl reads keys from files only
        file = Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_bytes(pair)
        loaded.load_cert_chain(file)
    return loaded
