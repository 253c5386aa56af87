"""The boot server: which requests get a script and an Ignition, and which are refused."""

import asyncio
import base64
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metal.api.core import SECRET
from metal.kube.client.errors import Conflict, TooManyRequests, Unavailable
from metal.machine.boot_window import CONTEST_PERIOD, IGNITION_RETRY_PERIOD
from metal.machine.boot_window import digest as token_digest
from metal.machineapi.bootserver.service import BootService
from metal.machineapi.http.response import Response
from tests.boot.programs import CONVERTS
from tests.machineapi.world import IGNITION, MAC, MACHINE, NEIGHBOR, SWAPPED, UUID, World, secret

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    return made


@pytest.fixture
async def unleased(tmp_path: Path) -> World:
    """No lease is known, and the site permits FirstRequest."""
    made = World(tmp_path)
    await made.populate(leased=False)
    return made


RACE = CONTEST_PERIOD.total_seconds()


def token_of(answer: Response) -> str:
    assert answer.status == 200, answer
    found: list[str] = re.findall(r"token=([\w-]+)", answer.body.decode())
    assert len(set(found)) == 1
    return found[0]


def files(answer: Response) -> dict[str, Any]:
    assert answer.status == 200, answer
    return {file["path"]: file for file in json.loads(answer.body)["storage"]["files"]}


async def test_everybody_gets_the_first_script(world: World) -> None:
    """It contains nothing about any machine and changes nothing."""
    calls = len(world.api.calls)
    answer = await world.boot.chainload()
    assert answer.status == 200
    assert b"/ipxe/${uuid}" in answer.body
    assert len(world.api.calls) == calls


async def test_a_machine_boots_through_script_and_ignition(world: World) -> None:
    """The script names kernel, initrd, the image's arguments and the Ignition; the window advances."""
    await world.open("Claim", claimUID="c1")
    answer = await world.boot.script(UUID, MACHINE)
    token = token_of(answer)
    script = answer.body.decode()
    assert "console=ttyS0 rdinit=/init" in script
    assert f"ignition.config.url=http://10.0.0.1:8082/ignition/{UUID}?token={token}" in script
    assert "imageName=registry.test%3A5000%2Fteam%2Fos" in script
    window = await world.window()
    assert (window.phase, window.client_address, window.token_digest) == ("ScriptServed", MACHINE, token_digest(token))
    assert json.loads((await world.boot.ignition(UUID, token, MACHINE)).body) == IGNITION
    window = await world.window()
    assert (window.phase, window.token_digest, window.report_token_digest) == ("Succeeded", "", "")


async def test_an_ignition_of_spec_2_is_served_byte_for_byte(world: World) -> None:
    """The boot server neither validates nor rewrites it."""
    raw = b'{ "ignition": {"version": "2.3.0"},\n "systemd": {"units": [{"name": "kubeadm"}]}}'
    await world.api.apply(SECRET, secret("ignition", ignition=raw), manager="t")
    await world.open("Claim", claimUID="c1")
    answer = await world.boot.ignition(UUID, token_of(await world.boot.script(UUID, MACHINE)), MACHINE)
    assert (answer.status, answer.body) == (200, raw)


async def test_an_ignition_of_spec_2_is_not_extended(world: World) -> None:
    """A boot of the probe needs the token of its report in the Ignition: nothing is served without it."""
    await world.api.apply(SECRET, secret("ignition", ignition=b'{"ignition":{"version":"2.3.0"}}'), manager="t")
    await world.open("Discovery")
    token = token_of(await world.boot.script(UUID, MACHINE))
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 503
    assert (await world.window()).phase == "ScriptServed"


async def test_butane_is_served_as_ignition(world: World) -> None:
    """Where the program is not installed, the machine tries again, and its token stays valid."""
    await world.api.apply(SECRET, secret("ignition", ignition=b"variant: fcos\n", format=b"fcos"), manager="t")
    await world.open("Claim", claimUID="c1")
    token = token_of(await world.boot.script(UUID, MACHINE))
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 503
    world.butane(CONVERTS)
    answer = await world.boot.ignition(UUID, token, MACHINE)
    assert (answer.status, json.loads(answer.body)) == (200, {"ignition": {"version": "3.4.0"}})


