"""Images from a registry to local files, over sockets on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.images import Quota, RegistryImages
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


def make(registry: Registry, folder: Path, quota: Quota | None = None, **more: Any) -> RegistryImages:
    settings = RegistryClientSettings(allowed=(), insecure=(registry.name,), **more)
    return RegistryImages(RegistryClient(settings), BlobCache(folder, 10**8), quota)


async def reason(images: RegistryImages, reference: str, architecture: str = "amd64") -> ImageError:
    with pytest.raises(ImageError) as caught:
        await images.resolve(reference, architecture)
    return caught.value


def _nested(registry: Registry, depth: int) -> None:
    """An index in an index …, `depth` of them, around an image."""
    found = registry.os_image(tag="")
    for level in range(depth):
        body = {"schemaVersion": 2, "manifests": [found], "annotations": {"level": str(level)}}
        found = registry.put(body, oci.INDEX, "x")


def _wide(registry: Registry, count: int) -> None:
    """An index of so many indexes without an image."""
    found = [
        registry.put({"schemaVersion": 2, "manifests": [], "annotations": {"number": str(number)}}, oci.INDEX)
        for number in range(count)
    ]
    registry.put({"schemaVersion": 2, "manifests": found}, oci.INDEX, "x")


async def test_a_manifest_is_resolved_and_pinned(registry: Registry, images: RegistryImages) -> None:
    """Kernel, initramfs and the command line of its config; the reference becomes a digest."""
    manifest = registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os/probe:1", "amd64")
    assert image.pinned.digest == manifest["digest"]
    assert image.parts.kernel.digest == oci.digest(KERNEL)
    assert image.parts.initramfs.digest == oci.digest(INITRAMFS)
    assert image.command_line == "console=ttyS0 rdinit=/init"


@pytest.mark.parametrize("type", [oci.INDEX, oci.DOCKER_LIST])
async def test_an_index_is_resolved_for_the_architecture(registry: Registry, images: RegistryImages, type: str) -> None:
    """OCI indexes and Docker manifest lists."""
    amd, arm = registry.os_image(tag=""), registry.os_image(tag="", kernel=b"arm kernel")
    registry.index({"arm64": arm, "amd64": amd}, tag="2", type=type)
    assert (await images.resolve(f"{registry.name}/os:2", "amd64")).pinned.digest == amd["digest"]


async def test_garden_linux_is_found_by_its_annotation(registry: Registry, images: RegistryImages) -> None:
    """Its index marks the variant for PXE on metal, and its layers have their own media types."""
    prefix = "application/io.gardenlinux"
    layers = [registry.blob(name.encode(), f"{prefix}.{name}") for name in ("kernel", "initrd", "squashfs")]
    wanted, other = registry.manifest(layers), registry.os_image(tag="")
    notes = {"cname": "metal_pxe-amd64", "architecture": "amd64"}
    entries = [other | {"platform": {"architecture": "amd64"}}, wanted | {"annotations": notes}]
    registry.put({"schemaVersion": 2, "manifests": entries}, oci.INDEX, "gl")
    image = await images.resolve(f"{registry.name}/gardenlinux:gl", "amd64")
    assert image.pinned.digest == wanted["digest"]
    assert image.parts.squashfs is not None


async def test_nested_indexes_are_searched_for_the_architecture(registry: Registry, images: RegistryImages) -> None:
    """Indexes without a platform, too; the first one has nothing for amd64, and is read once."""
    amd, arm = registry.os_image(tag=""), registry.os_image(tag="", kernel=b"arm kernel")
    only_arm, both = registry.index({"arm64": arm}, tag=""), registry.index({"arm64": arm, "amd64": amd}, tag="")
    proof = registry.blob(b"{}", oci.MANIFEST) | {"platform": {"architecture": "unknown", "os": "unknown"}}
    entries = [proof, only_arm, only_arm, both | {"platform": {"architecture": "amd64", "os": "linux"}}]
    registry.put({"schemaVersion": 2, "manifests": [only_arm, only_arm, *entries]}, oci.INDEX, "n")
    assert (await images.resolve(f"{registry.name}/os:n", "amd64")).pinned.digest == amd["digest"]
    registry.put({"schemaVersion": 2, "manifests": [only_arm, only_arm]}, oci.INDEX, "a")
    with pytest.raises(ImageError, match="no part for amd64; it offers arm64"):
        await images.resolve(f"{registry.name}/os:a", "amd64")
    assert registry.asked(only_arm["digest"]) == 1


async def test_one_reference_is_another_image_on_another_architecture(
    registry: Registry, images: RegistryImages
) -> None:
    """Requests in progress are not shared between architectures; each result stays with its own."""
    amd, arm = registry.os_image(tag=""), registry.os_image(tag="", kernel=b"arm kernel")
    index = registry.index({"x86_64": amd, "arm64": arm}, tag="2")
    for reference in ("os:2", f"os@{index['digest']}"):
        found = await asyncio.gather(
            *(images.resolve(f"{registry.name}/{reference}", name) for name in ("amd64", "arm64"))
        )
        assert [image.pinned.digest for image in found] == [amd["digest"], arm["digest"]]


@pytest.mark.parametrize(
    ("media_type", "config", "refused"),
    [
        ("application/vnd.oci.image.config.v1+json", {"architecture": "amd64", "os": "linux"}, "amd64"),
        ("application/vnd.docker.container.image.v1+json", {"architecture": "x86_64"}, "amd64"),
        ("application/vnd.ironcore.image.config.v1+json", {"architecture": "amd64", "commandLine": "a"}, "amd64"),
        ("application/vnd.ironcore.image.config.v1+json", {"architecture": "arm64"}, ""),
        ("application/vnd.ironcore.image.config.v1+json", {"commandLine": "a"}, ""),
        ("application/vnd.oci.empty.v1+json", {"architecture": "amd64"}, ""),
    ],
)
async def test_a_manifest_that_names_another_architecture_is_refused(
    registry: Registry, images: RegistryImages, media_type: str, config: dict[str, str], refused: str
) -> None:
    """Also when it was resolved before, by its digest; what names none is accepted, as is what was chosen before."""
    body = json.loads(registry.manifests[registry.os_image(tag="")["digest"]][1])
    body["config"] = registry.blob(json.dumps(config).encode(), media_type)
    made = registry.put(body, oci.MANIFEST, "1")
    for reference in ("os:1", f"os@{made['digest']}", "os:1"):
        if refused:
            assert str(await reason(images, f"{registry.name}/{reference}", "arm64")) == (
                f"the image has no part for arm64; it offers {refused}"
            )
        else:
            await images.resolve(f"{registry.name}/{reference}", "arm64")
        await images.resolve(f"{registry.name}/os@{made['digest']}", "arm64", pinned=True)
    registry.index({"arm64": made}, tag="i")
    assert (await images.resolve(f"{registry.name}/os:i", "arm64")).pinned.digest == made["digest"], "the index decides"


async def test_an_images_own_uki_is_recognized_and_opened(registry: Registry, images: RegistryImages) -> None:
    """It is not downloaded with kernel and initramfs: iPXE needs those alone."""
    names = {"kernel": KERNEL, "initramfs": INITRAMFS, "uki": b"a whole UKI"}
    layers = [registry.blob(content, f"{IRONCORE}.{name}") for name, content in names.items()]
    registry.manifest(layers, tag="uki")

    image = await images.resolve(f"{registry.name}/os:uki", "amd64")

    assert image.parts.uki is not None
    assert image.parts.uki not in image.parts.blobs
    opened = await images.open(Blob(image.pinned, image.parts.uki.digest))
    assert opened.read_bytes() == b"a whole UKI"


async def test_a_docker_manifest_without_a_config_of_ours_has_no_command_line(
    registry: Registry, images: RegistryImages
) -> None:
    """That of a container image names the architecture only."""
    layers = [registry.blob(KERNEL, f"{IRONCORE}.kernel"), registry.blob(INITRAMFS, f"{IRONCORE}.initramfs")]
    config = registry.blob(b"{}", "application/vnd.docker.container.image.v1+json")
    body = {"schemaVersion": 2, "mediaType": oci.DOCKER_MANIFEST, "layers": layers, "config": config}
    registry.put(body, oci.DOCKER_MANIFEST, "d")
    assert (await images.resolve(f"{registry.name}/os:d", "amd64")).command_line == ""


@pytest.mark.parametrize(
    ("build", "expected", "says"),
    [
        (lambda r: r.index({"arm64": r.os_image(tag="")}, tag="x"), "ArchitectureMissing", "it offers arm64"),
        (lambda r: r.index({"amd64": r.index({}, tag="")}, tag="x"), "ArchitectureMissing", "offers amd64"),
        (lambda r: _nested(r, 6), "ManifestInvalid", "nested more than 4 deep"),
        (lambda r: _wide(r, 20), "ManifestInvalid", "more than 16 of them"),
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
    image = await images.resolve(f"{registry.name}/team/os:1", "amd64")
    await images.open(image.plan(ignition=True).kernel)
    (asked,) = [path for path in registry.requests if path.startswith("/token")]
    assert "scope=repository:team/os:pull" in asked
    assert "service=test" in asked
    assert registry.authorizations.count("") == 1


async def test_a_token_stays_with_the_registry_that_it_is_for(registry: Registry, images: RegistryImages) -> None:
    """A redirect to another host does not carry it."""
    registry.token = "t0ken"
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1", "amd64")
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
    image = await images.resolve(f"{registry.name}/os:1", "amd64")
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
    image = await images.resolve(f"{registry.name}/os:1", "amd64")
    assert (await images.open(image.plan(ignition=True).kernel)).read_bytes() == KERNEL


async def test_a_hundred_askers_cause_one_download(registry: Registry, images: RegistryImages) -> None:
    """Of the manifest and of each blob."""
    registry.os_image(tag="1")
    registry.faults.pause = 0.05
    found = await asyncio.gather(*(images.resolve(f"{registry.name}/os:1", "amd64") for _ in range(100)))
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
    kernel = (await images.resolve(f"{registry.name}/os:1", "amd64")).plan(ignition=True).kernel
    setattr(registry.faults, fault, 502 if fault == "status" else True)
    with pytest.raises(ImageError) as caught:
        await images.open(kernel)
    assert (caught.value.reason, caught.value.transient) == (expected, True)
    registry.faults = oci.Faults()
    assert (await images.open(kernel)).read_bytes() == KERNEL


async def test_prefetching_tells_progress_and_wakes_when_done(registry: Registry, images: RegistryImages) -> None:
    """Complete means that every blob is local; the registry is not needed any more."""
    registry.os_image(tag="1")
    image = await images.resolve(f"{registry.name}/os:1", "amd64")
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
    image = await images.resolve(f"{registry.name}/os:1", "amd64")
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
    plan = (await images.resolve(f"{registry.name}/os@{other['digest']}", "amd64")).plan(ignition=True)
    with pytest.raises(ImageError, match="no layer"):
        await images.open(replace(plan.kernel, digest=oci.digest(KERNEL)))


async def test_the_images_of_a_namespace_stay_within_its_quota(registry: Registry, tmp_path: Path) -> None:
    """What several owners need counts once; further images wait until a claim is gone; other namespaces are served."""
    registry.os_image(tag="1")
    registry.os_image(tag="2", kernel=b"another kernel")
    made = make(registry, tmp_path, quota=Quota(len(KERNEL) + len(INITRAMFS), frozenset({"metal-system"})))
    await made.start()
    one, two = [await made.resolve(f"{registry.name}/os:{tag}", "amd64") for tag in "12"]
    assert made.prefetch("team/a", one, lambda: None).failure is None
    assert made.prefetch("team/b", one, lambda: None).failure is None
    failure = made.prefetch("team/c", two, lambda: None).failure
    assert failure is not None
    assert (failure.reason, failure.transient) == ("QuotaExceeded", True)
    assert "the images of namespace team need" in str(failure)
    for elsewhere in ("other/c", "metal-system/c", "team/a"):
        made.release("team/b")
        assert made.prefetch(elsewhere, two, lambda: None).failure is None
    await made.aclose()
