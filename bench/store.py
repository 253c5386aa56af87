"""The embedded store with many objects: `python bench/store.py [-n 100000]`.

Writes that many Servers of about 4 KB into a data folder, then starts an API on it in a process of its own: time until
it answers, memory, the file's size, a copy taken and put back, and the file after almost everything is deleted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.api import EMBEDDED, SERVERS, Home, server, status

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.codegen.crd import crds
from metal.kube.meta.clock import system_clock


async def fill(folder: Path, count: int) -> None:
    """As the writers of the API would, without its checks of each object."""
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.install_crds(crds(kinds()))
    key = api.backend.resource("metal.ironcore.dev", "v1alpha1", "servers").key
    for begin in range(0, count, 1000):
        numbers = range(begin, min(count, begin + 1000))
        await asyncio.gather(*(api.backend.store.write(key, stored(number)) for number in numbers))
    await api.stop()


def stored(number: int) -> dict[str, Any]:
    """A Server as it lies in the store."""
    meta = {
        "uid": f"00000000-0000-4000-9000-{number:012}",
        "generation": 1,
        "creationTimestamp": "2030-01-01T00:00:00Z",
    }
    plain = server(number)
    return {**plain, **status(number, "Available"), "metadata": {**plain["metadata"], **meta}}


async def measured(home: Home, folder: Path, figures: dict[str, float]) -> None:
    """What a running API is asked for."""
    figures["memory_mib"] = home.memory
    begun = time.perf_counter()
    page = await home.ask("GET", f"{SERVERS}?limit=500")
    figures["first_page_ms"] = (time.perf_counter() - begun) * 1000
    assert len(json.loads(page)["items"]) == 500
    begun = time.perf_counter()
    copy = await home.ask("GET", "/snapshot")
    figures["copy_seconds"], figures["copy_mb"] = time.perf_counter() - begun, len(copy) / 1e6
    begun = time.perf_counter()
    await home.ask("DELETE", f"{SERVERS}?labelSelector=rack%21%3Dr0")
    figures["delete_seconds"] = time.perf_counter() - begun
    figures["file_mb_after_delete"] = (folder / "state.db").stat().st_size / 1e6
    begun = time.perf_counter()
    async with home.session.put("/snapshot", data=copy) as answer:
        assert answer.status == 200, await answer.text()
    figures["restore_seconds"] = time.perf_counter() - begun
    figures["memory_mib_at_the_end"] = home.memory


async def _ask(kubeconfig: Path, pid: int, folder: Path, figures: dict[str, float]) -> None:
    async with Home("embedded", kubeconfig, [pid]) as home:
        await measured(home, folder, figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=100_000, help="Servers (100000)")
    parser.add_argument("-o", "--output", help="write the figures as JSON there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-store-") as scratch:
        folder, figures = Path(scratch) / "data", {}
        asyncio.run(fill(folder, args.n))
        figures["file_mb"] = (folder / "state.db").stat().st_size / 1e6
        begun = time.perf_counter()
        command = [sys.executable, "-c", EMBEDDED, str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            kubeconfig = Path(process.stdout.readline().strip())
            figures["start_seconds"] = time.perf_counter() - begun
            asyncio.run(_ask(kubeconfig, process.pid, folder, figures))
        finally:
            process.terminate()
            process.communicate(timeout=60)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, {args.n} objects")
    for name, value in figures.items():
        print(f"{name:24}{value:12.1f}")
    if args.output:
        Path(args.output).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