async def test_a_discovery_ignition_carries_the_token_for_the_report(world: World) -> None:
    """It is added as a file that only root can read; the rest of the config is unchanged."""
    await world.open("Discovery")
    token = token_of(await world.boot.script(UUID, MACHINE))
    found = files(await world.boot.ignition(UUID, token, MACHINE))
    assert set(found) == {"/etc/secret", "/etc/metalprobe/token"}
    assert found["/etc/metalprobe/token"]["mode"] == 0o600
    source = found["/etc/metalprobe/token"]["contents"]["source"]
    report = base64.b64decode(source.partition("base64,")[2]).decode()
    window = await world.window()
    assert (window.phase, window.report_token_digest) == ("IgnitionServed", token_digest(report))
    assert report != token


async def test_only_digests_of_tokens_reach_the_api(world: World) -> None:
    """A user who can read Servers sees no token."""
    await world.open()
    token = token_of(await world.boot.script(UUID, MACHINE))
    await world.boot.ignition(UUID, token, MACHINE)
    assert "token-" not in json.dumps([record.obj for record in world.api.log], default=str)


@pytest.mark.parametrize("uuid", [UUID, UUID.upper(), SWAPPED])
async def test_every_spelling_of_the_uuid_is_the_same_machine(world: World, uuid: str) -> None:
    """Upper case, and the byte order that old firmware reports."""
    await world.open()
    assert (await world.boot.script(uuid, MACHINE)).status == 200


@pytest.mark.parametrize("uuid", ["", "x", "00000000-0000-0000-0000-000000000000", UUID[:-1], "../../etc", UUID + "\n"])
async def test_an_unknown_uuid_gets_nothing(world: World, uuid: str) -> None:
    """404, counted; there is no Server for an Event."""
    await world.open()
    assert (await world.boot.script(uuid, NEIGHBOR)).status == 404
    assert (await world.boot.ignition(uuid, "x", NEIGHBOR)).status == 404
    assert world.refused("script", "UnknownMachine") == 1
    assert world.events == []


async def test_nothing_is_served_without_a_window(world: World) -> None:
    """Without a boot window a machine that boots by itself is refused."""
    answer = await world.boot.script(UUID, MACHINE)
    assert answer.status == 403
    assert world.refused("script", "BootWindowClosed") == 1
    assert world.events[0][:3] == ("s1", "Warning", "BootWindowClosed")


@pytest.mark.parametrize("phase", ["Closed", "Contested"])
async def test_nothing_is_served_in_a_window_that_is_over(world: World, phase: str) -> None:
    """Closed and contested windows stay closed."""
    await world.open(phase=phase)
    assert (await world.boot.script(UUID, MACHINE)).status == 403
    assert (await world.window()).phase == phase


async def test_a_window_closes_by_itself(world: World) -> None:
    """After expiry nothing is served with any token."""
    await world.open()
    token = token_of(await world.boot.script(UUID, MACHINE))
    world.clock.advance(31 * 60)
    assert (await world.boot.script(UUID, MACHINE)).status == 403
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 403
    assert world.refused("ignition", "BootWindowClosed") == 1


async def test_a_neighbour_gets_no_script_where_a_lease_is_known(world: World) -> None:
    """Refused, counted, with an Event; the machine itself is served, also when it repeats the request."""
    await world.open()
    for _ in range(2):
        answer = await world.boot.script(UUID, NEIGHBOR)
        assert (answer.status, answer.body) == (403, b"forbidden\n")
    assert world.refused("script", "ClientNotLeased") == 2
    assert [event[2] for event in world.events] == ["ClientNotLeased"]
    assert NEIGHBOR in world.events[0][3]
    first = token_of(await world.boot.script(UUID, MACHINE))
    second = token_of(await world.boot.script(UUID, MACHINE))
    assert (await world.boot.ignition(UUID, first, MACHINE)).status == 403
    assert (await world.boot.ignition(UUID, second, MACHINE)).status == 200


