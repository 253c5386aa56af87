"""The embedded API as one thing to start and stop."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from metal.apiserver.backend import Backend
from metal.apiserver.client import InProcessClient
from metal.kube.clock import Clock


class EmbeddedAPI:
    """A Kubernetes API in this process.

    data_dir: where objects, keys and tokens are kept; None keeps nothing (tests, virtual time).
    """

    def __init__(self, data_dir: Path | None, clock: Clock, *, rng: random.Random | None = None) -> None:
        self._data_dir = data_dir
        self.backend = Backend(clock, rng=rng)

    async def start(self) -> None:
        """Load what was stored and begin to answer in-process clients. Raises JournalError."""
        await self.backend.start()

    async def stop(self) -> None:
        """End every watch, finish what was written."""
        await self.backend.stop()

    def client(self, user: str = "metal-operator") -> InProcessClient:
        """A client in this process, acting under `user`'s name."""
        return InProcessClient(self.backend, user)

    async def install_crds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Create or bring up to date CRDs."""
        await self.backend.install_crds([dict(crd) for crd in definitions])
