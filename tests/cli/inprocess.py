"""Runs metalctl in a thread of this process against an embedded API that listens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from metal.api.core import EVENT
from metal.cli.main import main
from metal.kube.meta.clock import system_clock
from tests.cli.live import KINDS, Live, api

UUID = "38947555-7742-3448-3784-823347823834"


@dataclass(frozen=True)
class Outcome:
    """Result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return stdout, decoded."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Bench:
    """The API, and metalctl connected to it."""

    live: Live

    async def run(self, *args: str, stdin: str = "") -> Outcome:
        """Run a command to its end while the API is running."""
        words = list(args)
        at = 2 if words[0] == "power" else 1
        words[at:at] = ["--kubeconfig", str(self.live.kubeconfig)]
        result = await asyncio.to_thread(CliRunner(env={"COLUMNS": "200"}).invoke, main, words, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    async def server(self, name: str, spec: dict[str, Any] | None = None, **status: Any) -> None:
        """Create a Server with this status."""
        number = int.from_bytes(name.encode()[-6:], "big")
        body = {"metadata": {"name": name}, "spec": {"systemUUID": f"{UUID[:24]}{number:012x}"[:36], **(spec or {})}}
        await self.live.client.create(KINDS.server, body)
        await self.live.client.patch_status(KINDS.server, name, {"status": status})

    async def claim(self, name: str, spec: dict[str, Any] | None = None, **status: Any) -> None:
        """Create a ServerClaim in namespace default."""
        wanted = {"image": "x/y:1", "power": "On", **(spec or {})}
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": wanted}
        await self.live.client.create(KINDS.claim, body)
        if status:
            await self.live.client.patch_status(KINDS.claim, name, {"status": status}, "default")

    async def claimed(self, name: str, claim: str, **status: Any) -> None:
        """Create a Server and the claim that is bound to it."""
        await self.claim(claim, {"serverRef": {"name": name}}, phase="Bound")
        await self.server(name, {"serverClaimRef": {"namespace": "default", "name": claim}}, state="Reserved", **status)

    async def event(self, server: str, reason: str, message: str, at: datetime | None = None) -> None:
        """Create a Warning Event for a server."""
        meta = (await self.live.client.get(KINDS.server, server)).metadata
        stamp = (at or system_clock()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"kind": "Server", "apiVersion": KINDS.server.api_version, "name": server, "uid": meta.uid}
        body = {
            "metadata": {"name": f"{server}.{reason.lower()}", "namespace": "default"}, "involvedObject": about,
            "type": "Warning", "reason": reason, "message": message, "lastTimestamp": stamp, "count": 1,
        }  # fmt: skip
        await self.live.client.create(EVENT, body)


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    """Start an API without a manager: tests act as the manager."""
    async with api(folder) as live:
        yield Bench(live)
