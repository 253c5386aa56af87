"""An embedded API that listens, and metalctl as a process connected to it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.cli.main import main
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock
from tests.crds import crds

METALCTL = Path(sys.executable).with_name("metalctl")
KINDS = kinds()


@dataclass(frozen=True)
class Live:
    """A client of the API, and its kubeconfig."""

    client: Client
    kubeconfig: Path

    async def program(self, *words: str | Path, env: dict[str, str]) -> asyncio.subprocess.Process:
        """Start a program with this environment and piped output."""
        return await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env
        )

    async def process(self, *args: str, stdin: bool = False) -> asyncio.subprocess.Process:
        """Start a command, with piped input if requested."""
        return await asyncio.create_subprocess_exec(
            METALCTL, args[0], "--kubeconfig", self.kubeconfig, *args[1:],
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "COLUMNS": "200"},
            stdin=asyncio.subprocess.PIPE if stdin else None,
        )  # fmt: skip

    async def metalctl(self, *args: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr of a command."""
        return await self._ended(await self.process(*args))

    async def run(self, *args: str) -> tuple[int, str, str]:
        """Like metalctl(), in a thread of this process, and with the kubeconfig in the environment."""
        env = {"COLUMNS": "200", "KUBECONFIG": str(self.kubeconfig)}
        result = await asyncio.to_thread(CliRunner(env=env).invoke, main, args)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    async def subcommand(self, group: str, *args: str) -> tuple[int, str, str]:
        """Like run(), for a command in a group such as power."""
        words: tuple[str | Path, ...] = (group, args[0], "--kubeconfig", self.kubeconfig, *args[1:])
        return await self._ended(await self.program(METALCTL, *words, env={**os.environ, "COLUMNS": "200"}))

    async def _ended(self, process: asyncio.subprocess.Process) -> tuple[int, str, str]:
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def api(folder: Path) -> AsyncIterator[Live]:
    """Start an API with the kinds of the project on a free port."""
    server = EmbeddedAPI(folder, system_clock)
    await server.start()
    try:
        await server.install_crds(crds(KINDS))
        await server.listen(port=0)
        yield Live(server.client(), server.kubeconfig)
    finally:
        await server.stop()
