"""Resolves images in tasks beside the workers, so that a slow registry blocks no worker."""

import asyncio
from collections.abc import Callable

from metal.boot.errors import ImageError
from metal.boot.images import Image, Images

_SHORT_WAIT = 0.2
"""Seconds that a worker waits before it reports Resolving: most registries answer sooner, which saves a write."""


class Lookups:
    """One lookup per owner at a time; its result is returned once."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._running: dict[str, tuple[str, asyncio.Task[Image]]] = {}

    async def start_or_join(
        self, owner: str, reference: str, wake: Callable[[], None], *, pinned: bool = False
    ) -> Image | None:
        """The image, or None while it is being resolved; then `wake` is called. Raises ImageError."""
        running = self._running.get(owner)
        if running is None or running[0] != reference:
            self.drop(owner)
            resolving = self._images.resolve(reference, pinned=pinned)
            task = asyncio.get_running_loop().create_task(resolving, name=f"look up {reference}")
            self._running[owner] = (reference, task)
            await asyncio.wait({task}, timeout=_SHORT_WAIT)
            if not task.done():
                task.add_done_callback(lambda _: wake())
        else:
            task = running[1]
        if not task.done():
            return None
        self._running.pop(owner, None)
        return _outcome(task)

    def drop(self, owner: str) -> None:
        """Cancel a lookup whose result is no longer needed."""
        running = self._running.pop(owner, None)
        if running is not None and not running[1].cancel() and not running[1].cancelled():
            running[1].exception()  # retrieved, so that asyncio does not log it

    def close(self) -> None:
        """Cancel all lookups."""
        for owner in list(self._running):
            self.drop(owner)


def _outcome(task: "asyncio.Task[Image]") -> Image:
    if task.cancelled():
        raise ImageError("Interrupted", "resolving was interrupted", transient=True)
    return task.result()