async def test_leases_of_other_machines_do_not_count(unleased: World) -> None:
    """An Endpoint with another MAC address is not a lease of this server."""
    await unleased.open()
    await unleased.lease(NEIGHBOR, "52:54:00:00:00:99")
    assert (await unleased.boot.script(UUID, MACHINE)).status == 200
    assert (await unleased.window()).trust == "FirstRequest"


@pytest.mark.behaviour(
    "Server: network boot",
    "Below the minimum trust neither script nor token is served: TrustTooLow, with 503 while the lease "
    "may not be reported yet.",
)
async def test_below_the_minimum_trust_nothing_is_served(unleased: World) -> None:
    """The first asker gets 503 until a lease is reported; then only the leased address is served."""
    await unleased.open("Claim", minimumTrust="Lease")
    answer = await unleased.boot.script(UUID, NEIGHBOR)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert unleased.refused("script", "TrustTooLow") == 1
    assert unleased.events[0][2] == "TrustTooLow"
    assert "FirstRequest, and at least Lease is required" in unleased.events[0][3]
    assert (await unleased.window()).phase == "Open"
    await unleased.lease()
    assert (await unleased.boot.script(UUID, NEIGHBOR)).status == 403
    assert (await unleased.boot.script(UUID, MACHINE)).status == 200
    window = await unleased.window()
    assert (window.method, window.trust) == ("IPXE", "Lease")


@pytest.mark.parametrize(("source", "minimum"), [("OutOfBand", "OutOfBand"), ("InBand", "Lease")])
async def test_what_no_lease_can_raise_is_refused_for_good(world: World, source: str, minimum: str) -> None:
    """The token would have to go through the BMC, or the BMC shows no MAC address: 403, also for the leased address."""
    shown = {"networkInterfaces": [{"name": "eth0", "macAddress": MAC, "source": source}]}
    await world.api.patch_status(world.kinds.server, "s1", {"status": shown})
    await world.open(minimumTrust=minimum)
    assert (await world.boot.script(UUID, MACHINE)).status == 403
    assert world.refused("script", "TrustTooLow") == 1


async def test_a_boot_of_a_former_version_is_completed(unleased: World) -> None:
    """Its window has no minimum trust: it is served as with FirstRequest."""
    await unleased.open("Claim", minimumTrust="", method="")
    token = token_of(await unleased.boot.script(UUID, MACHINE))
    unleased.clock.advance(RACE)
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).status == 200


@pytest.mark.behaviour(
    "Server: network boot",
    "With FirstRequest the Ignition is served only after a race window without a second request, or once "
    "a lease shows the machine.",
)
async def test_the_ignition_of_a_first_request_waits_for_the_race_window(unleased: World) -> None:
    """503 with Retry-After, no Secret is read, and the token stays valid."""
    await unleased.open("Claim")
    token = token_of(await unleased.boot.script(UUID, MACHINE))
    before = len(unleased.api.calls)
    answer = await unleased.boot.ignition(UUID, token, MACHINE)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "30")
    assert ("get", "secrets", "ignition") not in unleased.api.calls[before:]
    assert unleased.refused("ignition", "BootNotConfirmed") == 1
    unleased.clock.advance(RACE - 3)
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).headers["Retry-After"] == "3"
    unleased.clock.advance(3)
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).status == 200
    assert (await unleased.window()).trust == "FirstRequest"


async def test_a_lease_that_is_reported_later_ends_the_wait_for_the_ignition(unleased: World) -> None:
    """A lease of the address that got the script raises the trust; one of another address does not."""
    await unleased.open("Claim")
    token = token_of(await unleased.boot.script(UUID, MACHINE))
    await unleased.lease("10.0.0.99")
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).status == 503
    await unleased.lease()
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).status == 200
    assert (await unleased.window()).trust == "Lease"


