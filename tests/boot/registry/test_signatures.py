"""Signatures in cosign's layout, against a registry on loopback; openssl signs as an independent implementation."""

import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.images import RegistryImages
from metal.boot.registry.settings import RegistryClientSettings, SigningKeys
from metal.boot.registry.signatures import PAYLOAD, SIGNATURE, public_key
from metal.boot.registry_client import RegistryClient
from tests.boot import registry as oci
from tests.boot.registry import Registry

pytestmark = pytest.mark.needs("openssl")
KINDS = {"p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "ed25519": ["-algorithm", "ed25519"]}


def openssl(*arguments: Any) -> bytes:
    binary = shutil.which("openssl")
    assert binary
    return subprocess.run([binary, *map(str, arguments)], check=True, capture_output=True).stdout


@dataclass
class Signer:
    """A key pair of openssl."""

    folder: Path
    kind: str = "p256"
    name: str = "cosign"

    def __post_init__(self) -> None:
        openssl("genpkey", *KINDS[self.kind], "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)

    @property
    def private(self) -> Path:
        return self.folder / f"{self.name}.key"

    @property
    def public(self) -> Path:
        return self.folder / f"{self.name}.pub"

    def sign(self, payload: bytes) -> str:
        file = self.folder / "payload"
        file.write_bytes(payload)
        digest = [] if self.kind == "ed25519" else ["-digest", "sha256"]
        return base64.b64encode(
            openssl("pkeyutl", "-sign", "-rawin", *digest, "-inkey", self.private, "-in", file)
        ).decode()


def payload(digest: str, **changes: Any) -> bytes:
    critical = {
        "identity": {"docker-reference": "elsewhere.example/os"},
        "image": {"docker-manifest-digest": digest},
        "type": "cosign container image signature",
    }
    return json.dumps({"critical": critical | changes, "optional": None}).encode()


@dataclass
class Site:
    """A registry, and images that must be signed."""

    registry: Registry
    folder: Path
    made: list[RegistryImages] = field(default_factory=list)

    def attach(self, digest: str, *signed: tuple[bytes, str], media_type: str = PAYLOAD) -> None:
        """Store signatures of a digest as cosign does."""
        layers = [self.registry.blob(body, media_type) | {"annotations": {SIGNATURE: text}} for body, text in signed]
        self.registry.manifest(layers, tag=f"{digest.replace(':', '-')}.sig", config={})

    def images(self, *keys: Path, prefix: str = "") -> RegistryImages:
        entry = SigningKeys(prefix or self.registry.name, tuple(map(str, keys)))
        settings = RegistryClientSettings(allowed=(), insecure=(self.registry.name,), keys=(entry,))
        made = RegistryImages(RegistryClient(settings), BlobCache(self.folder / f"cache{len(self.made)}", 10**8))
        self.made.append(made)
        return made

    async def resolve(self, *keys: Path, prefix: str = "", image: str = "os:1") -> Any:
        return await self.images(*keys, prefix=prefix).resolve(f"{self.registry.name}/{image}", "amd64")

    async def failure(self, *keys: Path, image: str = "os:1") -> ImageError:
        with pytest.raises(ImageError) as caught:
            await self.resolve(*keys, image=image)
        assert not caught.value.transient
        return caught.value


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with oci.running() as registry:
        made = Site(registry, tmp_path)
        yield made
        for images in made.made:
            await images.aclose()


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


@pytest.mark.parametrize("kind", list(KINDS))
async def test_an_image_that_is_signed_with_a_configured_key_is_used(site: Site, tmp_path: Path, kind: str) -> None:
    """ECDSA P-256 and Ed25519; any of several keys, and any of several signatures."""
    signer, other = Signer(tmp_path, kind), Signer(tmp_path, "p256", "other")
    digest = site.registry.os_image(tag="1")["digest"]
    body = payload(digest)
    site.attach(digest, (body, other.sign(b"something else")), (body, signer.sign(body)))
    assert (await site.resolve(other.public, signer.public)).pinned.digest == digest


async def test_the_signature_of_an_index_is_one_of_its_manifests(site: Site, signer: Signer) -> None:
    """cosign sign signs the index. The boot server reads the pinned manifest without its own signature; a reference
    to the manifest alone needs one."""
    amd = site.registry.os_image(tag="")
    index = site.registry.index({"amd64": amd}, tag="1")["digest"]
    body = payload(index)
    site.attach(index, (body, signer.sign(body)))
    images = site.images(signer.public)
    image = await images.resolve(f"{site.registry.name}/os:1", "amd64")
    assert image.pinned.digest == amd["digest"]
    with pytest.raises(ImageError, match="is not signed"):
        await images.resolve(str(image.pinned), "amd64")
    replica = site.images(signer.public)
    await replica.start()
    assert (await replica.open(image.plan(ignition=True).kernel)).read_bytes() == oci.KERNEL


async def test_the_signature_of_the_manifest_suffices_below_an_unsigned_index(site: Site, signer: Signer) -> None:
    """cosign sign --recursive signs both; the manifest is what boots."""
    amd = site.registry.os_image(tag="")
    site.registry.index({"amd64": amd}, tag="1")
    body = payload(amd["digest"])
    site.attach(amd["digest"], (body, signer.sign(body)))
    assert (await site.resolve(signer.public)).pinned.digest == amd["digest"]


async def test_an_image_without_a_signature_is_refused(site: Site, signer: Signer) -> None:
    """The message names the digests, the keys and the prefix; layers of another type are no signatures."""
    digest = site.registry.os_image(tag="1")["digest"]
    for attached in (False, True):
        if attached:
            body = payload(digest)
            site.attach(digest, (body, signer.sign(body)), media_type="application/octet-stream")
        error = await site.failure(signer.public)
        assert error.reason == "SignatureMissing"
        assert digest in str(error)
        assert f"requires a signature with {signer.public} for {site.registry.name}" in str(error)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("key", "a signature is of another key"),
        ("image", "a signature is for sha256:"),
        ("changed", "a signature is of another key"),
        ("base64", "is not base64"),
        ("none", "a signature is of another key"),
        ("type", "a signature is for no image"),
        ("json", "a signature is for no image"),
    ],
)
async def test_a_signature_that_does_not_fit_is_refused(
    site: Site, signer: Signer, tmp_path: Path, fault: str, says: str
) -> None:
    """Of another key, of another image, for a changed payload, damaged, or of something that is no image."""
    digest = site.registry.os_image(tag="1")["digest"]
    body = payload(digest)
    if fault == "image":
        body = payload(site.registry.os_image(tag="2", kernel=b"other")["digest"])
    elif fault == "type":
        body = payload(digest, type="attestation")
    elif fault == "json":
        body = b"[]"
    by = Signer(tmp_path, name="stranger") if fault == "key" else signer
    text = {"base64": "%", "none": ""}.get(fault, by.sign(body))
    site.attach(digest, (body + b" " if fault == "changed" else body, text))
    error = await site.failure(signer.public)
    assert error.reason == "SignatureInvalid"
    assert says in str(error)


