"""How long the event loop stands still: `python bench/stalls.py [-n 10000]`.

An embedded API on a disk, in this process, with informers on the objects. Prints the longest time between two turns of
the loop while a namespace of so many objects is deleted, while the CRD of as many gets another default, while a backup
of them is restored, and while the informers list again; with the time that each takes.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.apiserver.widgets import WIDGET, crd

from metal.api.core import CONFIG_MAP, NAMESPACE
from metal.apiserver.machinery.records import encode
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage import backup
from metal.cli.run.gc_settings import raise_gc_thresholds
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import NotFound
from metal.kube.meta.clock import system_clock

SPACE = "many"


class Loop:
    """Measures the longest time between two turns of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            self.longest = max(self.longest, now - before)
            before = now


@asynccontextmanager
async def measured(name: str, figures: dict[str, float]) -> AsyncIterator[None]:
    """The longest stall during the block."""
    loop = Loop()
    task = asyncio.ensure_future(loop.run())
    await asyncio.sleep(0)
    begun = time.perf_counter()
    try:
        yield
    finally:
        task.cancel()
        figures[f"{name}_seconds"] = round(time.perf_counter() - begun, 3)
        figures[f"{name}_longest_stall_ms"] = round(loop.longest * 1000, 1)


async def fill(api: EmbeddedAPI, count: int) -> None:
    """Config maps and widgets of about 1 KB."""
    client = api.client()
    await client.create(NAMESPACE, {"metadata": {"name": SPACE}})
    for begin in range(0, count, 100):
        await asyncio.gather(*(made(client, number) for number in range(begin, min(begin + 100, count))))


async def made(client: Any, number: int) -> None:
    meta = {"name": f"o{number:06}", "namespace": SPACE, "labels": {"n": str(number)}}
    await client.create(CONFIG_MAP, {"metadata": meta, "data": {"x": "y" * 500}})
    await client.create(WIDGET, {"metadata": {**meta, "namespace": "default"}, "spec": {"size": number}})


async def until(test: Callable[[], Awaitable[bool]]) -> None:
    while not await test():  # noqa: ASYNC110 - what is polled has no event
        await asyncio.sleep(0.05)


async def delete_namespace(api: EmbeddedAPI) -> None:
    """Return when the namespace is gone."""
    client = api.client()
    await client.delete(NAMESPACE, SPACE)

    async def gone() -> bool:
        try:
            await client.get(NAMESPACE, SPACE)
        except NotFound:
            return True
        return False

    await until(gone)


def changed_crd(default: str) -> dict[str, Any]:
    """The CRD of widgets with another field that has a default."""
    definition: dict[str, Any] = json.loads(encode(crd()))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["default"] = {}
    schema["properties"]["spec"]["properties"]["colour"] = {"type": "string", "default": default}
    return definition


async def run(folder: Path, count: int) -> dict[str, float]:
    """All operations, one after the other."""
    figures: dict[str, float] = {"objects": count}
    api = EmbeddedAPI(folder / "data", system_clock)
    await api.start()
    await api.install_crds([crd()])
    await fill(api, count)
    informers = [Informer(api.client(), kind) for kind in (WIDGET, CONFIG_MAP)]
    tasks = [asyncio.ensure_future(informer.run()) for informer in informers]
    await asyncio.gather(*(informer.synced.wait() for informer in informers))
    store = api.backend.store
    backup.save(folder / "copy", store.version, list(store.records()))
    async with measured("delete_namespace", figures):
        await delete_namespace(api)
    async with measured("change_crd", figures):
        await api.install_crds([changed_crd("red")])
    async with measured("read_backup", figures):
        loaded = await asyncio.to_thread(backup.load, folder / "copy")
    async with measured("restore", figures):
        await backup.Restoration(store, loaded).run()
    async with measured("after_restore", figures):
        await until(lambda: is_followed(informers, count))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await api.stop()
    return figures


async def is_followed(informers: list[Any], count: int) -> bool:
    return all(len(informer) >= count for informer in informers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=10_000, help="objects of each kind (10000)")
    given = parser.parse_args()
    raise_gc_thresholds()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(uvloop.run(run(Path(folder), given.n)), indent=2))


if __name__ == "__main__":
    main()
