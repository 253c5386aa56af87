"""An embedded API that listens here, and metalctl as a process of its own against it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.codegen.crd import crds
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock

METALCTL = Path(sys.executable).with_name("metalctl")
KINDS = kinds()


@dataclass(frozen=True)
class Live:
    """The API's client in this process, and its kubeconfig for others."""

    client: Client
    kubeconfig: Path

    async def program(self, *words: str | Path, env: dict[str, str]) -> asyncio.subprocess.Process:
        """Any program with this environment, its output in pipes."""
        return await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env
        )

    async def process(self, *args: str, stdin: bool = False) -> asyncio.subprocess.Process:
        """A command that goes on, with a pipe to type into when asked for."""
        return await asyncio.create_subprocess_exec(
            METALCTL, args[0], "--kubeconfig", self.kubeconfig, *args[1:],
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "COLUMNS": "200"},
            stdin=asyncio.subprocess.PIPE if stdin else None,
        )  # fmt: skip

    async def metalctl(self, *args: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command that ends."""
        return await self._ended(await self.process(*args))

    async def run(self, *args: str) -> tuple[int, str, str]:
        """The same, with the kubeconfig in the environment."""
        env = {**os.environ, "COLUMNS": "200", "KUBECONFIG": str(self.kubeconfig)}
        return await self._ended(await self.program(METALCTL, *args, env=env))

    async def subcommand(self, group: str, *args: str) -> tuple[int, str, str]:
        """The same of a command in a group, such as power."""
        words: tuple[str | Path, ...] = (group, args[0], "--kubeconfig", self.kubeconfig, *args[1:])
        return await self._ended(await self.program(METALCTL, *words, env={**os.environ, "COLUMNS": "200"}))

    async def _ended(self, process: asyncio.subprocess.Process) -> tuple[int, str, str]:
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
