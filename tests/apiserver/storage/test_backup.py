"""Copies of everything: taken while the API works, put back while it works, or begun with."""

import asyncio
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from metal.apiserver.machinery.records import ResourceKey
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError
from metal.apiserver.storage.store import GAP
from metal.kube.client.kubeconfig import from_file
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import Api, crd, widget

Obj = dict[str, Any]


class Remote:
    """An API that listens, and an administrator's session with it."""

    def __init__(self, api: EmbeddedAPI, session: aiohttp.ClientSession) -> None:
        self.api, self.session = api, session
        self.inside = Api(api.backend)

    async def copy(self) -> bytes:
        """GET /snapshot."""
        async with self.session.get(f"{self.api.url}/snapshot") as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()

    async def restore(self, copy: bytes, **query: str) -> tuple[int, Obj]:
        """PUT /snapshot."""
        async with self.session.put(f"{self.api.url}/snapshot", data=copy, params=query) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def remote(tmp_path: Path) -> AsyncIterator[Remote]:
    """With the widgets of example.org."""
    api = EmbeddedAPI(tmp_path / "data", system_clock)
    await api.start()
    await api.install_crds([crd()])
    await api.listen("127.0.0.1", 0)
    reached = from_file(api.kubeconfig)
    assert reached.token is not None
    headers = {"Authorization": f"Bearer {reached.token()}"}
    connector = aiohttp.TCPConnector(ssl=reached.tls or False)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Remote(api, session)
    await api.stop()


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "A restore brings back objects with their UIDs, and removes those that the copy does not have.",
)
async def test_a_restore_brings_back_what_the_copy_held(remote: Remote) -> None:
    """Changed objects have their old content, removed ones exist again with their uid, newer ones are removed."""
    kept = await remote.inside.create(widget("kept", size=1))
    lost = await remote.inside.create(widget("lost", size=2))
    copy = await remote.copy()
    await remote.inside.patch("kept", {"spec": {"size": 9}})
    await remote.inside.delete("lost")
    await remote.inside.create(widget("new"))

    code, told = await remote.restore(copy)

    assert (code, told["written"], told["removed"]) == (200, 2, 1)
    assert await remote.inside.names() == ["kept", "lost"]
    assert (await remote.inside.get("kept"))["spec"] == kept["spec"]
    assert (await remote.inside.get("lost"))["metadata"]["uid"] == lost["metadata"]["uid"]


@pytest.mark.behaviour(
    "Embedded API and assembly", "A restore ends all watches with 410; no resourceVersion is given twice."
)
async def test_a_restore_expires_every_watch_and_leaves_a_gap(remote: Remote) -> None:
    """Watchers get 410 and list again; no version that any client has seen, also in a former life, is given again."""
    await remote.inside.create(widget("a", size=1))
    copy = await remote.copy()
    await remote.inside.patch("a", {"spec": {"size": 9}})
    await remote.inside.create(widget("b"))
    before = remote.api.backend.store.version
    hub = remote.api.backend.store.hub
    cursors = [hub.open(ResourceKey("example.org", "widgets"), before), hub.open(ResourceKey("", "secrets"), before)]

    await remote.restore(copy)

    for cursor in cursors:
        with pytest.raises(StatusError, match="too old resource version"):
            cursor.take()
    after = remote.api.backend.store.version
    assert after > before + GAP
    with pytest.raises(StatusError, match="too old resource version"):
        await anext(remote.inside.watch(resource_version=str(before + 1_000_000)))
    assert remote.inside.watch(resource_version=str(after))


