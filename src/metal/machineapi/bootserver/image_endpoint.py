"""Serves kernel and RAM disk to the holder of a valid token: whole, as a range, or only the headers."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from metal.api.boot_window import BootWindow
from metal.api.server import Server
from metal.boot.errors import ImageError
from metal.boot.images import Images
from metal.boot.plan import Blob
from metal.boot.uki.layout import whole
from metal.kube.meta.clock import Clock
from metal.machine import boot_window
from metal.machine.boot_window import Refused, TokenMissing
from metal.machine.boot_window_store import BootWindowStore
from metal.machineapi.bootserver.bootable import Bootables, NotReady
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.ranges import ranged
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Content, Response, unavailable


class ImageEndpoint:
    """The image endpoint of the boot server."""

    def __init__(
        self,
        windows: BootWindowStore,
        bootables: Bootables,
        images: Images,
        refusals: Refusals,
        settings: BootSettings,
        clock: Clock,
    ) -> None:
        self._windows, self._bootables, self._images = windows, bootables, images
        self._refusals, self._settings, self._clock = refusals, settings, clock

    async def image(self, query: Mapping[str, str], client: str, method: str, headers: Mapping[str, str]) -> Response:
        """One blob of the image that the server's open boot window refers to."""
        try:
            blob, server = Blob.from_query(query), await self._windows.find(query.get("uuid", ""))
        except Refused as refused:
            return self._refusals.refuse("image", refused.reason, client, str(refused))
        except ValueError:
            return self._refusals.refuse(
                "image", "Malformed", client, "imageName, layerDigest, version or uuid is wrong"
            )
        if server is None:
            return self._refusals.refuse("image", "UnknownMachine", client, "no server has this UUID")
        try:
            return await self._serve(server, blob, query.get("token", ""), method, headers)
        except Refused as refused:
            return self._refusals.refuse("image", refused.reason, client, str(refused), server)
        except (NotReady, ImageError) as exc:
            self._refusals.note("image", getattr(exc, "reason", "NotReady"), client, str(exc), server)
            return unavailable("not ready yet, try again later", 2)

    async def _serve(self, server: Server, blob: Blob, token: str, method: str, headers: Mapping[str, str]) -> Response:
        if not token:
            raise TokenMissing
        window = boot_window.check_image_token(server.status.boot_window, self._clock(), token)
        plan = (await self._bootables.of(window)).plan
        if blob not in plan.blobs:
            raise Refused("ImageForbidden", "the blob is not part of this boot's image")
        path = await self._file(blob)
        layout = await asyncio.to_thread(whole, path)
        content = Content(layout, partial(self._images.use, blob.digest))
        answer = replace(ranged(content, blob.digest, headers), holder=server.metadata.name)
        if blob == plan.initramfs and not plan.ignition and method == "GET" and _reaches_end(answer, layout.size):
            return replace(answer, on_sent=partial(self._done, server, token))
        return answer

    async def _file(self, blob: Blob) -> Path:
        try:
            return await asyncio.wait_for(self._images.open(blob), self._settings.image_wait)
        except TimeoutError:
            raise NotReady("the image is still being fetched") from None

    async def _done(self, server: Server, token: str) -> None:
        """The whole image was fetched; without an Ignition that ends the boot successfully."""

        def step(window: BootWindow | None) -> BootWindow:
            return boot_window.succeed(boot_window.check_token(window, self._clock(), token))

        with suppress(Refused):  # the boot was contested or closed meanwhile
            await self._windows.change(server, step)


def _reaches_end(answer: Response, size: int) -> bool:
    return answer.status == 200 or f"-{size - 1}/" in answer.headers.get("Content-Range", "")
