"""An embedded API that listens here, and metalctl as a process of its own against it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metal.api.crd import crds
from metal.api.kinds import kinds
from metal.apiserver.client import InProcessClient
from metal.apiserver.server import EmbeddedAPI
from metal.kube.clock import system_clock

METALCTL = Path(sys.executable).with_name("metalctl")
KINDS = kinds()


@dataclass(frozen=True)
class Live:
    """The API's client in this process, and its kubeconfig for others."""

    client: InProcessClient
    kubeconfig: Path

    async def metalctl(self, *args: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command that ends."""
        return await self.run(args[0], "--kubeconfig", str(self.kubeconfig), *args[1:])

    async def run(self, *args: str) -> tuple[int, str, str]:
        """The same, with the kubeconfig in the environment."""
        process = await asyncio.create_subprocess_exec(
            METALCTL, *args, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200", "KUBECONFIG": str(self.kubeconfig)},
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def api(folder: Path) -> AsyncIterator[Live]:
    """Up, with the kinds of this project, on a free port."""
    server = EmbeddedAPI(folder, system_clock)
    await server.start()
    try:
        await server.install_crds(crds(KINDS))
        await server.listen(port=0)
        yield Live(server.client(), server.kubeconfig)
    finally:
        await server.stop()
