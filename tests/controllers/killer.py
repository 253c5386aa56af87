"""Kills a manager between any two lines: before or after each write to the API or to the BMC."""

import asyncio

from tests.controllers.world import World


class Killer:
    """Never lets the n-th write return (or happen), and says when that moment has come."""

    def __init__(self, w: World, number: int) -> None:
        self.left = number
        self.reached = asyncio.Event()
        self.where = ""
        w.tap.trap = w.bmc.trap = self._trap

    async def _trap(self, what: str, when: str) -> None:
        if self.reached.is_set():
            return
        if self.left > 0:
            self.left -= 1
            return
        self.where = f"{when} {what}"
        self.reached.set()
        await asyncio.Event().wait()