async def test_what_is_written_during_a_restore_is_replaced_too(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made while the API goes on; objects that change meanwhile are planned again with their new state."""
    await remote.inside.create(widget("a", size=1))
    copy = await remote.copy()
    plan = backup.Restoration.plan

    async def slow(restoration: backup.Restoration) -> backup.Restored:
        done = await plan(restoration)
        await remote.inside.patch("a", {"spec": {"size": 9}})
        await remote.inside.create(widget("late"))
        return done

    monkeypatch.setattr(backup.Restoration, "plan", slow)
    assert (await remote.restore(copy))[0] == 200
    assert await remote.inside.names() == ["a"]
    assert (await remote.inside.get("a"))["spec"]["size"] == 1


async def test_a_dry_run_only_counts(remote: Remote) -> None:
    """Nothing changes, and the answer says what would."""
    copy = await remote.copy()
    await remote.inside.create(widget("new"))
    code, told = await remote.restore(copy, dryRun="All")
    assert (code, told["written"], told["removed"]) == (200, 0, 1)
    assert await remote.inside.names() == ["new"]


async def test_definitions_are_added_and_never_set_back(remote: Remote) -> None:
    """An older definition in the copy leaves the newer one alone; one that is missing comes back, and is served."""
    copy = await remote.copy()
    newer = crd()
    newer["spec"]["names"]["categories"] = ["all"]
    await remote.api.install_crds([newer, crd("Gadget", short="gd")])
    later = await remote.copy()
    gadgets = remote.api.backend.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    await remote.inside.delete("gadgets.example.org", gadgets.plural, "")
    for _ in range(500):  # it goes in the background
        if remote.api.backend.registry.find("example.org", "v1", "gadgets") is None:
            break
        await asyncio.sleep(0.01)
    assert remote.api.backend.registry.find("example.org", "v1", "gadgets") is None

    assert (await remote.restore(copy))[1]["written"] == 0
    assert (await remote.inside.get("widgets.example.org", gadgets.plural))["spec"]["names"]["categories"] == ["all"]
    await remote.restore(later)
    assert remote.api.backend.registry.find("example.org", "v1", "gadgets") is not None


@pytest.mark.parametrize("body", [b"", b"not a database at all, but long enough to be looked at " * 20])
async def test_what_is_no_copy_is_refused(remote: Remote, body: bytes) -> None:
    """400 with a sentence; nothing is lost, and no file stays behind."""
    await remote.inside.create(widget("a"))
    code, told = await remote.restore(body)
    assert (code, told["reason"]) == (400, "BadRequest")
    assert "the copy" in told["message"]
    assert await remote.inside.names() == ["a"]
    assert not list((remote.api.kubeconfig.parent).glob(".snapshot-*"))


@pytest.mark.behaviour("Embedded API and assembly", "A backup needs a token: it contains every Secret.")
async def test_only_known_callers_may_copy(remote: Remote) -> None:
    """Without a token there is no copy: it holds every Secret."""
    async with aiohttp.ClientSession() as stranger:
        tls = from_file(remote.api.kubeconfig).tls or False
        for method in ("GET", "PUT"):
            async with stranger.request(method, f"{remote.api.url}/snapshot", ssl=tls) as answer:
                assert answer.status in (401, 403)


async def test_other_methods_are_refused(remote: Remote) -> None:
    """405: a copy is read or put, nothing else."""
    async with remote.session.delete(f"{remote.api.url}/snapshot") as answer:
        assert answer.status == 405


def test_a_copy_is_private_and_never_overwrites(tmp_path: Path) -> None:
    """Mode 0600, because Secrets are in it; a file that is there already is named in the refusal."""
    path = tmp_path / "copy.db"
    backup.save(path, 7, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(JournalError, match=r"copy.db: cannot be written: File exists"):
        backup.save(path, 7, [])


def test_a_copy_with_an_unreadable_object_is_refused(tmp_path: Path) -> None:
    """The object is named before anything changes."""
    path = tmp_path / "copy.db"
    backup.save(path, 7, [])
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO objects VALUES ('g', 'things', 'n', 'bad', 3, '{')")
    db.close()
    with pytest.raises(JournalError, match="things n/bad cannot be read"):
        backup.load(path)


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "Before a backup or a restore the free space is checked; the error says how much is needed.",
)
async def test_a_copy_or_a_restore_without_room_says_how_much_is_needed(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before anything is written, with what is needed and what is free."""
    copy = await remote.copy()
    usage = shutil.disk_usage("/")._replace(free=64 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    async with remote.session.get(f"{remote.api.url}/snapshot") as answer:
        told = (await answer.json())["message"]
    assert answer.status == 503
    assert told.startswith("a copy needs 65 MiB of free space in the data folder, which has 64 MiB; make room")
    code, refused = await remote.restore(copy)
    assert (code, "needs 65 MiB of free space" in refused["message"]) == (503, True)
