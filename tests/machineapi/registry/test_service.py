"""The registry: one report for each boot, with its report token, stored before it is acknowledged."""

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP
from metal.kube.client.errors import Conflict, Unavailable
from metal.machineapi.http.response import Response
from tests.machineapi.world import MACHINE, NEIGHBOR, SWAPPED, UUID, World

pytestmark = pytest.mark.looptime

DATA = {"cpu": [{"id": 0}], "networkInterfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}]}


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    await made.open("Discovery")
    return made


async def boot(world: World) -> str:
    """Boot the probe; returns its report token."""
    script = (await world.boot.script(UUID, MACHINE)).body.decode()
    token = re.findall(r"token=([\w-]+)", script)[0]
    answer = await world.boot.ignition(UUID, token, MACHINE)
    files = json.loads(answer.body)["storage"]["files"]
    (source,) = [file["contents"]["source"] for file in files if file["path"] == "/etc/metalprobe/token"]
    return base64.b64decode(source.partition("base64,")[2]).decode()


async def send(world: World, token: str, data: Any = DATA, uuid: Any = UUID, client: str = MACHINE) -> Response:
    body = json.dumps({"systemUUID": uuid, "data": data}).encode()
    return await world.registry.register(f"Bearer {token}" if token else "", body, client)


async def stored(world: World) -> Any:
    found = await world.api.get(CONFIG_MAP, "inventory-s1", "metal-system")
    return json.loads(found.data["report.json"])


def nothing_stored(world: World) -> bool:
    return not any(plural == "configmaps" for plural, _, _ in world.api.objects)


@pytest.mark.behaviour("Registry and probe", "A report is stored in the API with the Server; its token is spent.")
async def test_a_report_is_kept_whole_and_the_boot_has_succeeded(world: World) -> None:
    """201; the inventory is stored for the Server, and the token is spent."""
    answer = await send(world, await boot(world))
    assert answer.status == 201
    assert await stored(world) == DATA
    inventory = await world.api.get(CONFIG_MAP, "inventory-s1", "metal-system")
    server = await world.server()
    assert [owner.uid for owner in inventory.metadata.owner_references] == [server.metadata.uid]
    window = await world.window()
    assert (window.phase, window.report_token_digest, window.reported_at) == ("Succeeded", "", world.clock())


async def test_the_token_may_stand_in_the_body(world: World) -> None:
    """For probes that cannot set headers."""
    body = json.dumps({"systemUUID": UUID, "data": DATA, "token": await boot(world)}).encode()
    assert (await world.registry.register("", body, MACHINE)).status == 201
    assert await stored(world) == DATA


async def test_a_uuid_with_swapped_bytes_is_the_same_machine(world: World) -> None:
    """Linux and the BMC may show different byte orders."""
    assert (await send(world, await boot(world), uuid=SWAPPED.upper())).status == 201


@pytest.mark.behaviour(
    "Registry and probe", "A report without the token of this boot is refused, counted and reported by an Event."
)
@pytest.mark.parametrize(
    ("token", "status", "reason"),
    [("", 401, "TokenMissing"), ("wrong", 403, "TokenInvalid"), ("token-2", 403, "TokenInvalid")],
)
async def test_no_report_without_the_right_token(world: World, token: str, status: int, reason: str) -> None:
    """A missing or wrong token and the script's token are refused, counted and reported; the right one stays valid."""
    good = await boot(world)
    assert (await send(world, token, client=NEIGHBOR)).status == status
    assert world.refused("register", reason) == 1
    if token:
        assert world.events[-1][:3] == ("s1", "Warning", reason)
    assert nothing_stored(world)
    assert (await send(world, good)).status == 201


async def test_a_token_of_strange_bytes_is_only_a_wrong_token(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """It causes no internal error with a traceback."""
    await boot(world)
    assert (await send(world, "caf\udcc3\udca9", client=NEIGHBOR)).status == 403
    assert world.refused("register", "TokenInvalid") == 1
    assert "Traceback" not in capsys.readouterr().out


async def test_without_the_right_token_a_report_is_not_even_read(world: World) -> None:
    """Another client cannot keep the process busy with the content of a report."""
    await boot(world)
    assert (await send(world, "wrong", data={"a": [0] * 5000}, client=NEIGHBOR)).status == 403
    assert world.refused("register", "Malformed") == 0


async def test_no_report_before_the_ignition(world: World) -> None:
    """No report token exists before the Ignition was served."""
    assert (await send(world, "guess")).status == 403
    assert world.refused("register", "TokenSpent") == 1


async def test_no_report_after_the_window(world: World) -> None:
    """A report token is valid during its boot only."""
    token = await boot(world)
    world.clock.advance(31 * 60)
    assert (await send(world, token)).status == 403
    assert world.refused("register", "BootWindowClosed") == 1
    assert nothing_stored(world)


async def test_no_report_for_another_machine(world: World) -> None:
    """A token is valid for its own server only."""
    token = await boot(world)
    other = UUID.replace("4c4c", "5c5c")
    await world.api.create(world.kinds.server, {"metadata": {"name": "s2"}, "spec": {"systemUUID": other}})
    assert (await send(world, token, uuid=other)).status == 403
    assert (await send(world, token, uuid="00000000-0000-0000-0000-000000000000")).status == 403
    assert world.refused("register", "UnknownMachine") == 1
    assert nothing_stored(world)


async def test_a_claims_boot_has_no_report(world: World) -> None:
    """A tenant's machine cannot send a report."""
    await world.open("Claim")
    token = re.findall(r"token=([\w-]+)", (await world.boot.script(UUID, MACHINE)).body.decode())[0]
    await world.boot.ignition(UUID, token, MACHINE)
    assert (await send(world, token)).status == 403


@pytest.mark.behaviour(
    "Registry and probe", "A repeated report is accepted; another one with the same token is refused."
)
async def test_the_same_report_again_is_fine_and_another_is_not(world: World) -> None:
    """The response may have been lost; a spent token is accepted for the same report only."""
    token = await boot(world)
    await send(world, token)
    assert (await send(world, token)).status == 200
    assert (await send(world, token, data={"cpu": []})).status == 403
    assert (await send(world, "wrong")).status == 403
    assert world.refused("register", "TokenSpent") == 2
    assert await stored(world) == DATA
    world.clock.advance(31 * 60)
    assert (await send(world, token)).status == 403


async def test_an_api_that_goes_away_between_keeping_and_spending_is_healed_by_the_retry(world: World) -> None:
    """The report is stored, the token stays valid, and the probe sends the report again."""
    token = await boot(world)
    world.api.faults.next("patch_status", *[Unavailable("killed")] * 6)
    with pytest.raises(Unavailable):
        await send(world, token)
    assert await stored(world) == DATA
    assert (await world.window()).phase == "IgnitionServed"
    assert (await send(world, token, data={"cpu": [2]})).status == 201
    assert await stored(world) == {"cpu": [2]}


async def test_a_report_that_cannot_be_kept_spends_nothing(world: World) -> None:
    """The boot continues when the API is unavailable."""
    token = await boot(world)
    world.api.faults.next("create", Unavailable("gone"))
    with pytest.raises(Unavailable):
        await send(world, token)
    assert (await world.window()).phase == "IgnitionServed"
    assert (await send(world, token)).status == 201


async def test_of_two_reports_at_once_one_is_taken(world: World) -> None:
    """The other one finds the token spent."""
    await send(world, await boot(world))  # an inventory of an earlier discovery
    await world.open("Discovery")
    token = await boot(world)
    answers = await asyncio.gather(send(world, token, {"a": 1}), send(world, token, {"a": 2}))
    assert sorted(answer.status for answer in answers) == [201, 403]


async def test_conflicts_with_the_controller_are_decided_again(world: World) -> None:
    """Other clients write the Server's status as well."""
    token = await boot(world)
    world.api.faults.next("patch_status", *(Conflict("changed") for _ in range(3)))
    assert (await send(world, token)).status == 201


@pytest.mark.behaviour(
    "Registry and probe", "Malformed, oversized or deeply nested reports are refused, and nothing is stored or spent."
)
@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "Malformed"),
        (b"[]", 400, "Malformed"),
        (b'{"token":"t","data":{}}', 400, "Malformed"),
        (b'{"token":"t","systemUUID":"x","data":{}}', 400, "Malformed"),
        (json.dumps({"systemUUID": UUID, "data": []}).encode(), 400, "Malformed"),
        (json.dumps({"systemUUID": UUID, "data": {"a": [0] * 5000}}).encode(), 400, "Malformed"),
        (b" " * (2 * 1024 * 1024 + 1), 413, "TooLarge"),
        (json.dumps({"systemUUID": UUID, "data": {str(n): "x" * 60_000 for n in range(20)}}).encode(), 413, "TooLarge"),
    ],
    ids=["json", "list", "no uuid", "bad uuid", "data", "long list", "body", "kept"],
)
async def test_bad_reports_are_refused(world: World, body: bytes, status: int, reason: str) -> None:
    """Invalid form, size and nesting are counted; no token is spent and nothing is stored."""
    token = await boot(world)
    assert (await world.registry.register(f"Bearer {token}", body, NEIGHBOR)).status == status
    assert world.refused("register", reason) == 1
    assert nothing_stored(world)
    assert (await send(world, token)).status == 201


