"""The same calls on the embedded API and on kube-apiserver with etcd: `python bench/api.py [-n 10000] [-o FILE]`.

Each home runs alone, as processes of its own, on the same disk, with every write synced to it; the client is this
process, raw requests over TLS. Prints milliseconds (p50, p99) and calls a second, one line an operation, and who wins.
"""

import argparse
import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import yaml

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.kubeapi.cluster import KubeCluster

from metal.api.kinds import kinds
from metal.codegen.crd import crds
from metal.kube.client.kubeconfig import from_file

SERVERS = "/apis/metal.ironcore.dev/v1alpha1/servers"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARALLEL = 16
WATCHERS = 50
TICKS = os.sysconf("SC_CLK_TCK")
Figures = dict[str, dict[str, float]]
EMBEDDED = """
import asyncio, signal, sys
from pathlib import Path
import uvloop
from metal.apiserver.server import EmbeddedAPI
from metal.cli.run.gc_settings import raise_gc_thresholds
from metal.kube.meta.clock import system_clock

async def main():
    api = EmbeddedAPI(Path(sys.argv[1]), system_clock)
    await api.start()
    await api.listen("127.0.0.1", 0)
    print(api.kubeconfig, flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await api.stop()

raise_gc_thresholds()
uvloop.run(main())
"""


