"""A minimal boot server and one machine, for tests of a machine alone."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from metal.boot.script import Boot, chainload
from metal.kube.meta.clock import LoopClock
from metal.sim.history import History, MachineEvent
from metal.sim.machine.host import Site
from metal.sim.machine.identity import identity
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import Reply, Unreachable
from metal.sim.options import Options

BOOT, REGISTRY = "http://boot.test:8082", "http://registry.test:10000"
OPTIONS = Options(power=3.0, boot=20.0, shutdown=5.0, jitter=0.0)
TENANT = {"ignition": {"version": "3.2.0"}, "storage": {"files": [{
    "path": "/etc/hostname", "contents": {"source": "data:,web-1"}}]}}  # fmt: skip


def probe_ignition(uuid: str, token: str = "report-token") -> dict[str, Any]:
    """An Ignition that starts the probe."""
    start = f"ExecStart=/usr/bin/python3 /opt/p.pyz --registry-url {REGISTRY} --server-uuid {uuid} --token @/etc/t"
    return {
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [{"path": "/etc/t", "contents": {"source": f"data:,{token}"}}]},
        "systemd": {"units": [{"name": "metalprobe.service", "enabled": True, "contents": f"[Service]\n{start}\n"}]},
    }


@dataclass
class BootServer:
    """Serves every machine. `refuse` maps the first part of a path to a status, `failures` to a number of failures."""

    ignition: dict[str, Any] | None = None
    refuse: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    reports: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        """See Network."""
        self.sources.add(source_ip)
        parts = urlsplit(url)
        what = parts.path.strip("/").partition("/")[0]
        if self.failures.get(what, 0) > 0:
            self.failures[what] -= 1
            raise Unreachable("nobody")
        if what in self.refuse:
            return self.refuse[what], {}, b"no"
        return 200, {}, self._body(what, parts.path, url, headers, body)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _body(self, what: str, path: str, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        if what == "register":
            self.reports.append((headers["authorization"], json.loads(body)))
            return b"registered"
        if what == "ipxe":
            return (self._script() if path.strip("/").count("/") else chainload(BOOT)).encode()
        if what == "ignition":
            assert parse_qs(urlsplit(url).query)["token"] == ["script-token"]
            return json.dumps(self.ignition).encode()
        return f"bytes of {parse_qs(urlsplit(url).query)['part'][0]}".encode()

    def _script(self) -> str:
        args = ["console=ttyS0"]
        if self.ignition is not None:
            args.append(f"ignition.config.url={BOOT}/ignition/x?token=script-token")
        images = [f"{BOOT}/image?token=script-token&part={part}" for part in ("kernel", "initrd")]
        return Boot(images[0], (images[1],), tuple(args)).render()


class Bench:
    """One machine with a boot server."""

    def __init__(self, options: Options = OPTIONS, **server: Any) -> None:
        self.server = BootServer(**server)
        self.leases: list[tuple[str, str]] = []
        clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.history = History(clock)
        site = Site(options, self.server, BOOT, self._lease, self.history, clock)
        self.machine = Machine(identity(7), site, random.Random(1))

    async def _lease(self, mac: str, ip: str) -> None:
        self.leases.append((mac, ip))

    def netboot(self) -> None:
        """Set a one-time network boot override."""
        self.machine.state.override.enabled, self.machine.state.override.target = "Once", "Pxe"

    def happened(self, *what: str) -> list[MachineEvent]:
        """History events of these types."""
        return self.history.of(self.machine.identity.uuid, *what)

    @property
    def systems(self) -> list[str]:
        """Kinds of the systems that ran, in order."""
        return [str(entry.details["kind"]) for entry in self.happened("os")]

    @property
    def powers(self) -> list[str]:
        """Power states in order."""
        return [str(entry.details["state"]) for entry in self.happened("power")]
