"""Images from a registry to local files, over sockets on loopback."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.images import RegistryImages
from metal.boot.plan import Blob
from metal.boot.registry.settings import RegistryClientSettings
from metal.boot.registry_client import RegistryClient
from tests.boot import registry as oci
from tests.boot.registry import INITRAMFS, KERNEL, Registry

IRONCORE = "application/vnd.ironcore.image"


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    async with oci.running() as running:
        yield running


@pytest.fixture
async def images(registry: Registry, tmp_path: Path) -> AsyncIterator[RegistryImages]:
    made = make(registry, tmp_path)
    await made.start()
    yield made
    await made.aclose()


def make(registry: Registry, folder: Path, architecture: str = "amd64", **more: Any) -> RegistryImages:
    settings = RegistryClientSettings(allowed=(), insecure=(registry.name,), **more)
    return RegistryImages(RegistryClient(settings), BlobCache(folder, 10**8), architecture)


async def reason(images: RegistryImages, reference: str) -> ImageError:
    with pytest.raises(ImageError) as caught:
        await images.resolve(reference)
    return caught.value


async def test_a_manifest_is_resolved_and_pinned(registry: Registry, images: RegistryImages) -> None:
    """Kernel, initramfs and the command line of its config; the reference becomes a digest."""
    manifest = registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os/probe:1")
    assert image.pinned.digest == manifest["digest"]
    assert image.parts.kernel.digest == oci.digest(KERNEL)
    assert image.parts.initramfs.digest == oci.digest(INITRAMFS)
    assert image.command_line == "console=ttyS0 rdinit=/init"


@pytest.mark.parametrize("type", [oci.INDEX, oci.DOCKER_LIST])
async def test_an_index_is_resolved_for_the_architecture(registry: Registry, images: RegistryImages, type: str) -> None:
    """OCI indexes and Docker manifest lists."""
    amd, arm = registry.os_image(tag=""), registry.os_image(tag="", kernel=b"arm kernel")
    registry.index({"arm64": arm, "amd64": amd}, tag="2", type=type)
    assert (await images.resolve(f"{registry.name}/os:2")).pinned.digest == amd["digest"]


async def test_garden_linux_is_found_by_its_annotation(registry: Registry, images: RegistryImages) -> None:
    """Its index marks the variant for PXE on metal, and its layers have their own media types."""
    prefix = "application/io.gardenlinux"
    layers = [registry.blob(name.encode(), f"{prefix}.{name}") for name in ("kernel", "initrd", "squashfs")]
    wanted, other = registry.manifest(layers), registry.os_image(tag="")
    notes = {"cname": "metal_pxe-amd64", "architecture": "amd64"}
    entries = [other | {"platform": {"architecture": "amd64"}}, wanted | {"annotations": notes}]
    registry.put({"schemaVersion": 2, "manifests": entries}, oci.INDEX, "gl")
    image = await images.resolve(f"{registry.name}/gardenlinux:gl")
    assert image.pinned.digest == wanted["digest"]
    assert image.parts.squashfs is not None


async def test_an_images_own_uki_is_recognized_and_opened(registry: Registry, images: RegistryImages) -> None:
    """It is not downloaded with kernel and initramfs: iPXE needs those alone."""
    names = {"kernel": KERNEL, "initramfs": INITRAMFS, "uki": b"a whole UKI"}
    layers = [registry.blob(content, f"{IRONCORE}.{name}") for name, content in names.items()]
    registry.manifest(layers, tag="uki")

    image = await images.resolve(f"{registry.name}/os:uki")

    assert image.parts.uki is not None
    assert image.parts.uki not in image.parts.blobs
    opened = await images.open(Blob(image.pinned, image.parts.uki.digest))
    assert opened.read_bytes() == b"a whole UKI"


async def test_a_docker_manifest_without_a_config_of_ours_has_no_command_line(
    registry: Registry, images: RegistryImages
) -> None:
    """Only the config media type of OS images is read."""
    layers = [registry.blob(KERNEL, f"{IRONCORE}.kernel"), registry.blob(INITRAMFS, f"{IRONCORE}.initramfs")]
    config = registry.blob(b"{}", "application/vnd.docker.container.image.v1+json")
    body = {"schemaVersion": 2, "mediaType": oci.DOCKER_MANIFEST, "layers": layers, "config": config}
    registry.put(body, oci.DOCKER_MANIFEST, "d")
    assert (await images.resolve(f"{registry.name}/os:d")).command_line == ""


@pytest.mark.parametrize(
    ("build", "expected", "says"),
    [
        (lambda r: r.index({"arm64": r.os_image(tag="")}, tag="x"), "ArchitectureMissing", "it offers arm64"),
        (lambda r: r.index({"amd64": r.index({}, tag="")}, tag="x"), "ManifestInvalid", "another index"),
        (lambda r: r.manifest([], tag="x"), "NotBootable", "no kernel layer"),
        (lambda r: r.manifest([r.blob(b"k", f"{IRONCORE}.kernel")], tag="x"), "NotBootable", "initramfs"),
        (lambda r: r.put([], oci.MANIFEST, "x"), "ManifestInvalid", "not valid"),
        (lambda r: r.put({"layers": [{"mediaType": "a", "digest": "../x", "size": 1}]}, oci.MANIFEST, "x"),
         "ManifestInvalid", "no digest"),
        (lambda r: r.put({"schemaVersion": 1}, "application/vnd.docker.distribution.manifest.v1+json", "x"),
         "ManifestInvalid", "neither"),
        (lambda r: None, "ImageNotFound", "does not have"),
    ],
)  # fmt: skip
async def test_an_image_that_cannot_boot_is_a_lasting_error(
    registry: Registry, images: RegistryImages, build: Any, expected: str, says: str
) -> None:
    """The reason is CamelCase, the message a sentence, and the error is not transient."""
    build(registry)
    error = await reason(images, f"{registry.name}/os:x")
    assert (error.reason, error.transient) == (expected, False)
    assert says in str(error)


@pytest.mark.parametrize(
    ("fault", "value", "expected", "transient"),
    [
        ("status", 500, "RegistryMisbehaves", True),
        ("status", 429, "RegistryMisbehaves", True),
        ("status", 403, "RegistryDenied", False),
        ("status", 418, "RegistryMisbehaves", False),
        ("truncate", True, "RegistryUnreachable", True),
    ],
)
async def test_troubles_of_the_registry_are_told_apart(
    registry: Registry, images: RegistryImages, fault: str, value: Any, expected: str, transient: bool
) -> None:
    """Transient failures are retried, others are errors."""
    registry.os_image(tag="1")
    setattr(registry.faults, fault, value)
    error = await reason(images, f"{registry.name}/os:1")
    assert (error.reason, error.transient) == (expected, transient)


async def test_a_manifest_that_is_not_what_its_digest_says_is_refused(
    registry: Registry, images: RegistryImages
) -> None:
    """A registry cannot serve other content for a pinned image."""
    manifest = registry.os_image(tag="1")
    other = registry.os_image(tag="2", kernel=b"evil")
    registry.manifests[manifest["digest"]] = registry.manifests[other["digest"]]
    assert (await reason(images, f"{registry.name}/os@{manifest['digest']}")).reason == "DigestMismatch"


async def test_a_silent_registry_ends_in_a_time_out(registry: Registry, tmp_path: Path) -> None:
    """It is transient, and takes no longer than the settings allow."""
    registry.os_image(tag="1")
    registry.faults.silent = True
    images = make(registry, tmp_path, manifest_seconds=0.2)
    await images.start()
    error = await reason(images, f"{registry.name}/os:1")
    assert (error.reason, error.transient) == ("RegistryTimeout", True)
    await images.aclose()


async def test_a_registry_that_is_not_there_is_transient(
    registry: Registry, images: RegistryImages, tmp_path: Path
) -> None:
    """Connection refused."""
    other = Registry(port=1)
    images = make(other, tmp_path)
    assert (await reason(images, "127.0.0.1:1/os:1")).reason == "RegistryUnreachable"
    await images.aclose()


async def test_images_come_from_the_named_registries_only(registry: Registry, images: RegistryImages) -> None:
    """No request is sent to others, and the message lists the allowed ones."""
    error = await reason(images, "evil.example/os:1")
    assert error.reason == "RegistryNotAllowed"
    assert registry.name in str(error)
    assert (await reason(images, "not a reference")).reason == "BadReference"


async def test_https_is_spoken_to_registries_that_are_not_named_insecure(registry: Registry, tmp_path: Path) -> None:
    """An allowed registry that serves only http is not contacted in clear text."""
    registry.os_image(tag="1")
    images = RegistryImages(
        RegistryClient(RegistryClientSettings(allowed=(registry.name,))), BlobCache(tmp_path, 10**8)
    )
    assert (await reason(images, f"{registry.name}/os:1")).reason == "RegistryUnreachable"
    assert registry.requests == []
    await images.aclose()


async def test_an_anonymous_token_is_fetched_once_and_used(registry: Registry, images: RegistryImages) -> None:
    """The Bearer flow: challenge, token, repetition; later requests use the token at once."""
    registry.token = "t0ken"
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/team/os:1")
    await images.open(image.plan(ignition=True).kernel)
    (asked,) = [path for path in registry.requests if path.startswith("/token")]
    assert "scope=repository:team/os:pull" in asked
    assert "service=test" in asked
    assert registry.authorizations.count("") == 1


async def test_a_token_stays_with_the_registry_that_it_is_for(registry: Registry, images: RegistryImages) -> None:
    """A redirect to another host does not carry it."""
    registry.token = "t0ken"
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1")
    async with oci.running() as elsewhere:
        elsewhere.blobs = dict(registry.blobs)
        registry.faults.redirect = f"http://{elsewhere.name}/cdn"
        with pytest.raises(ImageError, match="redirects"):
            await images.open(image.plan(ignition=True).kernel)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "place", ["http:///cdn", "http://[", "http://a:b/", "https://", "http:x", "//[", "file:///etc/x"]
)
async def test_a_registry_that_points_nowhere_is_an_error_of_the_image(
    registry: Registry, images: RegistryImages, place: str
) -> None:
    """An invalid redirect or token URL becomes an ImageError, and no other exception."""
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1")
    registry.faults.redirect = place
    with pytest.raises(ImageError) as caught:
        await images.open(image.plan(ignition=True).kernel)
    assert caught.value.reason in ("RegistryMisbehaves", "RegistryUnreachable")
    registry.token, registry.realm = "t0ken", place
    assert (await reason(images, f"{registry.name}/other:1")).reason in (
        "RegistryMisbehaves", "RegistryUnreachable", "RegistryDenied",
    )  # fmt: skip


async def test_a_redirect_within_the_registry_is_followed(registry: Registry, images: RegistryImages) -> None:
    """Registries store blobs under other paths."""
    registry.os_image(tag="1")
    registry.faults.redirect = f"http://{registry.name}/cdn"
    image = await images.resolve(f"{registry.name}/os:1")
    assert (await images.open(image.plan(ignition=True).kernel)).read_bytes() == KERNEL


async def test_a_hundred_askers_cause_one_download(registry: Registry, images: RegistryImages) -> None:
    """Of the manifest and of each blob."""
    registry.os_image(tag="1")
    registry.faults.pause = 0.05
    found = await asyncio.gather(*(images.resolve(f"{registry.name}/os:1") for _ in range(100)))
    paths = await asyncio.gather(*(images.open(image.plan(ignition=True).initramfs) for image in found))
    assert registry.asked("manifests") == 1
    assert registry.asked(oci.digest(INITRAMFS)) == 1
    assert {path.read_bytes() for path in paths} == {INITRAMFS}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("lie", "DigestMismatch"),
        ("truncate", "RegistryUnreachable"),
        ("long", "DigestMismatch"),
        ("status", "RegistryMisbehaves"),
    ],
)
async def test_a_blob_that_arrives_damaged_is_not_served(
    registry: Registry, images: RegistryImages, fault: str, expected: str
) -> None:
    """The next attempt may succeed."""
    registry.os_image(tag="1")
    kernel = (await images.resolve(f"{registry.name}/os:1")).plan(ignition=True).kernel
    setattr(registry.faults, fault, 502 if fault == "status" else True)
    with pytest.raises(ImageError) as caught:
        await images.open(kernel)
    assert (caught.value.reason, caught.value.transient) == (expected, True)
    registry.faults = oci.Faults()
    assert (await images.open(kernel)).read_bytes() == KERNEL


async def test_prefetching_tells_progress_and_wakes_when_done(registry: Registry, images: RegistryImages) -> None:
    """Complete means that every blob is local; the registry is not needed any more."""
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1")
    woken = asyncio.Event()
    assert not images.prefetch("me", image, woken.set).complete
    while not images.prefetch("me", image, woken.set).complete:
        await asyncio.wait_for(woken.wait(), 5)
        woken.clear()
    registry.faults.status = 500
    assert images.keep("me", [blob.digest for blob in image.parts.blobs])
    assert (await images.open(image.plan(ignition=True).kernel)).read_bytes() == KERNEL


async def test_every_owner_hears_of_a_failed_download(registry: Registry, images: RegistryImages) -> None:
    """Once for each owner; then the download starts again."""
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1")
    registry.faults.status = 500
    ended = asyncio.Semaphore(0)
    for owner in ("a", "b"):
        images.prefetch(owner, image, ended.release)
    for _ in range(4):
        await asyncio.wait_for(ended.acquire(), 5)
    for owner in ("a", "b"):
        failure = images.prefetch(owner, image, ended.release).failure
        assert failure is not None
        assert failure.reason == "RegistryMisbehaves"


async def test_a_layer_of_another_image_is_not_opened(registry: Registry, images: RegistryImages) -> None:
    """A URL that combines two images finds nothing."""
    registry.os_image(tag="1")
    other = registry.os_image(tag="2", kernel=b"other kernel")
    plan = (await images.resolve(f"{registry.name}/os@{other['digest']}")).plan(ignition=True)
    with pytest.raises(ImageError, match="no layer"):
        await images.open(replace(plan.kernel, digest=oci.digest(KERNEL)))
