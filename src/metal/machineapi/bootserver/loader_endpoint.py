"""Serves iPXE's EFI binaries to firmware that boots by HTTP. They are the same for all machines and have no secrets.

Firmware sends HEAD, then GET, and gives up at once on a redirect, on 503, and on a length that is not exact.
"""

import asyncio
from pathlib import Path

from metal.boot.dhcp.firmware import LOADERS
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Response

_TYPE = "application/efi"
_LARGEST = 16 << 20
"""Bytes; iPXE with all its drivers has one to two million."""


class LoaderEndpoint:
    """The binaries in one folder. Each is read again for each request: an update of iPXE needs no restart."""

    def __init__(self, folder: Path, refusals: Refusals) -> None:
        self._folder, self._refusals = folder, refusals

    async def loader(self, name: str, client: str) -> Response:
        """The binary with this name."""
        if name not in LOADERS:
            return self._refusals.refuse("loader", "NotOffered", client, f"the loaders are {', '.join(LOADERS)}")
        path = self._folder / LOADERS[name]
        try:
            body = await asyncio.to_thread(_read, path)
        except OSError as exc:
            why = f"{path} cannot be read ({exc.strerror}): install iPXE there, or set boot.ipxeFolder"
            return self._refusals.refuse("loader", "NotOffered", client, why)
        return Response(200, body, _TYPE)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST)
