"""The registry accepts sanitization reports only with the report token of that boot."""

import asyncio
import base64
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metal.api.sanitization import SanitizationEvidence
from metal.evidence import drives
from metal.kube.client.errors import Conflict, Unavailable
from metal.machine import boot_window
from metal.machineapi.http.response import Response
from tests.evidence.test_report import DRIVE
from tests.machineapi.world import MACHINE, NEIGHBOR, UUID, World

pytestmark = pytest.mark.looptime
DONE = {**DRIVE, "result": "Succeeded", "percent": 100, "samplesRead": 8}


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    await made.open("Sanitization")
    status = {"tenancy": {"claimRef": {"uid": "claim-uid"}, "data": "Erasing", "policy": "Purge"}}
    await made.api.patch_status(made.kinds.server, "s1", {"status": status})
    return made


async def boot(world: World) -> str:
    """Boot the machine; returns the report token, which the boot server puts into the Ignition."""
    token = re.findall(r"token=([\w-]+)", (await world.boot.script(UUID, MACHINE)).body.decode())[0]
    answer = await world.boot.ignition(UUID, token, MACHINE)
    files = json.loads(answer.body)["storage"]["files"]
    (source,) = [file["contents"]["source"] for file in files if file["path"] == "/etc/metalprobe/token"]
    return base64.b64decode(source.partition("base64,")[2]).decode()


async def send(world: World, token: str, *, done: bool = False, client: str = MACHINE, **data: Any) -> Response:
    said = {"done": done, "startedAt": "x", "now": "y", "problems": [], "drives": [DONE if done else DRIVE], **data}
    body = json.dumps({"systemUUID": UUID, "data": said}).encode()
    return await world.registry.sanitization(f"Bearer {token}" if token else "", body, client)


async def kept(world: World) -> SanitizationEvidence:
    (found,) = (await world.api.list(world.kinds.evidence)).items
    return found


async def test_the_first_report_begins_the_evidence(world: World) -> None:
    """For this server, tenant, policy and boot; it has no owner, so that it outlives them."""
    assert (await send(world, await boot(world))).status == 200
    found, window = await kept(world), await world.window()
    assert (found.spec.server_ref.name, found.spec.system_uuid) == ("s1", UUID)
    assert (found.spec.claim_uid, found.spec.policy, found.spec.boot_window) == ("claim-uid", "Purge", window.id)
    assert (found.status.phase, found.status.started_at, found.status.reported_at) == ("Running", world.clock(), None)
    assert found.metadata.owner_references == ()
    assert window.phase == "IgnitionServed"


async def test_progress_is_written_down_every_ten_seconds_at_most(world: World) -> None:
    """Reports in between are answered, and not stored."""
    token = await boot(world)
    percents = []
    for percent in range(0, 100, 4):
        assert (await send(world, token, drives=[{**DRIVE, "percent": percent}])).status == 200
        percents.append((await kept(world)).status.drives[0].percent)
        world.clock.advance(4)
    assert percents == sorted(percents)
    assert len(set(percents)) == 9


async def test_the_final_report_is_kept_and_spends_the_token(world: World) -> None:
    """201; the same report again gets 200, and any other is refused."""
    token = await boot(world)
    await send(world, token)
    assert (await send(world, token, done=True)).status == 201
    found, window = await kept(world), await world.window()
    assert (found.status.reported_at, found.status.phase) == (world.clock(), "Running")
    assert found.status.drives[0].result == "Succeeded"
    assert (window.phase, window.report_token_digest) == ("Succeeded", "")
    assert (await send(world, token, done=True)).status == 200
    assert (await send(world, token, done=True, problems=["x"])).status == 403
    assert (await send(world, token)).status == 403
    assert (await kept(world)).status == found.status


@pytest.mark.parametrize(("token", "status", "reason"), [("", 401, "TokenMissing"), ("wrong", 403, "TokenInvalid")])
async def test_no_report_without_the_token(world: World, token: str, status: int, reason: str) -> None:
    """Another client cannot mark a server as clean."""
    await boot(world)
    assert (await send(world, token, done=True, client=NEIGHBOR)).status == status
    assert world.refused("sanitization", reason) == 1
    assert (await world.api.list(world.kinds.evidence)).items == ()


async def test_a_discovery_erases_nothing_and_a_sanitization_registers_nothing(world: World) -> None:
    """A token is valid for the purpose of its boot only."""
    token = await boot(world)
    body = json.dumps({"systemUUID": UUID, "data": {"cpu": []}}).encode()
    assert (await world.registry.register(f"Bearer {token}", body, MACHINE)).status == 403
    assert (await world.window()).phase == "IgnitionServed"
    await world.open("Discovery")
    assert (await send(world, await boot(world), done=True)).status == 403
    assert world.refused("register", "PurposeMismatch") == world.refused("sanitization", "PurposeMismatch") == 1


