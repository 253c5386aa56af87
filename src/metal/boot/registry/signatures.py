"""Signatures of images in cosign's layout: who signed the content that a reference leads to.

The signatures of the digest sha256:H are the layers of the manifest with the tag sha256-H.sig in the same repository.
A layer is a payload in JSON; its annotation has the signature of the payload. The payload names the digest that was
signed. The digest of the index or of the manifest may be signed: an index pins its manifests by digest. What else the
payload says is not used, such as the repository: an image may be copied with its signatures. Neither transparency logs
nor certificates are used.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from metal.boot import manifest as documents
from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor
from metal.boot.oci import Reference, canonical_registry
from metal.boot.registry.settings import SigningKeys
from metal.boot.registry.watched_file import FileInvalid, WatchedFile

PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"
_TYPE = "cosign container image signature"
_MOST = 64
"""Signatures of an image that are read; cosign adds the latest one at the end."""

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class Fetched(Protocol):
    """A manifest with its media type."""

    @property
    def raw(self) -> bytes:
        """The bytes, with a verified digest."""
        ...

    @property
    def media_type(self) -> str:
        """The type that the registry gives it."""
        ...


class Remote(Protocol):
    """Reads the registry. Raises ImageError."""

    async def manifest(self, image: Reference, wanted: str) -> Fetched:
        """The manifest with a tag or digest."""
        ...

    async def document(self, image: Reference, descriptor: Descriptor) -> bytes:
        """A small blob, with a verified digest."""
        ...


class Signatures:
    """Requires images to be signed as the configuration says."""

    def __init__(self, keys: Sequence[SigningKeys], remote: Remote) -> None:
        self._remote = remote
        self._keys = {prefix_of(entry.prefix): entry for entry in keys}
        self._files = {name: WatchedFile(Path(name), public_key) for entry in keys for name in entry.files}

    async def require(self, image: Reference, digests: Sequence[str]) -> None:
        """Raises ImageError unless one of these digests is signed with a key for the image, or none is required."""
        entry = self._entry(image)
        if entry is None:
            return
        keys = [self._key(name) for name in entry.files]
        rejected: list[str] = []
        for digest in dict.fromkeys(digests):
            for layer in await self._layers(image, digest):
                problem = _problem(await self._remote.document(image, layer), layer, digest, keys)
                if not problem:
                    return
                rejected.append(problem)
        raise _unsigned(image, entry, digests, rejected)

    def _entry(self, image: Reference) -> SigningKeys | None:
        name = f"{canonical_registry(image.registry)}/{image.repository}"
        while name:
            if name in self._keys:
                return self._keys[name]
            name = name.rpartition("/")[0]
        return None

    def _key(self, name: str) -> PublicKey:
        try:
            return self._files[name].value()
        except FileInvalid as exc:
            raise ImageError("KeyInvalid", f"registries.keys: {exc}", transient=True) from None

    async def _layers(self, image: Reference, digest: str) -> list[Descriptor]:
        try:
            fetched = await self._remote.manifest(image, f"{digest.replace(':', '-')}.sig")
        except ImageError as exc:
            if exc.reason == "ImageNotFound":
                return []
            raise
        layers = documents.parse(fetched.raw, fetched.media_type).layers or ()
        return [layer for layer in layers if layer.media_type == PAYLOAD][-_MOST:]


def prefix_of(text: str) -> str:
    """A prefix with the canonical name of its registry."""
    registry, slash, path = text.strip("/").partition("/")
    return f"{canonical_registry(registry)}{slash}{path}"


def public_key(raw: bytes) -> PublicKey:
    """An ECDSA P-256 or Ed25519 public key in PEM. Raises ValueError."""
    try:
        key = load_pem_public_key(raw)
    except Exception:  # the library raises errors of many classes for what is no key
        raise ValueError("has no public key in PEM: write the public key, such as cosign.pub") from None
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise ValueError("has a key of another kind: write an ECDSA P-256 or Ed25519 public key")


def _problem(payload: bytes, layer: Descriptor, digest: str, keys: Sequence[PublicKey]) -> str:
    """Why this signature does not count; empty if it does."""
    text = (layer.annotations or {}).get(SIGNATURE, "")
    try:
        signature = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return f"the annotation {SIGNATURE} is not base64"
    if not any(_signed(key, signature, payload) for key in keys):
        return "a signature is of another key"
    signed = _signed_digest(payload)
    return "" if signed == digest else f"a signature is for {signed[:80] or 'no image'}"


def _signed(key: PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, payload)
        else:
            key.verify(signature, payload, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _signed_digest(payload: bytes) -> str:
    try:
        body: Any = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    critical = body.get("critical") if isinstance(body, dict) else None
    image = critical.get("image") if isinstance(critical, Mapping) and critical.get("type") == _TYPE else None
    digest = image.get("docker-manifest-digest") if isinstance(image, Mapping) else None
    return digest if isinstance(digest, str) else ""


def _unsigned(image: Reference, entry: SigningKeys, digests: Sequence[str], rejected: Sequence[str]) -> ImageError:
    wanted = f"registries.keys requires a signature with {' or '.join(entry.files)} for {entry.prefix}"
    if rejected:
        found = "; ".join(dict.fromkeys(rejected))
        return ImageError("SignatureInvalid", f"{image.name} has no valid signature: {found}; {wanted}")
    names = " or ".join(dict.fromkeys(digests))
    return ImageError("SignatureMissing", f"{image.name} is not signed: no signature of {names} found; {wanted}")
