"""Signed tokens (RFC 7519) with ES256, and the key that signs them."""

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from metal.apiserver.auth.tokens import TokenError, check_private, write_private

_HASH = ec.ECDSA(hashes.SHA256())
_HALF = 32
"""Bytes of each of the two numbers of a signature (RFC 7518, section 3.4)."""
LONGEST = 16 * 1024
"""Maximum of characters of a token; longer ones are refused unread."""


class Signer:
    """Signs and verifies with a key from a file, created when first needed; without a file the key is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._key: ec.EllipticCurvePrivateKey | None = None

    def __repr__(self) -> str:
        return f"<Signer {self._path or 'in memory'}>"

    def _loaded(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            self._key = self._read()
        return self._key

    def _read(self) -> ec.EllipticCurvePrivateKey:
        if self._path is not None and self._path.exists():
            check_private(self._path)
            try:
                found = serialization.load_pem_private_key(self._path.read_bytes(), None)
            except ValueError as garbled:
                raise TokenError(f"{self._path}: contains no private key; remove it to get a new one") from garbled
            if not isinstance(found, ec.EllipticCurvePrivateKey) or found.curve.name != "secp256r1":
                raise TokenError(f"{self._path}: expected a key on the curve P-256; remove it to get a new one")
            return found
        made = ec.generate_private_key(ec.SECP256R1())
        if self._path is not None:
            form = serialization.PrivateFormat.PKCS8
            write_private(
                self._path, made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
            )
        return made

    def sign(self, claims: dict[str, Any]) -> str:
        """A token. Raises TokenError when the key cannot be used."""
        key = self._loaded()
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        header = {"alg": "ES256", "kid": _text(hashlib.sha256(public).digest())}
        head = f"{_text(msgspec.json.encode(header))}.{_text(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(key.sign(head.encode(), _HASH))
        return f"{head}.{_text(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"

    def verify(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this key signed, else None. Times are not checked. Raises TokenError."""
        parts = token.split(".")
        if len(token) > LONGEST or len(parts) != 3:
            return None
        try:
            header, claims = (msgspec.json.decode(_bytes(part)) for part in parts[:2])
            signature = _bytes(parts[2])
        except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(header, dict) or header.get("alg") != "ES256" or len(signature) != 2 * _HALF:
            return None
        r, s = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        try:
            signed = f"{parts[0]}.{parts[1]}".encode()
            self._loaded().public_key().verify(encode_dss_signature(r, s), signed, _HASH)
        except InvalidSignature:
            return None
        return claims if isinstance(claims, dict) else None


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
