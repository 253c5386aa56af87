"""How fast a control plane enrols machines and boots claims: `python bench/enrol.py -n 100 [-o result.json]`.

Two processes on loopback, as users would run them: `metalctl up` and `metalctl sim` (30 ms median BMC latency, 3 s for
a power change, 20 s for a boot). With --kubeconfig FILE it is `metalctl manager` against that cluster instead of
`metalctl up`, and the figures are those of the manager alone. Prints machines a minute, the time from a BMC's lease to
Available, the time from a claim's creation to the power-on of its machine, CPU seconds and peak memory of the control
plane, BMC requests each.
"""

import argparse
import asyncio
import json
import math
import os
import signal
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from metal.api.core import CRD, NAMESPACE
from metal.api.kinds import Kinds, kinds
from metal.codegen.crd import crds
from metal.config import Config
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.kube.client.protocol import EventType
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet

METALCTL = Path(sys.executable).with_name("metalctl")
API, BOOT, REGISTRY, METRICS, IMAGES, BMCS = range(18100, 18106)
"""Ports of their own: a control plane that runs on this machine goes on undisturbed."""
IMAGE_REGISTRY = f"127.0.0.1:{IMAGES}"
TICKS = os.sysconf("SC_CLK_TCK")


class Arguments(argparse.Namespace):
    n: int
    claims: int
    rate: float
    latency: float
    power: float
    boot: float
    timeout: float
    output: str | None
    keep: str | None
    kubeconfig: Path | None


def arguments() -> Arguments:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=100, help="machines (100)")
    parser.add_argument("--claims", type=int, default=100, help="claims afterwards, at most one a machine (100)")
    parser.add_argument("--rate", type=float, default=0.0, help="claims a second (0: all at once)")
    parser.add_argument("--latency", type=float, default=30.0, help="median BMC latency in ms (30)")
    parser.add_argument("--power", type=float, default=3.0, help="seconds of a power change (3)")
    parser.add_argument("--boot", type=float, default=20.0, help="seconds of a boot (20)")
    parser.add_argument("--timeout", type=float, default=900.0, help="give up after so many seconds (900)")
    parser.add_argument("-o", "--output", help="write the figures as JSON there")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster, instead of the embedded API; its CRDs are applied")
    parser.add_argument("--keep", help="data folder that is kept, with the logs of both processes")
    return parser.parse_args(namespace=Arguments())


class ControlPlane:
    """`metalctl up` (or `metalctl manager`) and `metalctl sim`, with their logs in the data folder."""

    def __init__(self, folder: Path, args: Arguments) -> None:
        self.folder, self.args = folder, args
        self.up: asyncio.subprocess.Process | None = None
        self.sim: asyncio.subprocess.Process | None = None

    async def start(self) -> HTTPClient:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "prefixes.yaml").write_text(Fleet(1, options=Options(port=BMCS)).mac_prefixes_yaml())
        config = self.folder / "config.yaml"
        config.write_text(
            f"macPrefixesFile: {self.folder}/prefixes.yaml\n"
            f"probeImage: {IMAGE_REGISTRY}/probe:latest\n"
            f'registries:\n  insecure: ["{IMAGE_REGISTRY}"]\n'
            f'listen:\n  api: "127.0.0.1:{API}"\n  boot: "127.0.0.1:{BOOT}"\n'
            f'  registry: "127.0.0.1:{REGISTRY}"\n  metrics: "127.0.0.1:{METRICS}"\n'
        )
        given = ("--data", str(self.folder / "data"), "--config", str(config))
        if self.args.kubeconfig is None:
            self.up = await self._run("up", *given)
        else:
            await install(self.args.kubeconfig)
            self.up = await self._run("manager", "--kubeconfig", str(self.args.kubeconfig), *given)
        async with asyncio.timeout(30):
            while not (self.kubeconfig.exists() and await _answers(self.kubeconfig) and _ready()):
                if self.up.returncode is not None:
                    logs = [log.read_text().strip() for log in self.folder.glob("*.log")]
                    raise SystemExit(f"the control plane ended: {logs}")
                await asyncio.sleep(0.1)
        return HTTPClient(load(self.kubeconfig, None))

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.args.kubeconfig or self.folder / "data" / "kubeconfig"

    async def start_fleet(self) -> None:
        args = self.args
        self.sim = await self._run(
            "sim", "-n", str(args.n), "--latency", str(args.latency), "--power", str(args.power), "--boot",
            str(args.boot), "--kubeconfig", str(self.kubeconfig),
            "--port", str(BMCS), "--images-port", str(IMAGES), "--boot-url", f"http://127.0.0.1:{BOOT}",
            "--write-mac-prefixes", str(self.folder / "prefixes.yaml.sim"),
        )  # fmt: skip

    async def stop(self) -> float:
        """Returns how long the control plane took to end."""
        took = 0.0
        for process in (self.sim, self.up):
            if process is not None and process.returncode is None:
                begun = time.monotonic()
                process.send_signal(signal.SIGINT)
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 20)
                took = time.monotonic() - begun
        return took

    @property
    def cpu(self) -> float:
        """Seconds of CPU of the control plane so far."""
        if self.up is None:
            raise RuntimeError("not started")
        fields = Path(f"/proc/{self.up.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def peak_mib(self) -> float:
        """Most memory that the control plane has had."""
        if self.up is None:
            raise RuntimeError("not started")
        for line in Path(f"/proc/{self.up.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0

    async def _run(self, *words: str) -> asyncio.subprocess.Process:
        log = (self.folder / f"{words[0]}.log").open("wb")
        return await asyncio.create_subprocess_exec(str(METALCTL), *words, stdout=log, stderr=log)


async def install(kubeconfig: Path) -> None:
    """The CRDs and the namespace, as `kubectl apply` would."""
    client = HTTPClient(load(kubeconfig, None))
    try:
        for crd in crds(kinds()):
            await client.apply(CRD, crd, manager="bench")
        await client.apply(NAMESPACE, {"metadata": {"name": Config().namespace}}, manager="bench")
    finally:
        await client.aclose()


def _ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/readyz", timeout=2):
            return True
    except OSError:
        return False


async def _answers(kubeconfig: Path) -> bool:
    client = HTTPClient(load(kubeconfig, None))
    try:
        await client.list(kinds().server)
    except ApiError:
        return False
    else:
        return True
    finally:
        await client.aclose()


def bmc_requests() -> float:
    """As the control plane counts them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("metal_redfish_requests_total{"))


class Watcher:
    """When Servers reached a state and when machines were powered on, by the watcher's own clock."""

    def __init__(self, client: HTTPClient, names: Kinds) -> None:
        self._client, self._kinds = client, names
        self.available: dict[str, float] = {}
        self.powered: dict[str, float] = {}
        """By claim, when its server was first seen on or with a request to switch on, which the BMC then gets."""
        self.changed = asyncio.Event()

    async def run(self) -> None:
        page = await self._client.list(self._kinds.server)
        version = page.resource_version
        while True:
            async for event in self._client.watch(self._kinds.server, resource_version=version):
                version = event.resource_version or version
                if event.object is not None and event.type is not EventType.DELETED:
                    self._note(event.object)

    def _note(self, server: Any) -> None:
        now, name = time.monotonic(), server.metadata.name
        if server.status.state == "Available":
            self.available.setdefault(name, now)
        ref = server.spec.server_claim_ref
        request = server.status.power_request
        turning_on = server.status.power_state in ("On", "PoweringOn") or (
            request is not None and request.target == "On"
        )
        if ref is not None and turning_on:
            self.powered.setdefault(ref.name, now)
        self.changed.set()

    async def until(self, count: int, seen: dict[str, float], deadline: float, what: str) -> None:
        last = 0.0
        while len(seen) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(seen)} of {count} {what} after the time-out")
            if time.monotonic() - last > 5:
                last = time.monotonic()
                print(f"  {len(seen)} of {count} {what}", file=sys.stderr)
            self.changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), 1)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values) or [math.nan]  # without claims there are no times
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


