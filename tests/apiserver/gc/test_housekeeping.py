"""What is there from the start, what comes back, and what is left alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from metal.apiserver.auth.rbac_bootstrap import AUTOUPDATE
from metal.apiserver.server import EmbeddedAPI
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import Api, running

ROLE = "system:public-info-viewer"


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[Api]:
    """An API on a data folder."""
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    try:
        yield Api(api.backend)
    finally:
        await api.stop()


@pytest.mark.parametrize("autoupdate", ["true", "false"])
async def test_a_right_that_is_missing_comes_back_at_the_next_start(tmp_path: Path, autoupdate: str) -> None:
    """Unless the role says that it is kept by hand; what was added stays in any case."""
    added = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    async with kept(tmp_path / "data") as api:
        before = (await api.get(ROLE, "clusterroles"))["rules"]
        change = {"metadata": {"annotations": {AUTOUPDATE: autoupdate}}, "rules": [added]}
        await api.patch(ROLE, change, "clusterroles")
        await api.delete("system:basic-user", "clusterrolebindings")
    async with kept(tmp_path / "data") as api:
        rules = (await api.get(ROLE, "clusterroles"))["rules"]
        assert rules == ([added, *before] if autoupdate == "true" else [added])
        assert "system:basic-user" in await api.names("clusterrolebindings")


async def test_a_second_start_writes_nothing(tmp_path: Path) -> None:
    """Everything is there already: the version stays where it was."""
    async with kept(tmp_path / "data") as api:
        version = api.backend.store.version
    async with kept(tmp_path / "data") as api:
        assert api.backend.store.version == version


@pytest.mark.looptime
async def test_aggregated_roles_are_filled_from_the_start() -> None:
    """admin holds what edit and view hold, before anybody asks."""
    async with running() as api:
        held: dict[str, list[Any]] = {
            name: (await api.get(name, "clusterroles"))["rules"] for name in ("view", "edit", "admin")
        }
    assert held["view"]
    assert all(rule in held["edit"] for rule in held["view"])
    assert all(rule in held["admin"] for rule in held["edit"])


@pytest.mark.looptime
async def test_a_namespace_on_its_way_out_gets_no_account() -> None:
    """Else it would never be empty."""
    async with running() as api:
        await api.create({"metadata": {"name": "gone"}}, "namespaces")
        await api.delete("gone", "namespaces")
        await asyncio.sleep(10)
        assert "gone" not in await api.names("namespaces")
