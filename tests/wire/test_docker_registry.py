"""The image resolver against Debian's docker-registry, an independent implementation."""

import asyncio
import hashlib
import json
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.images import RegistryImages
from metal.boot.manifest import INDEXES, MANIFESTS
from metal.boot.registry.settings import RegistryClientSettings
from metal.boot.registry_client import RegistryClient

pytestmark = [pytest.mark.wire, pytest.mark.needs("docker-registry")]
KERNEL, INITRAMFS = b"a kernel " * 100_000, b"an initramfs " * 200_000
PREFIX = "application/vnd.ironcore.image"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Foreign:
    """A running docker-registry and a client that pushes to it."""

    port: int
    session: aiohttp.ClientSession
    repository: str = "team/os"
    scheme: str = "http"

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        base = f"{self.scheme}://{self.name}/v2/{self.repository}/blobs/uploads/"
        async with self.session.post(base) as answer:
            assert answer.status == 202, await answer.text()
            location = answer.headers["Location"]
        joint = "&" if "?" in location else "?"
        async with self.session.put(f"{location}{joint}digest={digest(content)}", data=chunks(content)) as answer:
            assert answer.status == 201, await answer.text()
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    async def put(self, body: Any, media_type: str, tag: str = "") -> dict[str, Any]:
        raw = json.dumps(body).encode()
        url = f"{self.scheme}://{self.name}/v2/{self.repository}/manifests/{tag or digest(raw)}"
        async with self.session.put(url, data=raw, headers={"Content-Type": media_type}) as answer:
            assert answer.status == 201, await answer.text()
        return {"mediaType": media_type, "digest": digest(raw), "size": len(raw)}

    async def image(self, tag: str = "", *, type: str = MANIFESTS[0], kernel: bytes = KERNEL) -> dict[str, Any]:
        config = await self.blob(b'{"commandLine": "console=ttyS0"}', f"{PREFIX}.config.v1+json")
        layers = [await self.blob(kernel, f"{PREFIX}.kernel"), await self.blob(INITRAMFS, f"{PREFIX}.initramfs")]
        body = {"schemaVersion": 2, "mediaType": type, "config": config, "layers": layers}
        return await self.put(body, type, tag)


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 65536):
        yield content[start : start + 65536]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def foreign(tmp_path: Path) -> AsyncIterator[Foreign]:
    binary = shutil.which("docker-registry")
    if binary is None:
        pytest.fail("docker-registry is not installed: apt-get install docker-registry")
    port = free_port()
    config = tmp_path / "registry.json"  # JSON is YAML
    storage = {"filesystem": {"rootdirectory": str(tmp_path / "storage")}}
    http = {"addr": f"127.0.0.1:{port}"}
    config.write_text(json.dumps({"version": 0.1, "log": {"level": "error"}, "storage": storage, "http": http}))
    with (tmp_path / "registry.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(binary, "serve", str(config), stdout=log, stderr=log)
    try:
        async with aiohttp.ClientSession() as session:
            await listening(session, f"http://127.0.0.1:{port}", process)
            yield Foreign(port, session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def listening(session: aiohttp.ClientSession, url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(20):
        while True:
            assert process.returncode is None, "docker-registry has ended: see registry.log"
            try:
                async with session.get(f"{url}/v2/") as answer:
                    assert answer.status in (200, 401)
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)


@pytest.fixture
async def images(foreign: Foreign, tmp_path: Path) -> AsyncIterator[RegistryImages]:
    remote = RegistryClient(RegistryClientSettings(allowed=(), insecure=(foreign.name,)))
    made = RegistryImages(remote, BlobCache(tmp_path / "cache", 10**9))
    await made.start()
    yield made
    await made.aclose()


async def test_an_image_comes_from_a_real_registry(foreign: Foreign, images: RegistryImages) -> None:
    """By tag and by digest; every byte is equal."""
    pushed = await foreign.image("1.0")
    image = await images.resolve(f"{foreign.name}/team/os:1.0", "amd64")
    assert image.pinned.digest == pushed["digest"]
    assert image.command_line == "console=ttyS0"
    plan = (await images.resolve(f"{foreign.name}/team/os@{pushed['digest']}", "amd64")).plan(ignition=True)
    assert (await images.open(plan.kernel)).read_bytes() == KERNEL
    assert (await images.open(plan.initramfs)).read_bytes() == INITRAMFS


@pytest.mark.parametrize(("index", "manifest"), list(zip(INDEXES, MANIFESTS, strict=True)))
async def test_an_index_of_a_real_registry_is_resolved(
    foreign: Foreign, images: RegistryImages, index: str, manifest: str
) -> None:
    """OCI and Docker types, chosen by architecture."""
    arm, amd = await foreign.image(type=manifest, kernel=b"arm"), await foreign.image(type=manifest)
    entries = [
        entry | {"platform": {"architecture": arch, "os": "linux"}} for arch, entry in (("arm64", arm), ("amd64", amd))
    ]
    await foreign.put({"schemaVersion": 2, "mediaType": index, "manifests": entries}, index, "multi")
    image = await images.resolve(f"{foreign.name}/team/os:multi", "amd64")
    assert image.pinned.digest == amd["digest"]
    await foreign.put({"schemaVersion": 2, "mediaType": index, "manifests": entries[:1]}, index, "arm")
    with pytest.raises(ImageError, match="it offers arm64"):
        await images.resolve(f"{foreign.name}/team/os:arm", "amd64")


async def test_what_a_real_registry_does_not_have_is_not_found(foreign: Foreign, images: RegistryImages) -> None:
    """A missing tag, a missing repository, a missing digest."""
    await foreign.image("1.0")
    for reference in ("team/os:none", "team/none:1", f"team/os@{digest(b'none')}"):
        with pytest.raises(ImageError) as caught:
            await images.resolve(f"{foreign.name}/{reference}", "amd64")
        assert (caught.value.reason, caught.value.transient) == ("ImageNotFound", False)


async def test_a_real_registry_may_go_away_once_the_image_is_here(
    foreign: Foreign, images: RegistryImages, tmp_path: Path
) -> None:
    """Downloaded files are served from the disk."""
    await foreign.image("1.0")
    plan = (await images.resolve(f"{foreign.name}/team/os:1.0", "amd64")).plan(ignition=True)
    await images.open(plan.kernel)
    shutil.rmtree(tmp_path / "storage")
    assert (await images.open(plan.kernel)).read_bytes() == KERNEL
    with pytest.raises(ImageError):
        await images.open(plan.initramfs)