@pytest.mark.behaviour(
    "Server: network boot", "With FirstRequest no script is served before the BMC shows power On (MachineOff)."
)
@pytest.mark.parametrize("power", ["Off", "PoweringOn", ""])
async def test_nobody_asks_first_while_the_bmc_shows_off(unleased: World, power: str) -> None:
    """A neighbour that polls since before the power-on gets 503 only; so does the machine until the BMC is read."""
    await unleased.open("Claim")
    asked = {"powerState": power, "powerRequest": {"target": "On"}}
    await unleased.api.patch_status(unleased.kinds.server, "s1", {"status": asked})
    answer = await unleased.boot.script(UUID, NEIGHBOR)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert unleased.refused("script", "MachineOff") == 1
    assert (await unleased.window()).phase == "Open"
    await unleased.api.patch_status(unleased.kinds.server, "s1", {"status": {"powerState": "On"}})
    assert (await unleased.boot.script(UUID, MACHINE)).status == 200


@pytest.mark.behaviour(
    "Server: network boot",
    "Each boot records how far it is trusted: a lease of a MAC address that the BMC shows, or not.",
)
@pytest.mark.parametrize(
    ("source", "leased", "trust"),
    [
        ("OutOfBand", True, "Lease"),
        ("OutOfBand", False, "FirstRequest"),
        ("InBand", True, "FirstRequest"),
        ("", True, "FirstRequest"),
    ],
)
async def test_each_boot_records_how_far_it_is_trusted(unleased: World, source: str, leased: bool, trust: str) -> None:
    """A lease of a MAC address that only a report showed proves nothing more than the first request."""
    world = unleased
    shown = {"networkInterfaces": [{"name": "eth0", "macAddress": MAC, "source": source}]}
    await world.api.patch_status(world.kinds.server, "s1", {"status": shown})
    await world.open()
    if leased:
        await world.lease()
    assert (await world.boot.script(UUID, MACHINE)).status == 200
    assert (await world.window()).trust == trust


async def test_a_lease_of_a_reported_interface_does_not_count_where_the_bmc_shows_others(world: World) -> None:
    """A neighbour that added its own interface to a report is not served."""
    other = "52:54:00:00:00:99"
    shown = [{"name": "eth0", "macAddress": MAC, "source": "OutOfBand"},
             {"name": "eth1", "macAddress": other, "source": "InBand"}]  # fmt: skip
    await world.api.patch_status(world.kinds.server, "s1", {"status": {"networkInterfaces": shown}})
    await world.open()
    await world.lease(NEIGHBOR, other)
    assert (await world.boot.script(UUID, NEIGHBOR)).status == 403
    assert (await world.boot.script(UUID, MACHINE)).status == 200


async def test_an_address_counts_however_it_is_written(world: World) -> None:
    """IPv6 addresses match in any spelling."""
    await world.open()
    await world.lease("FD00:0::0007")
    assert (await world.boot.script(UUID, "fd00::7")).status == 200


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"powerState": "Off"}, 403),
        ({"powerState": "Off", "powerRequest": {"target": "Off"}}, 403),
        ({"powerState": "Off", "powerRequest": {"target": "On"}}, 200),
        ({"powerState": "Off", "onRequestedAt": "2026-01-01T00:00:00Z"}, 200),
        ({"powerState": "On"}, 200),
    ],
)
async def test_nobody_gets_the_script_before_the_machine_was_switched_on(
    world: World, status: dict[str, Any], code: int
) -> None:
    """A request before the operator's own power-on cannot come from the machine."""
    await world.open()
    await world.api.patch_status(world.kinds.server, "s1", {"status": status})
    assert (await world.boot.script(UUID, MACHINE)).status == code


