"""Images for simulated machines, and a read-only OCI registry that serves them (distribution-spec 1.1)."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from aiohttp import web

from metal.sim import kernels
from metal.sim.images.efi_program import efi_program

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.ironcore.image.config.v1+json"
KERNEL = "application/vnd.ironcore.image.kernel"
INITRAMFS = "application/vnd.ironcore.image.initramfs"
SQUASHFS = "application/vnd.ironcore.image.squashfs"
DEFAULT_PORT = 8084
NAMES = ("probe", "demo")


ARCHITECTURES = ("amd64", "arm64")


@dataclass(frozen=True)
class FakeImage:
    """A kernel and a RAM disk with arbitrary content and true digests, for one architecture or for more."""

    repository: str
    kernel: bytes = field(repr=False)
    initrd: bytes = field(repr=False)
    command_line: str = "console=ttyS0,115200"
    squashfs: bytes = field(default=b"", repr=False)
    """Root file system that the operating system fetches; none when empty."""
    tag: str = "latest"
    """Empty for an image that is known by its digest only."""
    architectures: tuple[str, ...] = ARCHITECTURES
    """There is a manifest for each, whose kernel and config name it; none is named when this is empty."""


def fake_image(repository: str, tag: str = "latest") -> FakeImage:
    """Some kilobytes that depend on the name alone, so that digests are always the same."""
    former = former_image(repository, tag)
    return replace(former, kernel=efi_program(former.kernel), tag=tag, architectures=ARCHITECTURES)


def former_image(repository: str, tag: str = "latest") -> FakeImage:
    """The same as of former versions, whose kernels were no EFI programs: saved objects name it by its digest."""
    kernel = hashlib.sha256(f"kernel {repository}:{tag}".encode()).digest() * 128
    initrd = hashlib.sha256(f"initrd {repository}:{tag}".encode()).digest() * 512
    return FakeImage(repository, kernel, initrd, tag="", architectures=())


class ImageStore:
    """Blobs by digest and manifests by tag and digest."""

    def __init__(self, images: Iterable[FakeImage] | None = None) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.requests = 0
        for image in images if images is not None else (*map(former_image, NAMES), *map(fake_image, NAMES)):
            self.add(image)

    def __repr__(self) -> str:
        return f"<ImageStore {len(self.blobs)} blobs>"

    def add(self, image: FakeImage) -> str:
        """Store an image as index, manifest, config and layers; returns the index's digest."""
        entries = [self._entry(image, architecture) for architecture in image.architectures or ("amd64",)]
        tags = (image.tag,) if image.tag else ()
        index = self._manifest(image, {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, *tags)
        return str(index["digest"])

    def _entry(self, image: FakeImage, architecture: str) -> dict[str, Any]:
        config = {"commandLine": image.command_line} | ({"architecture": architecture} if image.architectures else {})
        kernel = kernels.of_architecture(image.kernel, architecture)
        body: dict[str, Any] = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": self._blob(msgspec.json.encode(config), CONFIG),
            "layers": [self._blob(kernel, KERNEL), self._blob(image.initrd, INITRAMFS)],
        }  # fmt: skip
        if image.squashfs:
            body["layers"].append(self._blob(image.squashfs, SQUASHFS))
        return self._manifest(image, body) | {"platform": {"architecture": architecture, "os": "linux"}}

    def _blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _manifest(self, image: FakeImage, body: dict[str, Any], *tags: str) -> dict[str, Any]:
        raw = msgspec.json.encode(body)
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        for name in (digest, *tags):
            self.manifests[image.repository, name] = (body["mediaType"], raw)
        return {"mediaType": body["mediaType"], "digest": digest, "size": len(raw)}


class ImageRegistry:
    """Serves a store on loopback over http. Call `start`, and `stop` at the end."""

    def __init__(self, store: ImageStore | None = None, *, host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> None:
        self.store = store or ImageStore()
        self.host, self.port = host, port
        self._runner: web.AppRunner | None = None

    def __repr__(self) -> str:
        return f"<ImageRegistry {self.name} {self.store!r}>"

    @property
    def name(self) -> str:
        """host:port, the registry part of references."""
        return f"{self.host}:{self.port}"

    @property
    def probe_image(self) -> str:
        """Reference of the discovery image."""
        return f"{self.name}/probe:latest"

    async def start(self) -> None:
        """Listen; port 0 selects a free one. Raises OSError."""
        app = web.Application()
        app.router.add_get("/v2/", self._base)
        app.router.add_get("/v2/{repository:.+}/manifests/{name}", self._manifests)
        app.router.add_get("/v2/{repository:.+}/blobs/{digest}", self._blobs)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except OSError as exc:
            await self.stop()
            raise OSError(exc.errno, f"image registry {self.name}: {exc.strerror}") from None
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _base(self, _: web.Request) -> web.Response:
        return web.json_response({})

    async def _manifests(self, request: web.Request) -> web.Response:
        self.store.requests += 1
        found = self.store.manifests.get((request.match_info["repository"], request.match_info["name"]))
        if found is None:
            return _missing("MANIFEST_UNKNOWN")
        digest = f"sha256:{hashlib.sha256(found[1]).hexdigest()}"
        return web.Response(body=found[1], headers={"Content-Type": found[0], "Docker-Content-Digest": digest})

    async def _blobs(self, request: web.Request) -> web.Response:
        self.store.requests += 1
        content = self.store.blobs.get(request.match_info["digest"])
        if content is None:
            return _missing("BLOB_UNKNOWN")
        return web.Response(body=content, content_type="application/octet-stream")


def _missing(code: str) -> web.Response:
    return web.json_response({"errors": [{"code": code, "message": "unknown to this registry"}]}, status=404)
