"""A simulated BMC as the Redfish client sees it, in process and in virtual time."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from metal.bmc.boot import BootTarget
from metal.bmc.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCConflict,
    BMCNotFound,
    BMCTimeout,
    BMCUnreachable,
)
from metal.bmc.pool import BMC, BMCEndpoint
from metal.bmc.power import PowerState, ResetType
from metal.bmc.redfish.pool import RedfishPool
from metal.machineapi.http import response as http
from metal.machineapi.http.server import Request, Route
from metal.redfish import RedfishClient
from metal.redfish.transport import Response
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.machine.network import InProcessNetwork
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet, FleetSettings

pytestmark = pytest.mark.looptime
OPTIONS = Options(power=3.0, boot=5.0, shutdown=2.0, latency=0.03, password="made-up-pass", max_sessions=2)
ROOT, SYSTEM = "/redfish/v1", "/redfish/v1/Systems/1"
SESSIONS = f"{ROOT}/SessionService/Sessions"


def rack(n: int = 1, options: Options = OPTIONS) -> Fleet:
    """A fleet without a boot server."""
    return Fleet(n, options=options, settings=FleetSettings("http://nowhere.test", InProcessNetwork()))


def access(fleet: Fleet, *, password: str = OPTIONS.password, number: int = 0) -> BMCEndpoint:
    """How to reach a BMC of the fleet."""
    return BMCEndpoint("b", fleet.machines[number].identity.bmc_ip, 8000, "http", OPTIONS.username, password)


def bmc(fleet: Fleet, **given: Any) -> BMC:
    """The client of one BMC."""
    return RedfishPool(fleet.transport_factory).get(access(fleet, **given))


def sim(fleet: Fleet) -> SimBMC:
    """The simulated BMC."""
    return fleet.bmcs[fleet.machines[0].identity.bmc_ip]


def ask(
    fleet: Fleet, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Response:
    """One request with basic authentication, without a client."""
    pair = base64.b64encode(f"{OPTIONS.username}:{OPTIONS.password}".encode()).decode()
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return sim(fleet).handle(method, path, {"authorization": f"Basic {pair}"} | dict(headers or {}), raw)


def message(answer: Response) -> str:
    """The message id of an error body."""
    info = json.loads(answer.body)["error"]["@Message.ExtendedInfo"]
    return str(info[0]["MessageId"]).rpartition(".")[2]


async def test_the_system_is_who_the_machine_is() -> None:
    """Identity, power, LED and memory come from the machine; the manager has its own UUID and a console."""
    fleet = rack()
    view, machine = bmc(fleet), fleet.machines[0]
    (system,) = await view.systems()
    assert (system.uuid, system.serial_number) == (machine.identity.uuid, machine.identity.serial)
    assert (system.power_state, system.indicator_led) == (PowerState.OFF, "Off")
    assert system.total_memory_bytes == machine.hardware.memory_gib << 30
    assert (await view.manager()).uuid == machine.identity.bmc_uuid
    assert system.bootable


@pytest.mark.parametrize("expand", [True, False])
async def test_the_inventory_is_complete_with_and_without_expand(expand: bool) -> None:
    """Processors, disks and NICs are found either way; $expand saves requests."""
    fleet = rack(options=Options(expand=expand, password=OPTIONS.password))
    inventory = await bmc(fleet).inventory(SYSTEM)
    built = fleet.machines[0].hardware
    assert inventory.problems == ()
    assert len(inventory.processors) == built.sockets
    assert [drive.serial_number for drive in inventory.storages[0].drives] == [disk.serial for disk in built.disks]
    assert tuple(nic.mac_address for nic in inventory.network_interfaces) == fleet.machines[0].identity.host_macs
    assert (sim(fleet).requests.total() < 12) is expand


async def test_power_follows_after_its_time() -> None:
    """A reset is answered at once; the power state changes later."""
    fleet = rack()
    view = bmc(fleet)
    await view.power_on(SYSTEM)
    assert (await view.system(SYSTEM)).power_state is PowerState.POWERING_ON
    await asyncio.sleep(30)
    assert (await view.system(SYSTEM)).power_state is PowerState.ON
    await view.power_off(SYSTEM, force=True)
    await asyncio.sleep(30)
    assert (await view.system(SYSTEM)).power_state is PowerState.OFF
    with pytest.raises(BMCConflict, match="off"):
        await view.reset(SYSTEM, ResetType.FORCE_RESTART)


async def test_the_override_is_read_back_and_cleared() -> None:
    """The override is reported, and removed when it is cleared; the history has both."""
    fleet = rack()
    view = bmc(fleet)
    assert (await view.set_network_boot(SYSTEM)).is_network
    assert (await view.set_network_boot(SYSTEM, BootTarget.UEFI_HTTP)).target == "UefiHttp"
    assert not (await view.clear_boot_override(SYSTEM)).is_network
    noted = fleet.history.of(fleet.machines[0].identity.uuid, "override")
    assert [entry.details["target"] for entry in noted][:2] == ["Pxe", "UefiHttp"]


async def test_a_dropped_override_is_noticed() -> None:
    """A BMC that accepts an override and discards it reports none."""
    fleet = rack()
    fleet.machines[0].faults.drops_override = True
    assert not (await bmc(fleet).set_network_boot(SYSTEM)).is_network


async def test_boot_order_and_led() -> None:
    """Both keep their values; a device that does not exist is rejected."""
    fleet = rack()
    view = bmc(fleet)
    order = tuple(reversed((await view.system(SYSTEM)).boot_order))
    await view.set_boot_order(SYSTEM, order)
    await view.set_indicator_led(SYSTEM, "Blinking")
    system = await view.system(SYSTEM)
    assert (system.boot_order, system.indicator_led) == (order, "Blinking")
    with pytest.raises(BMCBadRequest):
        await view.set_boot_order(SYSTEM, ("Boot9999",))


@pytest.mark.parametrize("by", ["password", "fault"])
async def test_wrong_credentials_are_refused(by: str) -> None:
    """401 for a wrong password, and for every password with the fault."""
    fleet = rack()
    fleet.machines[0].faults.wrong_password = by == "fault"
    with pytest.raises(BMCAuthError):
        await bmc(fleet, password="guess" if by == "password" else OPTIONS.password).systems()


async def test_a_dead_bmc_is_unreachable_and_others_are_not() -> None:
    """Only the dead one; an address without a BMC is the same."""
    fleet = rack(2)
    fleet.machines[0].faults.dead = True
    with pytest.raises(BMCUnreachable):
        await bmc(fleet).systems()
    assert await bmc(fleet, number=1).systems()
    with pytest.raises(BMCUnreachable, match="no BMC has this address"):
        await RedfishPool(fleet.transport_factory).get(BMCEndpoint("x", "127.99.0.1", 8000, "http")).systems()


async def test_a_hanging_bmc_costs_the_deadline() -> None:
    """It accepts the request and never answers."""
    fleet = rack()
    fleet.machines[0].faults.hangs = True
    before = asyncio.get_running_loop().time()
    with pytest.raises(BMCTimeout):
        await bmc(fleet).systems()
    assert asyncio.get_running_loop().time() - before == pytest.approx(30, abs=1)


async def test_a_slow_bmc_takes_its_time() -> None:
    """Every response takes the seconds of the option, and is correct."""
    fleet = rack()
    fleet.machines[0].faults.slow = True
    before = asyncio.get_running_loop().time()
    await RedfishClient(fleet.transport_factory(access(fleet)), origin="http://x:1").root()
    assert asyncio.get_running_loop().time() - before == pytest.approx(OPTIONS.slow, rel=0.3)


async def test_an_ill_bmc_fails_now_and_then() -> None:
    """About the fraction of requests in the option, never all."""
    fleet = rack()
    fleet.machines[0].faults.http_5xx = True
    statuses = [ask(fleet, "GET", SYSTEM).status for _ in range(300)]
    assert 30 < sum(status >= 500 for status in statuses) < 100
    assert set(statuses) <= {200, 500, 503}


async def test_a_restarting_bmc_is_away_and_forgets_its_sessions() -> None:
    """The machine runs on; the BMC comes back after its time and requires a new login."""
    fleet = rack()
    view = bmc(fleet)
    await view.reset_manager()
    with pytest.raises(BMCUnreachable):
        await view.system(SYSTEM)
    assert sim(fleet).sessions.ids == []
    await asyncio.sleep(OPTIONS.bmc_reset)
    assert (await view.system(SYSTEM)).power_state is PowerState.OFF
    assert len(sim(fleet).sessions.ids) == 1


async def test_sessions_are_limited_and_expire() -> None:
    """The third login is rejected until one of the two ends or expires."""
    fleet = rack()
    body = {"UserName": OPTIONS.username, "Password": OPTIONS.password}
    first, _, third = (ask(fleet, "POST", SESSIONS, body) for _ in range(3))
    assert (first.status, third.status, message(third)) == (201, 503, "SessionLimitExceeded")
    token = {"x-auth-token": first.headers["x-auth-token"], "authorization": ""}
    assert ask(fleet, "GET", SYSTEM, headers=token).status == 200
    assert ask(fleet, "DELETE", first.headers["location"]).status == 204
    assert ask(fleet, "GET", SYSTEM, headers=token).status == 401
    assert ask(fleet, "POST", SESSIONS, body).status == 201
    await asyncio.sleep(OPTIONS.session_timeout + 1)
    assert sim(fleet).sessions.ids == []


async def test_only_the_root_is_for_everybody() -> None:
    """Without credentials only the service root is served."""
    fleet = rack()
    nobody = {"authorization": ""}
    assert ask(fleet, "GET", f"{ROOT}/", headers=nobody).status == 200
    for path in (SYSTEM, SESSIONS, f"{ROOT}/Managers/1", f"{ROOT}/Nothing"):
        answer = ask(fleet, "GET", path, headers=nobody)
        assert answer.status == 401
        assert "www-authenticate" in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", f"{ROOT}/Systems/2", None, 404, "ResourceMissingAtURI"),
        ("DELETE", SYSTEM, None, 405, "OperationNotAllowed"),
        ("GET", f"{SYSTEM}/Actions/ComputerSystem.Reset", None, 405, "OperationNotAllowed"),
        ("PATCH", f"{ROOT}/Managers/1", {}, 405, "OperationNotAllowed"),
        ("PATCH", SYSTEM, b"{", 400, "MalformedJSON"),
        ("PATCH", SYSTEM, {"UUID": "x"}, 400, "PropertyUnknown"),
        ("PATCH", SYSTEM, {"Boot": {"Nonsense": 1}}, 400, "PropertyUnknown"),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Floppy"}}, 400, "PropertyValueNotInList"),
        ("PATCH", SYSTEM, {"Boot": []}, 400, "PropertyValueNotInList"),
        ("PATCH", SYSTEM, {"IndicatorLED": "Disco"}, 400, "PropertyValueNotInList"),
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "Explode"}, 400, "PropertyValueNotInList"),
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "PowerCycle"}, 409, "OperationFailed"),
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": []}, 400, "PropertyValueNotInList"),
    ],
)
async def test_what_makes_no_sense_is_refused(method: str, path: str, body: object, status: int, reason: str) -> None:
    """With the status and the message of the standard."""
    answer = ask(rack(), method, path, body)
    assert (answer.status, message(answer)) == (status, reason)


async def test_etags_guard_changes() -> None:
    """The same resource has the same ETag; a change with an old one is rejected, and no other."""
    fleet = rack()
    tag = ask(fleet, "GET", SYSTEM).headers["etag"]
    assert ask(fleet, "GET", SYSTEM, headers={"if-none-match": tag}).status == 304
    assert ask(fleet, "PATCH", SYSTEM, {"IndicatorLED": "Lit"}, {"if-match": tag}).status == 200
    stale = ask(fleet, "PATCH", SYSTEM, {"IndicatorLED": "Off"}, {"if-match": tag})
    assert (stale.status, message(stale)) == (412, "PreconditionFailed")


async def test_every_link_leads_somewhere() -> None:
    """All links from the service root lead to resources with their own path."""
    fleet = rack()
    todo, seen = [f"{ROOT}/"], set[str]()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = ask(fleet, "GET", path)
        assert answer.status == 200, path
        resource = json.loads(answer.body)
        assert resource["@odata.id"].rstrip("/") == path.rstrip("/")
        assert resource["@odata.type"].startswith("#")
        todo += list(_links(resource))
    assert len(seen) > 20


async def test_a_closed_transport_stays_closed() -> None:
    """A closed client does not open a new session."""
    fleet = rack()
    transport = fleet.transport_factory(access(fleet))
    await transport.aclose()
    with pytest.raises(BMCUnreachable, match="closed"):
        await transport.request("GET", f"{ROOT}/", headers={}, timeout=1)


async def test_a_missing_system_is_told_from_a_missing_bmc() -> None:
    """404 is the resource's, not the BMC's."""
    with pytest.raises(BMCNotFound):
        await bmc(rack()).system(f"{ROOT}/Systems/9")


def _links(value: object) -> list[str]:
    if isinstance(value, list):
        return [link for entry in value for link in _links(entry)]
    if not isinstance(value, dict):
        return []
    own = [value["@odata.id"]] if set(value) == {"@odata.id"} else []
    return own + [link for entry in value.values() for link in _links(entry)]


async def test_event_subscriptions_are_made_shown_and_removed() -> None:
    """As the Redfish client does it; a duplicate is rejected and found."""
    fleet = rack()
    view, there = bmc(fleet), "http://192.0.2.9/events/b/Q7x-token"
    uri = await view.subscribe(there, "ours")
    assert await view.subscribe(there, "ours") == uri
    with pytest.raises(BMCBadRequest, match="exists already"):
        await view.subscribe(there, "theirs")
    (held,) = await view.subscriptions()
    assert (held.uri, held.destination, held.context) == (uri, there, "ours")
    await view.unsubscribe(uri)
    assert (await view.subscription(uri), await view.subscriptions()) == (None, ())
    with pytest.raises(BMCBadRequest, match="Destination"):
        await view.subscribe("nowhere", "ours")


async def test_an_event_is_delivered_when_the_power_changes() -> None:
    """With the subscriber's context, with retries, and not at all with the fault loses_events."""
    fleet, heard = rack(), list[Any]()
    view, machine = bmc(fleet), fleet.machines[0]

    async def receive(request: Request) -> http.Response:
        heard.append(json.loads(await request.read(10_000)))
        return http.text(503 if len(heard) == 1 else 200, "")

    network = fleet.settings.network
    assert isinstance(network, InProcessNetwork)
    network.mount("http://192.0.2.9", [Route("events", "/e", ("POST",), receive)])
    await view.subscribe("http://192.0.2.9/e", "ours")
    await view.send_test_event()
    await asyncio.sleep(20)
    assert [event["Context"] for event in heard] == ["ours", "ours"]
    machine.reset("On")
    await asyncio.sleep(20)
    assert [event["Events"][0]["Message"] for event in heard[2:]] == [
        "The power state is PoweringOn.", "The power state is On.",
    ]  # fmt: skip
    machine.faults.loses_events = True
    machine.reset("ForceOff")
    await asyncio.sleep(20)
    assert len(heard) == 4
    await fleet.stop()


