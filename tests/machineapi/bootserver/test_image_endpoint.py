"""The image endpoint: whole blobs, ranges and headers, only with a valid token."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from metal.boot.errors import ImageError
from metal.machineapi.http.response import Response
from tests.boot.registry import INITRAMFS, KERNEL, digest
from tests.machineapi.world import MACHINE, NEIGHBOR, UUID, World

pytestmark = pytest.mark.looptime


class Machine:
    """What iPXE knows after it has read its script."""

    def __init__(self, world: World, script: str) -> None:
        self.world = world
        urls = [word for line in script.splitlines() for word in line.split() if "/image?" in word]
        self.kernel, self.initramfs = (dict(parse_qsl(urlsplit(url).query)) for url in (urls[0], urls[-1]))

    async def get(
        self, query: Mapping[str, str], method: str = "GET", client: str = MACHINE, **headers: str
    ) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.world.boot.images.image(query, client, method, named)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    await made.open("Claim")
    return made


async def booting(world: World) -> Machine:
    return Machine(world, (await world.boot.script(UUID, MACHINE)).body.decode())


def content(answer: Response) -> bytes:
    assert answer.content is not None, answer
    return answer.content.layout.read()


async def test_the_holder_of_the_token_gets_kernel_and_initramfs(world: World) -> None:
    """The ETag is the digest."""
    machine = await booting(world)
    answer = await machine.get(machine.kernel)
    assert (answer.status, content(answer)) == (200, KERNEL)
    assert answer.headers["ETag"] == f'"{digest(KERNEL)}"'
    assert content(await machine.get(machine.initramfs)) == INITRAMFS


async def test_transfers_count_for_the_machine_of_the_token(world: World) -> None:
    """From any address: the HTTP front sends some files at a time to one holder, so one token cannot take them all."""
    machine = await booting(world)
    answers = [await machine.get(machine.kernel), await machine.get(machine.initramfs, client=NEIGHBOR)]
    assert len({answer.holder for answer in answers}) == 1
    assert answers[0].holder


async def test_a_range_is_206_and_one_outside_416(world: World) -> None:
    """A broken transfer continues where it stopped."""
    machine = await booting(world)
    part = await machine.get(machine.kernel, Range="bytes=10-19")
    assert (part.status, content(part)) == (206, KERNEL[10:20])
    assert part.headers["Content-Range"] == f"bytes 10-19/{len(KERNEL)}"
    outside = await machine.get(machine.kernel, Range=f"bytes={len(KERNEL)}-")
    assert (outside.status, outside.headers["Content-Range"]) == (416, f"bytes */{len(KERNEL)}")


async def test_a_range_of_something_else_gets_everything(world: World) -> None:
    """If-Range with another ETag gets the whole blob."""
    machine = await booting(world)
    tag = f'"{digest(KERNEL)}"'
    assert (await machine.get(machine.kernel, Range="bytes=1-2", If_Range='"other"')).status == 200
    assert (await machine.get(machine.kernel, Range="bytes=1-2", If_Range=tag)).status == 206


@pytest.mark.parametrize("header", ["*", '"{tag}"', 'W/"{tag}"', '"a", "{tag}"'])
async def test_what_the_client_has_is_not_sent_again(world: World, header: str) -> None:
    """If-None-Match gets 304."""
    machine = await booting(world)
    answer = await machine.get(machine.kernel, If_None_Match=header.format(tag=digest(KERNEL)))
    assert (answer.status, answer.content) == (304, None)
    assert (await machine.get(machine.kernel, If_None_Match='"else"')).status == 200


@pytest.mark.parametrize(
    ("change", "status", "endpoint_reason"),
    [
        ({"token": ""}, 403, "TokenMissing"),
        ({"token": "wrong"}, 403, "TokenInvalid"),
        ({"layerDigest": digest(b"other")}, 403, "ImageForbidden"),
        ({"version": digest(b"other")}, 403, "ImageForbidden"),
        ({"imageName": "registry.test:5000/other/os"}, 403, "ImageForbidden"),
        ({"imageName": "../x"}, 400, "Malformed"),
        ({"layerDigest": "../../etc/passwd"}, 400, "Malformed"),
        ({"version": "latest"}, 400, "Malformed"),
        ({"uuid": "x"}, 400, "Malformed"),
        ({"uuid": "00000000-0000-0000-0000-000000000000"}, 404, "UnknownMachine"),
    ],
)
async def test_no_image_for_anybody_else(
    world: World, change: dict[str, str], status: int, endpoint_reason: str
) -> None:
    """A missing, wrong or foreign token is refused and counted, and no file is opened."""
    machine = await booting(world)
    answer = await machine.get(machine.kernel | change, client=NEIGHBOR)
    assert (answer.status, answer.content) == (status, None)
    assert world.refused("image", endpoint_reason) == 1


async def test_images_end_with_the_ignition(world: World) -> None:
    """The Ignition spends the token, so that no image is served afterwards."""
    machine = await booting(world)
    await world.boot.ignition(UUID, machine.kernel["token"], MACHINE)
    assert (await machine.get(machine.kernel)).status == 403


async def test_a_boot_without_ignition_succeeds_with_its_last_byte(tmp_path: Path) -> None:
    """The kernel, a HEAD and a first range do not end the boot; the last byte of the initramfs does."""
    world = World(tmp_path)
    await world.populate(ignition=False)
    await world.open("Claim")
    machine = await booting(world)
    assert (await machine.get(machine.kernel)).on_sent is None
    assert (await machine.get(machine.initramfs, "HEAD")).on_sent is None
    assert (await machine.get(machine.initramfs, Range="bytes=0-9")).on_sent is None
    answer = await machine.get(machine.initramfs, Range="bytes=10-")
    assert answer.on_sent is not None
    await answer.on_sent()
    assert (await world.window()).phase == "Succeeded"
    assert (await machine.get(machine.kernel)).status == 403


async def test_a_transfer_that_ends_after_its_window_changes_nothing(tmp_path: Path) -> None:
    """A boot that was stopped meanwhile stays stopped."""
    world = World(tmp_path)
    await world.populate(ignition=False, leased=False)
    await world.open("Claim")
    machine = await booting(world)
    answer = await machine.get(machine.initramfs)
    await world.boot.script(UUID, NEIGHBOR)
    assert answer.on_sent is not None
    await answer.on_sent()
    assert (await world.window()).phase == "Contested"


async def test_an_image_that_is_not_here_yet_is_503(world: World) -> None:
    """iPXE retries; the request does not wait without limit."""
    machine = await booting(world)

    async def slowly() -> Any:
        await asyncio.sleep(60)

    world.images.open_delay = slowly
    answer = await machine.get(machine.kernel)
    assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    assert asyncio.get_running_loop().time() < 10


async def test_a_registry_that_fails_is_503_and_counted(world: World) -> None:
    """The reason of the failure is counted."""
    machine = await booting(world)
    world.images.failure = ImageError("RegistryTimeout", "no answer", transient=True)
    assert (await machine.get(machine.kernel)).status == 503
    assert world.refused("image", "RegistryTimeout") == 1