async def test_refusals_do_not_tell_secrets(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs, Events and responses contain no token and no report."""
    await boot(world)
    answer = await send(world, "hunter2", data={"password": "hunter3"})
    told = f"{answer.body!r} {world.events} {capsys.readouterr()} {answer!r}"
    assert "hunter" not in told


async def test_machines_can_neither_read_nor_delete_reports(world: World) -> None:
    """These operations are available through the API only."""
    assert world.registry.not_offered("systems", NEIGHBOR).status == 403
    assert world.registry.not_offered("delete", NEIGHBOR).status == 403
    assert world.refused("systems", "NotOffered") == 1


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "`/bootstate` sets a condition of the boot configuration, with a token of the current boot only.",
    go="Needs no token.",
)
async def test_a_boot_state_needs_a_live_token(world: World) -> None:
    """It sets a condition on the boot configuration; booted=false and repetitions change nothing."""
    token = await boot(world)

    async def tell(token: str, booted: bool) -> int:
        body = json.dumps({"systemUUID": UUID, "booted": booted}).encode()
        return (await world.registry.bootstate(f"Bearer {token}", body, MACHINE)).status

    async def conditions() -> list[str]:
        config = await world.api.get(world.kinds.boot_config, "sbc", "ns")
        return [condition.type for condition in config.status.conditions]

    assert await tell("wrong", True) == 403
    assert await tell(token, False) == 200
    assert await conditions() == []
    assert [await tell(token, True) for _ in range(2)] == [200, 200]
    assert await conditions() == ["BootStateReceived"]
    await send(world, token)
    assert await tell(token, True) == 403
