"""Runs the real kubectl against an embedded API in this process."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from metal.apiserver.server import EmbeddedAPI
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import Obj


def program() -> str:
    """The kubectl to test with: KUBECTL, else the one on PATH. Fails the test when there is none."""
    found = os.environ.get("KUBECTL") or shutil.which("kubectl")
    if not found:
        pytest.fail("no kubectl: run `make kubectl`, or name one in the environment variable KUBECTL")
    return found


@dataclass(frozen=True)
class Result:
    """What a run of kubectl left."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[list[str]]:
        """The words of each line of the output."""
        return [line.split() for line in self.out.splitlines()]


class Cluster:
    """An embedded API and the kubectl that talks to it, with a home of its own."""

    def __init__(self, api: EmbeddedAPI, home: Path) -> None:
        self.api = api
        self.home = home
        self._program = program()

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Nothing of the caller's kubectl configuration leaks in."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.api.kubeconfig),
            **(more or {}),
        }

    async def start(self, *args: str, **environment: str) -> asyncio.subprocess.Process:
        """A kubectl that runs beside the test."""
        return await asyncio.create_subprocess_exec(
            self._program,
            *args,
            env=self.environment(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *args: str, stdin: str = "", **environment: str) -> Result:
        """Run to the end, at most 30 seconds."""
        process = await self.start(*args, **environment)
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 30)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return Result(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *args: str, stdin: str = "", **environment: str) -> Result:
        """Run, and expect success without warnings."""
        result = await self.run(*args, stdin=stdin, **environment)
        assert (result.code, result.err) == (0, ""), result
        return result

    async def apply(self, *objects: Obj) -> Result:
        """`kubectl apply -f -`."""
        return await self.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """A fresh API that listens, and kubectl."""
    home = folder / "home"
    home.mkdir()
    api = EmbeddedAPI(folder / "data", system_clock)
    await api.start()
    try:
        await api.listen("127.0.0.1", 0)
        yield Cluster(api, home)
    finally:
        await api.stop()
