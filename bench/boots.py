"""Two machines in the middle of a network boot, without BMCs: for `bench/attack.py`, which needs their image URLs.

Their Servers have the annotation operation=ignore, so that no controller ends the boots; the image is put into the
cache of the boot server, so that no registry is needed.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from metal.api.kinds import kinds
from metal.boot.oci import parse
from metal.boot.plan import Blob
from metal.kube.client.protocol import Client

KINDS = kinds()
MACHINES = {"honest": "4c4c4544-0042-4410-8030-b4c04f4d3131", "attacker": "4c4c4544-0042-4410-8030-b4c04f4d3132"}
IMAGE = bytes(64 << 20)
"""Larger than the buffers of a connection, so that a client can hold its transfer."""
DIGEST = f"sha256:{hashlib.sha256(IMAGE).hexdigest()}"
BLOB = Blob(parse(f"registry.bench:5000/os@{DIGEST}"), DIGEST)


def keep_image(data: Path) -> None:
    """Put the image into the cache of the data folder of `metalctl up`, before it starts."""
    blobs = data / "images" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / DIGEST.replace(":", "-")).write_bytes(IMAGE)


async def open_windows(client: Client) -> dict[str, str]:
    """Create the objects of both boots; the path of each machine's image."""
    return {name: await _open(client, name, uuid) for name, uuid in MACHINES.items()}


async def _open(client: Client, name: str, uuid: str) -> str:
    token, now = f"token-of-{name}", datetime.now(UTC)
    config: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"systemUUID": uuid, "image": str(BLOB.image), "kernelURL": BLOB.url(""), "initrdURL": BLOB.url("")},
    }
    await client.create(KINDS.ipxe, config)
    await client.patch_status(KINDS.ipxe, name, {"status": {"state": "Ready"}}, "default")
    annotations = {KINDS.key("operation"): "ignore"}
    await client.create(
        KINDS.server, {"metadata": {"name": name, "annotations": annotations}, "spec": {"systemUUID": uuid}}
    )
    window = {
        "id": f"boot-of-{name}", "purpose": "Discovery", "configRef": {"namespace": "default", "name": name},
        "phase": "ScriptServed", "openedAt": now.isoformat(), "expiresAt": (now + timedelta(hours=1)).isoformat(),
        "tokenDigest": hashlib.sha256(token.encode()).hexdigest(),
    }  # fmt: skip
    await client.patch_status(KINDS.server, name, {"status": {"bootWindow": window}})
    return BLOB.url("", uuid=uuid, token=token)