async def enrol(plane: ControlPlane, watcher: Watcher, args: Arguments) -> dict[str, float]:
    begun, cpu = time.monotonic(), plane.cpu
    await plane.start_fleet()
    await watcher.until(args.n, watcher.available, begun + args.timeout, "Available")
    took = time.monotonic() - begun
    times = [at - begun for at in watcher.available.values()]
    return {
        "machines": args.n,
        "seconds": took,
        "machines_per_minute": args.n / took * 60,
        "available_p50": percentile(times, 0.5),
        "available_p99": percentile(times, 0.99),
        "cpu_seconds": plane.cpu - cpu,
        "cpu_seconds_per_machine": (plane.cpu - cpu) / args.n,
        "bmc_requests_per_machine": bmc_requests() / args.n,
        "peak_mib": plane.peak_mib,
    }


async def claim(client: HTTPClient, names: Kinds, plane: ControlPlane, watcher: Watcher, args: Arguments) -> Any:
    count = min(args.claims, args.n)
    created: dict[str, float] = {}

    async def one(number: int) -> None:
        name = f"bench-{number}"
        spec = {"power": "On", "image": f"{IMAGE_REGISTRY}/demo:latest"}
        await asyncio.sleep(number / args.rate if args.rate else 0)
        created[name] = time.monotonic()
        await client.create(names.claim, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    cpu, requests = plane.cpu, bmc_requests()
    await asyncio.gather(*map(one, range(count)))
    await watcher.until(count, watcher.powered, time.monotonic() + args.timeout, "claims powered on")
    times = [at - created[name] for name, at in watcher.powered.items()]
    return {
        "claims": count,
        "claim_power_on_p50": percentile(times, 0.5),
        "claim_power_on_p99": percentile(times, 0.99),
        "claim_cpu_seconds": plane.cpu - cpu,
        "claim_bmc_requests": (bmc_requests() - requests) / count,
    }


async def bench(folder: Path, args: Arguments) -> dict[str, float]:
    plane, names = ControlPlane(folder, args), kinds()
    figures: dict[str, float] = {}
    client = await plane.start()
    watcher = Watcher(client, names)
    watching = asyncio.create_task(watcher.run())
    try:
        figures |= await enrol(plane, watcher, args)
        await asyncio.sleep(2)
        idle = plane.cpu
        await asyncio.sleep(10)
        figures["idle_cpu_share"] = (plane.cpu - idle) / 10
        figures |= await claim(client, names, plane, watcher, args)
        figures["peak_mib"] = plane.peak_mib
    finally:
        watching.cancel()
        await client.aclose()
        figures["stop_seconds"] = await plane.stop()
    return figures


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="bench-enrol-") as scratch:
        figures = asyncio.run(bench(Path(args.keep or scratch), args))
    for name, value in figures.items():
        print(f"{name:28} {value:10.3f}")
    if args.output:
        Path(args.output).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
