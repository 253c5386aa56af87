"""Long work of the API lets other tasks run: steps between two turns of the event loop are counted, not timed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from metal.apiserver.gc.collector import BATCH
from metal.apiserver.machinery.records import Event, Record, ResourceKey
from metal.apiserver.storage import backup
from metal.apiserver.storage.index import STEP, Index
from metal.apiserver.storage.sqlite import SqliteJournal
from tests.apiserver.widgets import Api, Obj, crd, running, widget

pytestmark = pytest.mark.looptime

MANY = 500
WIDGETS = ResourceKey("example.org", "widgets")


async def largest_step(count: Callable[[], int], until: Callable[[], bool]) -> int:
    """The largest change of a number within one turn of the loop, until a condition holds."""
    before, largest = count(), 0
    while not until():
        await asyncio.sleep(0)
        largest, before = max(largest, abs(count() - before)), count()
    return largest


async def filled(api: Api, space: str) -> None:
    await api.create({"metadata": {"name": space}}, "namespaces")
    for number in range(MANY):
        await api.create(widget(f"w{number}"), namespace=space)


async def test_a_namespace_is_emptied_in_batches() -> None:
    """At most one batch of objects goes in one turn, and all of them go."""
    async with running() as api:
        await filled(api, "many")
        await api.delete("many", "namespaces")

        def left() -> int:
            return len(api.backend.store.collection(WIDGETS))

        assert 0 < await largest_step(left, lambda: left() == 0) <= BATCH
        await asyncio.sleep(5)
        assert "many" not in await api.names("namespaces")


def coloured(definition: Obj) -> Obj:
    """The CRD with another field that has a default."""
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    changed = {
        **schema,
        "default": {},
        "properties": {**schema["properties"], "colour": {"default": "red", "type": "string"}},
    }
    version = {**definition["spec"]["versions"][0]}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": changed}}}
    return {**definition, "spec": {**definition["spec"], "versions": [version]}}


async def test_a_changed_crd_gives_its_objects_their_defaults_in_steps() -> None:
    """A few objects change in one turn; when the write of the CRD is answered, all of them have the default."""
    async with running() as api:
        await filled(api, "many")

        def red() -> int:
            return sum(b'"colour":"red"' in record.body for record in api.backend.store.collection(WIDGETS))

        changing = asyncio.ensure_future(api.backend.install_crds([coloured(crd())]))
        assert 0 < await largest_step(red, changing.done) <= STEP
        assert red() == MANY


async def test_a_restore_changes_objects_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number of objects enters the index, and is shown to listeners, in one turn of the loop."""
    put, entered = Index.put, list[Record]()
    shown: list[Event] = []

    def counting(index: Index, record: Record) -> None:
        entered.append(record)
        put(index, record)

    async with running(SqliteJournal(tmp_path / "api.db")) as api:
        await filled(api, "many")
        store = api.backend.store
        backup.save(tmp_path / "copy", store.version, list(store.records()))
        loaded = backup.load(tmp_path / "copy")
        for record in store.collection(WIDGETS):
            await store.remove(record.key)
        monkeypatch.setattr(Index, "put", counting)
        store.listen(shown.append)
        restoring = asyncio.ensure_future(backup.Restoration(store, loaded).run())
        entering = asyncio.ensure_future(largest_step(lambda: len(entered), restoring.done))
        assert 0 < await largest_step(lambda: len(shown), restoring.done) <= STEP
        assert 0 < await entering <= STEP
        assert (await restoring).written == len(entered) == MANY
