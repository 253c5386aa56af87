"""Writes a kernel and an initramfs as an OCI image layout in IronCore's image format (OCI image spec 1.1)."""

import hashlib
import json
import shutil
from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.ironcore.image.config.v1+json"
LAYER = "application/vnd.ironcore.image."

Descriptor = dict[str, object]


def write_layout(out: Path, parts: dict[str, Path], command_line: str, architecture: str = "amd64") -> str:
    """Writes the layout into a new folder and returns the digest of its index.

    `parts` names each layer by its kind: kernel, initramfs, squashfs, uki, iso. Layers are stored as they are.
    """
    (out / "blobs/sha256").mkdir(parents=True)
    (out / "oci-layout").write_text(_json({"imageLayoutVersion": "1.0.0"}))
    config = _store(out, _json({"commandLine": command_line}).encode(), CONFIG)
    layers = [_store_file(out, path, LAYER + kind) for kind, path in parts.items()]
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
    described = _store(out, _json(manifest).encode(), MANIFEST)
    described["platform"] = {"architecture": architecture, "os": "linux"}
    index = _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]})
    (out / "index.json").write_text(index)
    return _digest(index.encode())


def blob(layout: Path, digest: str) -> Path:
    """The file of a layout that holds the content with this digest."""
    return layout / "blobs" / digest.replace(":", "/")


def _store(out: Path, data: bytes, media_type: str) -> Descriptor:
    digest = _digest(data)
    blob(out, digest).write_bytes(data)
    return {"mediaType": media_type, "digest": digest, "size": len(data)}


def _store_file(out: Path, source: Path, media_type: str) -> Descriptor:
    with source.open("rb") as stream:
        digest = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    shutil.copyfile(source, blob(out, digest))
    return {"mediaType": media_type, "digest": digest, "size": source.stat().st_size}


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
