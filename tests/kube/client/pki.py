"""Throw-away certificates for TLS tests."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Pair:
    """A certificate with its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A CA that signs for 127.0.0.1 and for clients."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign("ca", self._key, ca=True)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, dns: str = "", address: str = "127.0.0.1") -> Pair:
        """A certificate for a server at an address (or with a DNS name), or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(name, key, dns=dns, address=address)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)

    def server_context(self, folder: Path, *, dns: str = "", ask_client: bool = False) -> ssl.SSLContext:
        """TLS for a server that may insist on client certificates of this CA."""
        pair = self.issue("server", dns=dns)
        file = folder / "server.pem"
        file.write_bytes(pair.certificate + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.pem.decode())
        context.load_cert_chain(file)
        context.verify_mode = ssl.CERT_REQUIRED if ask_client else ssl.CERT_NONE
        return context

    def _sign(
        self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool = False, dns: str = "", address: str = "127.0.0.1"
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternative = x509.DNSName(dns) if dns else x509.IPAddress(ipaddress.ip_address(address))
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