async def test_a_registry_that_fails_is_no_missing_signature(site: Site, signer: Signer) -> None:
    """The failure is transient, and the image is not used."""
    digest = site.registry.os_image(tag="1")["digest"]
    body = payload(digest)
    site.attach(digest, (body, signer.sign(body)))
    images = site.images(signer.public)
    await images.resolve(f"{site.registry.name}/os@{digest}", "amd64", pinned=True)  # from now on in memory
    site.registry.faults.status = 503
    with pytest.raises(ImageError) as caught:
        await images.resolve(f"{site.registry.name}/os@{digest}", "amd64")
    assert (caught.value.reason, caught.value.transient) == ("RegistryMisbehaves", True)


async def test_keys_apply_to_their_prefix_only(site: Site, signer: Signer) -> None:
    """Whole parts of the repository count."""
    site.registry.os_image(tag="1")
    prefix = f"{site.registry.name}/team"
    await site.resolve(signer.public, prefix=prefix, image="teams/os:1")
    with pytest.raises(ImageError, match="is not signed"):
        await site.resolve(signer.public, prefix=prefix, image="team/os:1")


@pytest.mark.parametrize("kind", ["private", "rsa", "p384", "text"])
def test_what_is_no_key_is_refused_without_its_content(tmp_path: Path, kind: str) -> None:
    """A private key, a key of another kind, or any text."""
    made = {"rsa": ["-algorithm", "RSA"], "p384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]}
    private = tmp_path / "key"
    openssl("genpkey", *made.get(kind, KINDS["p256"]), "-out", private)
    raw = {"private": private.read_bytes(), "text": b"secret"}.get(kind) or openssl("pkey", "-in", private, "-pubout")
    with pytest.raises(ValueError, match=r"has no public key in PEM|has a key of another kind") as caught:
        public_key(raw)
    assert "secret" not in str(caught.value)