BIOS = f"{SYSTEM}/Bios"


async def test_a_bios_does_what_it_was_asked_for_as_the_machine_starts() -> None:
    """Until then it is pending; afterwards the TPM is empty and the attributes have their former values."""
    fleet = rack()
    view, machine = bmc(fleet), fleet.machines[0]
    machine.state.bios.tpm = "a secret"
    await view.clear_tpm(SYSTEM)
    before = (await view.is_tpm_clear_pending(SYSTEM), machine.state.bios.tpm)
    await view.power_on(SYSTEM)
    await asyncio.sleep(10)
    assert before == (True, "a secret")
    assert (await view.is_tpm_clear_pending(SYSTEM), machine.state.bios.tpm) == (False, "")
    assert machine.state.bios.attributes["Tpm2Operation"] == "NoAction"
    await fleet.stop()


async def test_a_bios_reset_brings_the_defaults() -> None:
    """At the next start, not before."""
    fleet = rack()
    view, machine = bmc(fleet), fleet.machines[0]
    machine.state.bios.attributes["ProcVirtualization"] = "Disabled"
    await view.reset_bios(SYSTEM)
    pending = await view.is_bios_reset_pending(SYSTEM)
    await view.power_on(SYSTEM)
    await asyncio.sleep(10)
    assert (pending, await view.is_bios_reset_pending(SYSTEM)) == (True, False)
    assert machine.state.bios.attributes["ProcVirtualization"] == "Enabled"
    await fleet.stop()


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"Attributes": {"Unheard": "Of"}}, 400, "PropertyUnknown"),
        ({"Attributes": {"Tpm2Operation": 7}}, 400, "PropertyValueNotInList"),
        ({"Attributes": []}, 400, "PropertyValueNotInList"),
        ({"Name": "x"}, 400, "PropertyUnknown"),
        ({"Attributes": {"Tpm2Operation": "Clear"}}, 200, ""),
    ],
)
async def test_the_settings_of_the_bios_are_checked(body: dict[str, Any], status: int, said: str) -> None:
    """The Bios resource itself accepts no changes."""
    fleet = rack()
    answer = ask(fleet, "PATCH", f"{BIOS}/Settings", body)
    assert answer.status == status
    assert not said or message(answer) == said
    assert ask(fleet, "PATCH", BIOS, body).status == 405
    await fleet.stop()