async def test_a_second_asker_without_a_lease_stops_the_boot(unleased: World) -> None:
    """A second request stops the boot: nothing more is served, an Event reports it, and the first token is void."""
    await unleased.open()
    stolen = token_of(await unleased.boot.script(UUID, NEIGHBOR))
    assert (await unleased.boot.script(UUID, MACHINE)).status == 403
    assert (await unleased.window()).phase == "Contested"
    assert unleased.events[-1][2] == "BootContested"
    assert (await unleased.boot.ignition(UUID, stolen, NEIGHBOR)).status == 403
    assert (await unleased.boot.script(UUID, NEIGHBOR)).status == 403


@pytest.mark.parametrize("purpose", ["Discovery", "Claim", "Maintenance"])
async def test_a_race_is_noticed_before_the_ignition_is_served(unleased: World, purpose: str) -> None:
    """A neighbour that asked first polls for the Ignition; the machine's own request ends the boot before."""
    await unleased.open(purpose)
    stolen = token_of(await unleased.boot.script(UUID, NEIGHBOR))
    for _ in range(10):
        unleased.clock.advance(20)
        assert (await unleased.boot.ignition(UUID, stolen, NEIGHBOR)).status == 503
    assert (await unleased.boot.script(UUID, MACHINE)).status == 403
    assert (await unleased.window()).phase == "Contested"
    unleased.clock.advance(RACE)
    assert (await unleased.boot.ignition(UUID, stolen, NEIGHBOR)).status == 403


async def test_a_boot_that_ended_long_ago_is_not_contested(unleased: World) -> None:
    """A later network boot of the machine itself is only refused, and the tenant is not stopped."""
    await unleased.open("Claim")
    token = token_of(await unleased.boot.script(UUID, MACHINE))
    unleased.clock.advance(RACE)
    assert (await unleased.boot.ignition(UUID, token, MACHINE)).status == 200
    unleased.clock.advance(11 * 60)
    assert (await unleased.boot.script(UUID, MACHINE)).status == 403
    assert (await unleased.window()).phase == "Succeeded"


async def test_a_boot_can_be_contested_for_as_long_as_it_is_doubted(unleased: World) -> None:
    """A machine that trains its memory for ten minutes contests the boot before its Ignition is served."""
    boot = unleased.service(dataclasses.replace(unleased.settings, race_window=15 * 60))
    await unleased.open("Claim")
    stolen = token_of(await boot.script(UUID, NEIGHBOR))
    unleased.clock.advance(10 * 60)
    assert (await boot.ignition(UUID, stolen, NEIGHBOR)).status == 503
    assert (await boot.script(UUID, MACHINE)).status == 403
    assert (await unleased.window()).phase == "Contested"


async def test_a_script_that_went_out_before_the_lease_was_known_is_contested(unleased: World) -> None:
    """The address of the first requester turns out not to be leased to the machine."""
    await unleased.open()
    await unleased.boot.script(UUID, NEIGHBOR)
    await unleased.lease()
    assert (await unleased.boot.script(UUID, MACHINE)).status == 403
    assert (await unleased.window()).phase == "Contested"


@pytest.mark.parametrize("order", ["boot first", "replica first"])
async def test_of_two_racing_askers_only_one_gets_a_script(unleased: World, order: str) -> None:
    """On two replicas, at the same time, in both orders: one succeeds, and then the race is detected."""
    await unleased.open()
    askers: list[tuple[BootService, str]] = [(unleased.boot, MACHINE), (unleased.replica, NEIGHBOR)]
    if order == "replica first":
        askers.reverse()
    answers = await asyncio.gather(*(service.script(UUID, client) for service, client in askers))
    assert sorted(answer.status for answer in answers) == [200, 403]
    assert (await unleased.window()).phase == "Contested"
    winner = next(answer for answer in answers if answer.status == 200)
    assert (await unleased.boot.ignition(UUID, token_of(winner), MACHINE)).status == 403


async def test_of_two_requests_with_one_token_only_one_gets_the_ignition(world: World) -> None:
    """Also on two replicas at the same time."""
    await world.open("Claim")
    token = token_of(await world.boot.script(UUID, MACHINE))
    answers = await asyncio.gather(
        world.boot.ignition(UUID, token, MACHINE), world.replica.ignition(UUID, token, NEIGHBOR)
    )
    assert sorted(answer.status for answer in answers) == [200, 403]
    assert world.refused("ignition", "BootWindowClosed") == 1


