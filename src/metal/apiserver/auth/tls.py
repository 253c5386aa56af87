"""The API's own certificate authority and server certificate."""

import ipaddress
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from metal.apiserver.auth.tokens import check_private, write_private

CA_LIFE = timedelta(days=3650)
CERTIFICATE_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)
"""A certificate that expires within this time is replaced."""
_SKEW = timedelta(hours=1)
ALWAYS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Identity:
    """Files with the identity of the server."""

    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        return context


def ensure(folder: Path, hosts: Iterable[str], now: datetime) -> Identity:
    """Create or renew files that are missing, expire soon or lack a host. Their mode is 0600. Raises TokenError."""
    authority, authority_key = folder / "ca.crt", folder / "ca.key"
    found = Identity(authority, folder / "apiserver.crt", folder / "apiserver.key")
    names = sorted({*ALWAYS, *map(_spelled, hosts)})
    if not _lasts(authority, authority_key, now, RENEW_BEFORE):
        _write(*_authority(now), authority, authority_key)
        found.certificate.unlink(missing_ok=True)
    if not _lasts(found.certificate, found.key, now, RENEW_BEFORE) or set(names) - _named(found.certificate):
        issuer = x509.load_pem_x509_certificate(authority.read_bytes())
        signer = serialization.load_pem_private_key(authority_key.read_bytes(), None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{authority_key}: not an elliptic curve key; remove it to get a new one")
        _write(*_server(issuer, signer, names, now), found.certificate, found.key)
    return found


def _lasts(certificate: Path, key: Path, now: datetime, margin: timedelta) -> bool:
    if not certificate.exists() or not key.exists():
        return False
    check_private(key)
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    if not _belong_together(loaded, key):
        return False  # the process ended between writing the two files
    return loaded.not_valid_before_utc <= now and now + margin < loaded.not_valid_after_utc


def _belong_together(certificate: x509.Certificate, key: Path) -> bool:
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    return private.public_key() == certificate.public_key()


def validity(certificate: Path) -> tuple[datetime, datetime]:
    """From when and until when a certificate is valid."""
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    return loaded.not_valid_before_utc, loaded.not_valid_after_utc


def _named(certificate: Path) -> set[str]:
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return {*names.get_values_for_type(x509.DNSName), *addresses}


def _spelled(host: str) -> str:
    """A name or an address in the spelling of the certificate."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _authority(now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    # The date makes the names of successive authorities distinct: clients confuse authorities of the same name.
    name = f"metal-apiserver-ca@{now:%Y-%m-%d}"
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = _builder(name, issuer, key, now, CA_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key


def _server(
    issuer: x509.Certificate, signer: ec.EllipticCurvePrivateKey, names: list[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder("metal-apiserver", issuer.subject, key, now, CERTIFICATE_LIFE)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return builder.add_extension(authority, critical=False).sign(signer, hashes.SHA256()), key


def _write(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, to: Path, key_to: Path) -> None:
    plain = serialization.NoEncryption()
    write_private(key_to, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    write_private(to, certificate.public_bytes(serialization.Encoding.PEM))
