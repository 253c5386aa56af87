"""A private registry and the files of a site that may read from it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.boot import registry as oci
from tests.boot.registry import Registry
from tests.boot.registry.private import Site, opened


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def registry(site: Site) -> AsyncIterator[Registry]:
    async with oci.running(site.tls()) as running:
        running.os_image(tag="1")
        yield running