@pytest.mark.parametrize(("token", "reason"), [("", "TokenMissing"), ("wrong", "TokenInvalid")])
async def test_no_ignition_without_the_right_token(world: World, token: str, reason: str) -> None:
    """A wrong token does not spend the right one, and no Secret is read for it."""
    await world.open("Claim")
    good = token_of(await world.boot.script(UUID, MACHINE))
    before = len(world.api.calls)
    assert (await world.boot.ignition(UUID, token, NEIGHBOR)).status == 403
    assert ("get", "secrets", "ignition") not in world.api.calls[before:]
    assert world.refused("ignition", reason) == 1
    assert (await world.boot.ignition(UUID, good, MACHINE)).status == 200


async def test_a_spent_token_is_refused(world: World) -> None:
    """Other addresses are refused at once, the same address after some seconds."""
    await world.open("Discovery")
    token = token_of(await world.boot.script(UUID, MACHINE))
    await world.boot.ignition(UUID, token, MACHINE)
    assert (await world.boot.ignition(UUID, token, NEIGHBOR)).status == 403
    world.clock.advance(IGNITION_RETRY_PERIOD.total_seconds())
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 403
    assert world.refused("ignition", "TokenSpent") == 2


@pytest.mark.parametrize("purpose", ["Discovery", "Claim", "Maintenance"])
async def test_a_machine_whose_replica_died_before_it_answered_gets_its_ignition(world: World, purpose: str) -> None:
    """The token was spent without a response: any other replica repeats it, with a new report token."""
    await world.open(purpose)
    token = token_of(await world.boot.script(UUID, MACHINE))
    lost = await world.boot.ignition(UUID, token, MACHINE)
    world.clock.advance(IGNITION_RETRY_PERIOD.total_seconds() / 2)
    answer = await world.replica.ignition(UUID, token, MACHINE)
    assert answer.status == 200
    assert (answer.body == lost.body) == (purpose != "Discovery"), "only a discovery reports"


async def test_a_token_before_the_script_is_refused(world: World) -> None:
    """An open window alone serves no Ignition."""
    await world.open()
    assert (await world.boot.ignition(UUID, "guess", NEIGHBOR)).status == 403


async def test_the_token_of_an_earlier_boot_is_refused(world: World) -> None:
    """A new window accepts no earlier tokens."""
    await world.open()
    old = token_of(await world.boot.script(UUID, MACHINE))
    await world.open()
    await world.boot.script(UUID, MACHINE)
    assert (await world.boot.ignition(UUID, old, MACHINE)).status == 403


async def test_without_a_secret_an_empty_ignition_is_served(tmp_path: Path) -> None:
    """The script does not contain an Ignition URL either."""
    world = World(tmp_path)
    await world.populate(ignition=False)
    await world.open("Claim")
    answer = await world.boot.script(UUID, MACHINE)
    assert b"ignition" not in answer.body
    ignition = await world.boot.ignition(UUID, token_of(answer), MACHINE)
    assert json.loads(ignition.body) == {"ignition": {"version": "3.0.0"}}


@pytest.mark.parametrize("content", [b"{}", b"variant: fcos"])
async def test_what_is_not_ready_is_503_and_spends_nothing(world: World, content: bytes) -> None:
    """Ignition retries 5xx without limit, and gives up after any other error."""
    await world.open("Claim")
    token = token_of(await world.boot.script(UUID, MACHINE))
    broken = secret("ignition", ignition=content)
    await world.api.patch(SECRET, "ignition", broken, "ns")
    answer = await world.boot.ignition(UUID, token, MACHINE)
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert (await world.window()).phase == "ScriptServed"
    await world.api.patch(SECRET, "ignition", secret("ignition", ignition=json.dumps(IGNITION).encode()), "ns")
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 200


