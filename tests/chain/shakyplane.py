"""A plane whose manager reaches the API through a shaky client; users, machines and the history reach it well."""

import random
from typing import Any

from metal.kube.client.protocol import Client
from tests.chain.shaky import Shaky
from tests.sim.plane import Plane


class ShakyPlane(Plane):
    """`shaky` outlives the managers that are killed: it is their API that fails, not they."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self._shaky: Shaky | None = None
        super().__init__(*args, **more)

    @property
    def shaky(self) -> Shaky:
        """The client of every manager."""
        if self._shaky is None:
            self._shaky = Shaky(self.api.client(), random.Random(self.seed))
        return self._shaky

    def manager_client(self) -> Client:
        return self.shaky