class Home:
    """One API: how to reach it, and which processes it is."""

    def __init__(self, name: str, kubeconfig: Path, pids: list[int]) -> None:
        reached = from_file(kubeconfig)
        assert reached.tls is not None
        assert reached.token is not None
        self.name, self.pids, self._url = name, pids, reached.url
        self._tls: ssl.SSLContext = reached.tls
        self._headers = {"Authorization": f"Bearer {reached.token()}"}
        self.session: aiohttp.ClientSession

    async def __aenter__(self) -> "Home":
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        forever = aiohttp.ClientTimeout(total=None, sock_read=120)
        self.session = aiohttp.ClientSession(self._url, connector=connector, headers=self._headers, timeout=forever)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.session.close()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> bytes:
        """The body of a success."""
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(method, path, data=data, headers=sent) as answer:
            raw = await answer.read()
            if answer.status >= 300:
                raise SystemExit(f"{self.name}: {method} {path}: {answer.status} {raw[:500].decode()}")
            return raw

    @property
    def cpu(self) -> float:
        """Seconds of CPU of all its processes so far."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(f[11]) + int(f[12]) for f in fields) / TICKS

    @property
    def memory(self) -> float:
        """MiB that its processes have now."""
        lines = [line for pid in self.pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def server(number: int) -> dict[str, Any]:
    """A Server as discovery leaves it: about 4 KB with its status."""
    name = f"server-{number:06}"
    return {
        "apiVersion": "metal.ironcore.dev/v1alpha1",
        "kind": "Server",
        "metadata": {"name": name, "labels": {"rack": f"r{number % 40}", "bench": "yes"}},
        "spec": {
            "systemUUID": f"00000000-0000-4000-8000-{number:012}",
            "power": "Off",
            "bmcRef": {"name": f"bmc-{number}"},
        },
    }


def status(number: int, state: str) -> dict[str, Any]:
    """Its status."""
    nics = [
        {"name": f"eth{i}", "macAddress": f"02:00:{number >> 8 & 255:02x}:{number & 255:02x}:00:{i:02x}"}
        for i in range(8)
    ]
    drives = [{"name": f"drive-{i}", "type": "SSD", "capacity": "960Gi", "state": "Enabled"} for i in range(12)]
    return {
        "status": {
            "state": state, "powerState": "Off", "manufacturer": "Example", "model": "M1", "serialNumber": f"S{number}",
            "networkInterfaces": nics, "storages": [{"name": "Storage", "drives": drives}],
            "conditions": [
                {"type": kind, "status": "True", "reason": "Known", "message": "All is well with this machine.",
                 "lastTransitionTime": "2030-01-01T00:00:00Z"}
                for kind in ("Ready", "Discovered", "Reachable")
            ],
        }
    }  # fmt: skip


def told(times: list[float], elapsed: float, cpu: float) -> dict[str, float]:
    """The figures of one operation."""
    ordered = sorted(times)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000,
        "per_second": len(times) / elapsed,
        "cpu_ms": cpu / len(times) * 1000,
    }


async def measure(
    home: Home, call: Callable[[int], Awaitable[object]], numbers: range, parallel: int
) -> dict[str, float]:
    """Make every call, some at a time."""
    times: list[float] = []
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            begun = time.perf_counter()
            await call(number)
            times.append(time.perf_counter() - begun)

    cpu, begun = home.cpu, time.perf_counter()
    await asyncio.gather(*(work() for _ in range(parallel)))
    return told(times, time.perf_counter() - begun, home.cpu - cpu)


async def fan_out(home: Home, changes: int) -> dict[str, float]:
    """How long until the last of 50 watchers has seen a change, one change after another."""
    version = json.loads(await home.ask("GET", f"{SERVERS}?limit=1"))["metadata"]["resourceVersion"]
    seen = [0] * WATCHERS
    heard = asyncio.Event()

    async def watch(index: int) -> None:
        async with home.session.get(f"{SERVERS}?watch=1&resourceVersion={version}") as answer:
            async for chunk in answer.content.iter_any():
                seen[index] += chunk.count(b"\n")
                heard.set()

    watchers = [asyncio.create_task(watch(index)) for index in range(WATCHERS)]
    times, cpu, begun = [], home.cpu, time.perf_counter()
    for number in range(changes):
        sent = time.perf_counter()
        await patch_status(home, number, "Reserved")
        while min(seen) <= number:
            heard.clear()
            await heard.wait()
        times.append(time.perf_counter() - sent)
    elapsed = time.perf_counter() - begun
    for task in watchers:
        task.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    return told(times, elapsed, home.cpu - cpu)


async def patch_status(home: Home, number: int, state: str) -> bytes:
    path = f"{SERVERS}/server-{number:06}/status"
    return await home.ask("PATCH", path, status(number, state), **{"Content-Type": "application/merge-patch+json"})


async def apply(home: Home, number: int) -> bytes:
    body = {**server(number), "spec": {**server(number)["spec"], "power": "On"}}
    path = f"{SERVERS}/server-{number:06}?fieldManager=bench&force=true"
    return await home.ask("PATCH", path, body, **{"Content-Type": "application/apply-patch+yaml"})


async def measured(home: Home, count: int) -> Figures:
    """Every operation on one home, in an order in which each finds what it needs."""
    for crd in crds(kinds()):
        await home.ask("POST", DEFINITIONS, crd)
    await asyncio.sleep(3)
    few, some = range(min(500, count)), range(min(2000, count))
    found: Figures = {}
    found[f"create x{PARALLEL}"] = await measure(
        home, lambda n: home.ask("POST", SERVERS, server(n)), range(count), PARALLEL
    )
    found[f"status patch x{PARALLEL}"] = await measure(
        home, lambda n: patch_status(home, n, "Available"), range(count), PARALLEL
    )
    found["status patch x1"] = await measure(home, lambda n: patch_status(home, n, "Discovery"), few, 1)
    found["get x1"] = await measure(home, lambda n: home.ask("GET", f"{SERVERS}/server-{n:06}"), some, 1)
    found[f"get x{PARALLEL}"] = await measure(
        home, lambda n: home.ask("GET", f"{SERVERS}/server-{n:06}"), some, PARALLEL
    )
    found["apply x1"] = await measure(home, lambda n: apply(home, n), few, 1)
    found[f"list {count}"] = await measure(home, lambda _: home.ask("GET", SERVERS), range(5), 1)
    found[f"list {count}, rv=0"] = await measure(
        home, lambda _: home.ask("GET", f"{SERVERS}?resourceVersion=0"), range(5), 1
    )
    found[f"list {count} as Table"] = await measure(home, lambda _: home.ask("GET", SERVERS, Accept=TABLE), range(5), 1)
    found[f"fan-out to {WATCHERS}"] = await fan_out(home, min(200, count))
    found["memory"] = {"MiB": home.memory}
    return found


def embedded(folder: Path, count: int) -> Figures:
    command = [sys.executable, "-c", EMBEDDED, str(folder / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        return asyncio.run(_measured("embedded", Path(process.stdout.readline().strip()), [process.pid], count))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def kube(folder: Path, count: int) -> Figures:
    cluster = KubeCluster(folder, fsync=True, controllers=False)
    cluster.start()
    try:
        return asyncio.run(_measured("kube", cluster.kubeconfig, cluster.pids(), count))
    finally:
        cluster.stop()


async def _measured(name: str, kubeconfig: Path, pids: list[int], count: int) -> Figures:
    async with Home(name, kubeconfig, pids) as home:
        return await measured(home, count)


def show(ours: Figures, theirs: Figures) -> None:
    """A table, and the operations in which the embedded API is slower."""
    load = os.getloadavg()
    print(f"{os.cpu_count()} cores, load {load[0]:.1f} at the end")
    more = f"{'p99 ms':>9}{'/s':>8}{'CPU ms':>8}"
    print(f"{'':24}{'embedded p50':>14}{more}{'kube p50':>12}{more}")
    for name, one in ours.items():
        other = theirs[name]
        if "MiB" in one:
            print(f"{name:24}{one['MiB']:14.0f}{other['MiB']:37.0f} MiB")
            continue
        row = "".join(
            f"{f['p50_ms']:{wide}.2f}{f['p99_ms']:9.2f}{f['per_second']:8.0f}{f['cpu_ms']:8.2f}"
            for f, wide in ((one, 14), (other, 12))
        )
        print(f"{name:24}{row}{'' if one['p50_ms'] <= other['p50_ms'] else '   slower'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=10_000, help="Servers (10000)")
    parser.add_argument("-o", "--output", help="write the figures as JSON there")
    parser.add_argument("--only", choices=["embedded", "kube"], help="one home alone")
    args = parser.parse_args()
    figures: dict[str, Figures] = {}
    for name, run in (("embedded", embedded), ("kube", kube)):
        if args.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="bench-api-") as scratch:
                print(f"{name} …", file=sys.stderr)
                figures[name] = run(Path(scratch), args.n)
    if args.only:
        print(yaml.safe_dump(figures))
    else:
        show(figures["embedded"], figures["kube"])
    if args.output:
        Path(args.output).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
