"""Mirrors, and the limit of requests to a registry, over TLS on loopback."""

import asyncio

import pytest

from metal.boot.errors import ImageError
from tests.boot import registry as oci
from tests.boot.registry import KERNEL, Registry, basic
from tests.boot.registry.private import ACCOUNT, Site, another, failure, fetched, image, read


async def test_mirrors_come_first_and_have_their_own_credentials(site: Site, registry: Registry) -> None:
    """In the order of the configuration, with a prefix; the registry is not contacted."""
    async with another(site, registry) as mirror:
        mirror.account = ACCOUNT
        site.auths({registry.name: "other:x", f"{mirror.name}/cache": ACCOUNT})
        client = site.client(registry, mirror, mirrors=(f"{mirror.name}/cache",))
        await read(client, image(registry))
        assert await fetched(client, image(registry)) == KERNEL
        assert registry.requests == []
        assert mirror.requests[-1].startswith("/v2/cache/team/os/blobs/")
        assert set(mirror.authorizations) == {"", basic(ACCOUNT)}


@pytest.mark.parametrize("fault", ["missing", "status", "truncate", "away", "denied", "silent"])
async def test_what_a_mirror_does_not_have_comes_from_the_next(site: Site, registry: Registry, fault: str) -> None:
    """Missing, refused, broken off, unreachable or unanswered."""
    site.auths({})
    async with another(site, registry) as mirror, another(site, registry) as second:
        name = mirror.name
        if fault == "missing":
            mirror.manifests.clear()
        elif fault == "away":
            name = "127.0.0.1:1"
        elif fault == "denied":
            mirror.account = ACCOUNT
        else:
            setattr(mirror.faults, fault, 500 if fault == "status" else True)
        client = site.client(registry, mirror, second, mirrors=(name, second.name), seconds=0.3)
        assert await read(client, image(registry)) == registry.manifests["1"][1]
        assert second.requests
        assert registry.requests == []


async def test_a_mirror_that_sends_something_else_is_not_believed(site: Site, registry: Registry) -> None:
    """The digest decides; the mirror is tried last from then on."""
    site.auths({})
    async with another(site, registry) as mirror:
        client = site.client(registry, mirror, mirrors=(mirror.name,))
        mirror.faults.lie = True
        with pytest.raises(ImageError) as caught:
            await fetched(client, image(registry))
        assert (caught.value.reason, caught.value.transient) == ("DigestMismatch", True)
        assert await fetched(client, image(registry)) == KERNEL
        assert registry.asked("blobs") == 1
        digest = oci.digest(registry.manifests["1"][1])
        mirror.faults.lie = True
        fresh = site.client(registry, mirror, mirrors=(mirror.name,))
        assert (await fresh.manifest(image(registry), digest)).raw == registry.manifests["1"][1]


async def test_a_pull_that_fails_everywhere_names_each_place(site: Site, registry: Registry) -> None:
    """With the credentials that were tried there; it is transient if one of the failures is."""
    registry.account = ACCOUNT
    async with another(site, registry) as mirror:
        mirror.faults.status = 503
        site.auths({registry.name: "robot:wrong"})
        error = await failure(site.client(registry, mirror, mirrors=(mirror.name,)), image(registry))
        assert f"{mirror.name}/team/os answers HTTP 503" in str(error)
        assert f"{registry.name}/team/os denies read access" in str(error)
        assert f"credentials for {registry.name}" in str(error)
        assert error.transient


async def test_a_registry_gets_no_more_requests_at_a_time_than_configured(site: Site, registry: Registry) -> None:
    """The others wait, and are answered."""
    site.auths({})
    registry.faults.pause = 0.02
    client = site.client(registry, max_requests=2)
    await asyncio.gather(*(read(client, image(registry)) for _ in range(8)))
    assert registry.largest_load == 2