@pytest.mark.parametrize(
    "data", [{"drives": "none"}, {"drives": [{**DRIVE, "result": "Fine"}]}, {"done": 1}, {"drives": [DRIVE] * 600}]
)
async def test_a_malformed_report_is_refused_and_spends_nothing(world: World, data: dict[str, Any]) -> None:
    """400; the machine may send a corrected report."""
    token = await boot(world)
    assert (await send(world, token, **data)).status == 400
    assert world.refused("sanitization", "Malformed") == 1
    assert (await send(world, token, done=True)).status == 201


async def _cut_off_before_the_token_is_spent(world: World, token: str) -> None:
    def away(verb: str, plural: str, name: str) -> float:
        if (verb, plural) == ("patch_status", "servers"):
            raise Unavailable("killed")
        return 0.0

    normal, world.api.faults.before = world.api.faults.before, away
    with pytest.raises(Unavailable):
        await send(world, token, done=True)
    world.api.faults.before = normal


async def test_an_api_that_goes_away_before_the_token_is_spent_is_healed_by_the_repetition(world: World) -> None:
    """The report is stored already; the repetition is accepted."""
    token = await boot(world)
    await _cut_off_before_the_token_is_spent(world, token)
    assert (await kept(world)).status.reported_at is not None
    assert (await send(world, token, done=True)).status == 201


async def test_progress_after_the_final_report_changes_nothing(world: World) -> None:
    """Delayed progress reports arrive after the final one."""
    token = await boot(world)
    await _cut_off_before_the_token_is_spent(world, token)
    world.clock.advance(60)
    assert (await send(world, token)).status == 200
    assert (await kept(world)).status.drives[0].result == "Succeeded"


async def test_of_two_final_reports_at_once_one_is_taken_and_kept(world: World) -> None:
    """The stored report is the one that was answered with 201."""
    token = await boot(world)
    await send(world, token)
    both = [send(world, token, done=True), send(world, token, done=True, problems=["other"])]
    answers = await asyncio.gather(*both)
    assert sorted(answer.status for answer in answers) == [201, 403]
    problems = ("other",) if answers[1].status == 201 else ()
    assert (await kept(world)).status.problems == problems


async def test_a_conflict_is_decided_anew(world: World) -> None:
    """The controller writes the evidence as well."""
    token = await boot(world)
    world.api.faults.next("patch_status", Conflict("changed"))
    assert (await send(world, token, done=True)).status == 201


async def allow(world: World) -> None:
    """The Server controller allows what was asked."""
    window = boot_window.allow_erasure(await world.window(), world.clock() + timedelta(hours=1))
    await world.api.patch_status(world.kinds.server, "s1", {"status": {"bootWindow": msgspec.to_builtins(window)}})


async def test_a_question_is_answered_once_these_drives_are_allowed(world: World) -> None:
    """202 until then; the list is in the evidence and its digest in the boot window; other drives are asked anew."""
    token = await boot(world)
    assert (await send(world, token, awaitsPermission=True)).status == 202
    found = await kept(world)
    assert (await world.window()).erasure_asked == drives.digest(found.status.drives)
    world.clock.advance(60)
    assert (await send(world, token, awaitsPermission=True)).status == 202
    assert (await kept(world)).metadata.resource_version == found.metadata.resource_version
    await allow(world)
    assert (await send(world, token, awaitsPermission=True)).status == 200
    more = [DRIVE, {**DRIVE, "name": "sdz", "serialNumber": "other"}]
    assert (await send(world, token, awaitsPermission=True, drives=more)).status == 202
    assert len((await kept(world)).status.drives) == 2
    assert boot_window.awaits_permission(await world.window())


async def test_a_question_after_the_end_of_its_boot_is_refused(world: World) -> None:
    """The controller refuses by closing the window."""
    token = await boot(world)
    await send(world, token, awaitsPermission=True)
    window = msgspec.to_builtins(boot_window.close(await world.window()))
    await world.api.patch_status(
        world.kinds.server, "s1", {"status": {"bootWindow": {**window, "reportTokenDigest": None}}}
    )
    assert (await send(world, token, awaitsPermission=True)).status == 403


async def test_a_probe_that_does_not_ask_is_answered_as_before(world: World) -> None:
    """A probe of a former version."""
    token = await boot(world)
    assert (await send(world, token)).status == 200
    assert (await world.window()).erasure_asked == ""
