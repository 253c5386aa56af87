"""Manifests and indexes of OCI images (image-spec 1.1, Docker schema 2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from metal.boot.errors import ImageError
from metal.boot.oci import is_digest

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
KERNEL = ("application/vnd.ironcore.image.kernel", "application/io.gardenlinux.kernel")
INITRAMFS = ("application/vnd.ironcore.image.initramfs", "application/io.gardenlinux.initrd")
SQUASHFS = ("application/vnd.ironcore.image.squashfs", "application/io.gardenlinux.squashfs")
UKIS = ("application/vnd.ironcore.image.uki",)
CONFIGS = ("application/vnd.ironcore.image.config.v1+json",)
OCI_CONFIGS = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
"""Configs of images that were built as container images: they name an architecture, and no kernel arguments."""
MOST_ENTRIES = 512
"""Most manifests in an index, and layers in a manifest."""
_ALIASES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of Linux that images have in place of those of OCI."""
_UNKNOWN = "unknown"
"""Architecture of an index's entry that is no image, such as the attestations of BuildKit."""


class Platform(msgspec.Struct, frozen=True, rename="camel"):
    """What an index entry runs on."""

    architecture: str = ""
    os: str = ""


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """Points to content by digest. Sizes in bytes."""

    media_type: str
    digest: str
    size: int
    platform: Platform | None = None
    annotations: Mapping[str, str] | None = None


class Document(msgspec.Struct, frozen=True, rename="camel"):
    """A manifest or an index."""

    media_type: str = ""
    manifests: tuple[Descriptor, ...] | None = None
    config: Descriptor | None = None
    layers: tuple[Descriptor, ...] | None = None
    annotations: Mapping[str, str] | None = None


class Parts(msgspec.Struct, frozen=True):
    """The parts of an image that a network boot needs."""

    kernel: Descriptor
    initramfs: Descriptor
    squashfs: Descriptor | None = None
    config: Descriptor | None = None
    uki: Descriptor | None = None
    """A unified kernel image with a command line of its own."""

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """What iPXE is served, kernel first."""
        return tuple(part for part in (self.kernel, self.initramfs, self.squashfs) if part is not None)


def parse(raw: bytes, media_type: str) -> Document:
    """Read a document. Raises ImageError."""
    try:
        document = msgspec.json.decode(raw, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ImageError("ManifestInvalid", f"the registry's manifest is not valid: {exc}") from None
    for entry in (
        *(document.manifests or ()),
        *(document.layers or ()),
        *((document.config,) if document.config else ()),
    ):
        if not is_digest(entry.digest) or entry.size < 0:
            raise ImageError(
                "ManifestInvalid", f"the manifest points to {entry.digest!r}, which is no digest with a size"
            )
    if max(len(document.manifests or ()), len(document.layers or ())) > MOST_ENTRIES:
        raise ImageError("ManifestInvalid", f"the manifest lists more than {MOST_ENTRIES} entries")
    if document.media_type and media_type in (*INDEXES, *MANIFESTS) and document.media_type != media_type:
        raise ImageError(
            "ManifestInvalid", f"the manifest calls itself {document.media_type}, the registry {media_type}"
        )
    return document


def is_index(document: Document, media_type: str) -> bool:
    """Whether this is an index. Raises ImageError when it is neither index nor manifest."""
    kind = document.media_type or media_type
    if kind in INDEXES or (kind not in MANIFESTS and document.manifests is not None):
        if document.manifests is None or document.layers is not None:
            raise ImageError("ManifestInvalid", "the index has no list of manifests, or layers of its own")
        return True
    if document.layers is None or document.manifests is not None:
        raise ImageError("ManifestInvalid", f"{kind or 'the answer'} is neither an image manifest nor an index")
    return False


def candidates(document: Document, architecture: str) -> tuple[Descriptor, ...]:
    """The index entries that may lead to an image for an architecture, the best first.

    One marked for PXE on metal (Garden Linux), then by platform, then nested indexes that name no platform.
    """
    entries = document.manifests or ()
    fitting = [entry for entry in entries if _architecture(entry) == architecture]
    found = [entry for entry in fitting if _is_for_metal(entry)] + [entry for entry in fitting if entry.platform]
    found += [entry for entry in entries if entry.media_type in INDEXES and not _architecture(entry)]
    return tuple({entry.digest: entry for entry in found}.values())


def offered(document: Document) -> frozenset[str]:
    """The architectures that the entries of an index name."""
    return frozenset(map(_architecture, document.manifests or ())) - {"", _UNKNOWN}


def architecture_missing(wanted: str, there: Iterable[str]) -> ImageError:
    """The error for an image that has nothing for an architecture."""
    said = ", ".join(sorted(there)) or "none that is named"
    return ImageError("ArchitectureMissing", f"the image has no part for {wanted}; it offers {said}")


def _architecture(entry: Descriptor) -> str:
    platform = entry.platform
    if platform is None:
        return stated(entry.annotations)
    return _plain(platform.architecture) if platform.os in ("", "linux") else ""


def stated(annotations: Mapping[str, str] | None) -> str:
    """The architecture that annotations name; empty if none."""
    return _plain((annotations or {}).get("architecture", ""))


def _plain(architecture: str) -> str:
    return _ALIASES.get(architecture, architecture)


def _is_for_metal(entry: Descriptor) -> bool:
    return (entry.annotations or {}).get("cname", "").startswith("metal_pxe")


def parts(document: Document) -> Parts:
    """The layers of a manifest by role. Raises ImageError unless there is one kernel and one initramfs."""
    layers = document.layers or ()
    kernel, initramfs = _one(layers, KERNEL, "kernel"), _one(layers, INITRAMFS, "initramfs")
    if kernel is None or initramfs is None:
        missing = "kernel" if kernel is None else "initramfs"
        raise ImageError("NotBootable", f"the image has no {missing} layer; its layers are {_types(layers) or 'none'}")
    config = document.config if document.config and document.config.media_type in (*CONFIGS, *OCI_CONFIGS) else None
    return Parts(kernel, initramfs, _one(layers, SQUASHFS, "squashfs"), config, _one(layers, UKIS, "UKI"))


@dataclass(frozen=True)
class Config:
    """What the config of an image says; empty where it says nothing."""

    command_line: str = ""
    architecture: str = ""


def read_config(raw: bytes, media_type: str) -> Config:
    """The config of an image: its kernel arguments and its architecture. Raises ImageError."""
    try:
        config: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ImageError("ConfigInvalid", f"the image's config is not JSON: {exc}") from None
    found = config if isinstance(config, dict) else {"commandLine": None}
    line, architecture = found.get("commandLine", ""), found.get("architecture", "")
    if not isinstance(line, str) or not isinstance(architecture, str):
        problem = "the image's config must be an object whose commandLine and architecture are strings"
        raise ImageError("ConfigInvalid", problem)
    return Config(line if media_type in CONFIGS else "", _plain(architecture))


def _one(layers: tuple[Descriptor, ...], types: tuple[str, ...], what: str) -> Descriptor | None:
    found = [layer for layer in layers if layer.media_type in types]
    if len({layer.digest for layer in found}) > 1:
        raise ImageError("NotBootable", f"the image has {len(found)} {what} layers; one is needed")
    return found[0] if found else None


def _types(layers: tuple[Descriptor, ...]) -> str:
    return ", ".join(sorted({layer.media_type[:80] for layer in layers})[:8])