async def test_a_script_waits_for_the_boot_configuration(world: World) -> None:
    """An IPXEBootConfig that is missing, not ready or of another owner gives 503, and no token is created."""
    await world.open()
    for patch in (
        {"status": {"state": "Pending"}},
        {"status": {"state": "Ready"}, "spec": {"kernelURL": "http://x/k"}},
    ):
        await world.api.patch_status(world.kinds.ipxe, "sbc", patch, "ns")
        assert (await world.boot.script(UUID, MACHINE)).status == 503
    await world.api.delete(world.kinds.ipxe, "sbc", "ns")
    assert (await world.boot.script(UUID, MACHINE)).status == 503
    assert (await world.window()).phase == "Open"


async def test_another_configurations_child_is_not_served(world: World) -> None:
    """A manually created object of the same name is not used."""
    await world.open(configUID="another")
    assert (await world.boot.script(UUID, MACHINE)).status == 503


async def test_conflicts_are_decided_again_a_few_times(world: World) -> None:
    """The Server controller writes the same object all the time."""
    await world.open()
    world.api.faults.next("patch_status", *(Conflict("changed") for _ in range(5)))
    assert (await world.boot.script(UUID, MACHINE)).status == 200


async def test_an_api_that_fails_gives_nothing_away(world: World) -> None:
    """The error becomes 503 in the HTTP layer; the window is unchanged."""
    await world.open()
    world.api.faults.next("patch_status", *[Unavailable("gone")] * 20)
    with pytest.raises(Unavailable):
        await world.boot.script(UUID, MACHINE)
    assert (await world.window()).phase == "Open"


async def test_an_ignition_whose_token_was_spent_for_it_is_served(world: World) -> None:
    """The response to the write was lost: the Ignition is sent to the same requester only."""
    await world.open()
    token = token_of(await world.boot.script(UUID, MACHINE))
    _lose_one_answer(world)
    assert (await world.boot.ignition(UUID, token, MACHINE)).status == 200
    assert (await world.boot.ignition(UUID, token, NEIGHBOR)).status == 403


async def test_a_machine_does_not_notice_an_api_that_restarts(world: World) -> None:
    """Reads are retried for some seconds, because firmware requests its script only once."""
    await world.open()
    world.api.faults.next("get", *[Unavailable("gone")] * 3, TooManyRequests("slow down", retry_after=1.0))
    assert (await world.boot.script(UUID, MACHINE)).status == 200


def _lose_one_answer(world: World) -> None:
    """The next status write succeeds, and its response is lost."""
    lost: list[str] = []

    def after(verb: str, plural: str, name: str) -> float:
        if verb == "patch_status" and not lost:
            lost.append(name)
            raise Unavailable("the answer is lost")
        return 0.0

    world.api.faults.after = after


async def test_two_servers_with_one_uuid_are_told_apart_by_their_windows(world: World) -> None:
    """The Server with the open window is used; with two open windows, neither."""
    status = {"bootWindow": None}
    await world.api.create(world.kinds.server, {"metadata": {"name": "s2"}, "spec": {"uuid": UUID}, "status": status})
    await world.open()
    assert (await world.boot.script(UUID, MACHINE)).status == 200
    window = (await world.server()).status.boot_window
    await world.api.patch_status(world.kinds.server, "s2", {"status": {"bootWindow": msgspec.to_builtins(window)}})
    assert (await world.boot.script(UUID, MACHINE)).status == 404


async def test_events_are_told_once_a_minute_for_each_client(world: World) -> None:
    """A flood of requests is counted in the metrics and causes only a few Events."""
    for number in range(40):
        await world.boot.script(UUID, f"10.0.1.{number}")
        await world.boot.script(UUID, f"10.0.1.{number}")
    assert world.refused("script", "BootWindowClosed") == 80
    assert 1 <= len(world.events) <= 12
    world.clock.advance(61)
    await world.boot.script(UUID, NEIGHBOR)
    assert NEIGHBOR in world.events[-1][3]
