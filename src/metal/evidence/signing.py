"""Signs evidence with Ed25519 (RFC 8032), and verifies signatures. Needs no API.

The signed bytes are canonical JSON of kind, name, spec and status (`canonical`), so evidence can be verified wherever
it is stored. A signature proves that the holder of the private key, the manager, wrote exactly this; it says nothing
about whether the machine reported the truth.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import datetime

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from metal.api.sanitization import SanitizationEvidence, Signature

ALGORITHM = "Ed25519"


class KeyUnusable(ValueError):
    """The text is not a usable key; str() says what is expected, and never shows the text."""


class SignatureInvalid(Exception):
    """The signature is missing or does not match the evidence; str() is a sentence."""


@dataclass(frozen=True)
class PublicKey:
    """A key that signatures are verified with."""

    key: Ed25519PublicKey

    @property
    def id(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of its 32 bytes."""
        return hashlib.sha256(self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]

    @property
    def pem(self) -> str:
        """SubjectPublicKeyInfo in PEM."""
        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class SigningKey:
    """The key that evidence is signed with. Its repr shows its id only."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.id}>"

    @classmethod
    def new(cls) -> "SigningKey":
        """A new random key."""
        return cls(Ed25519PrivateKey.generate())

    @property
    def pem(self) -> bytes:
        """The key itself, PKCS #8 in PEM: for a Secret only."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, evidence: SanitizationEvidence, now: datetime) -> SanitizationEvidence:
        """The evidence with a signature over all of its content."""
        empty = Signature(algorithm=ALGORITHM, key_id=self.public.id, signed_at=now)
        value = base64.b64encode(self._key.sign(canonical(_with(evidence, empty)))).decode()
        return _with(evidence, msgspec.structs.replace(empty, value=value))


def canonical(evidence: SanitizationEvidence) -> bytes:
    """The signed bytes: kind, name, spec and status, without the signature's value.

    UTF-8, no blanks, members sorted, defaults omitted: the same bytes for the same evidence wherever it is stored.
    """
    signature = evidence.status.signature
    if signature is not None:
        evidence = _with(evidence, msgspec.structs.replace(signature, value=""))
    content = {
        "kind": "SanitizationEvidence", "name": evidence.metadata.name, "spec": evidence.spec,
        "status": evidence.status,
    }  # fmt: skip
    return msgspec.json.encode(content, order="sorted")


def verify(evidence: SanitizationEvidence, keys: dict[str, PublicKey]) -> None:
    """Return if one of these keys (by id) signed this evidence. Raises SignatureInvalid."""
    signature = evidence.status.signature
    if signature is None:
        raise SignatureInvalid("it is not signed")
    if signature.algorithm != ALGORITHM:
        raise SignatureInvalid(f"the algorithm {signature.algorithm!r} is not {ALGORITHM}")
    key = keys.get(signature.key_id)
    if key is None:
        raise SignatureInvalid(f"the public key {signature.key_id} is unknown")
    try:
        key.key.verify(base64.b64decode(signature.value, validate=True), canonical(evidence))
    except (InvalidSignature, binascii.Error):
        raise SignatureInvalid("it was changed after it was signed, or signed with another key") from None


def load_private(pem: bytes) -> SigningKey:
    """The key in a PEM text. Raises KeyUnusable."""
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyUnusable("no private key in PEM (PKCS #8, without a password)") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable("the private key is not an Ed25519 key")
    return SigningKey(key)


def load_public(pem: bytes) -> PublicKey:
    """The key in a PEM text. Raises KeyUnusable."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyUnusable("no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnusable("the public key is not an Ed25519 key")
    return PublicKey(key)


def _with(evidence: SanitizationEvidence, signature: Signature) -> SanitizationEvidence:
    return msgspec.structs.replace(evidence, status=msgspec.structs.replace(evidence.status, signature=signature))
