"""Two third-party Redfish clients against the simulated BMCs over sockets."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sushy
import sushy.auth
from redfish.rest.v1 import InvalidCredentialsError
from sushy import exceptions

import redfish
from metal.bmc.pool import BMCEndpoint
from metal.bmc.redfish.pool import RedfishPool
from metal.sim.machine.machine import Machine
from metal.sim.options import Carrier, Options
from metal.sim.sites.fleet import Fleet, FleetSettings

pytestmark = pytest.mark.wire
T = TypeVar("T")
PASSWORD = "made up for this test"
SYSTEM = "/redfish/v1/Systems/1"
TO_CLOSE: list[Callable[[], None]] = []
SESSIONS = "/redfish/v1/SessionService/Sessions"
CA: dict[str, Path] = {}
"""File with the certificate of the fleet's authority, by address of a BMC."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(params=["http", "https"])
async def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fleet]:
    options = Options(power=0.05, boot=0.05, port=free_port(), scheme=request.param, password=PASSWORD, bmc_reset=0.1)
    made = Fleet(2, seed=3, options=options, settings=FleetSettings("http://127.0.0.1:9", offset=50_000))
    await made.serve()
    CA[made.machines[0].identity.bmc_ip] = ca_file = tmp_path / "ca.pem"
    ca_file.write_text(made.ca_pem)
    yield made
    await made.stop()


@pytest.fixture
def machine(fleet: Fleet) -> Machine:
    return fleet.machines[0]


def url(machine: Machine) -> str:
    options = machine.site.options
    return f"{options.scheme}://{machine.identity.bmc_ip}:{options.port}"


def with_sushy(machine: Machine, password: str = PASSWORD) -> sushy.Sushy:
    verify = str(CA[machine.identity.bmc_ip])
    auth = sushy.auth.SessionOrBasicAuth("admin", password)
    TO_CLOSE.append(auth.close)
    return sushy.Sushy(url(machine), auth=auth, verify=verify, server_side_retries=0)


def with_redfish(machine: Machine, password: str = PASSWORD) -> Any:
    ca_file = str(CA[machine.identity.bmc_ip])
    return redfish.redfish_client(url(machine), "admin", password, timeout=10, max_retry=1, cafile=ca_file)


def wait_for(check: Callable[[], bool]) -> None:
    """Poll from the client's thread."""
    end = time.monotonic() + 10
    while not check():
        assert time.monotonic() < end, "it did not happen within 10 s"
        time.sleep(0.02)


async def apart(work: Callable[[], T]) -> T:
    """The clients block: they run, and log out, in a thread; the BMCs are in the test's loop."""

    def run() -> T:
        try:
            return work()
        finally:
            while TO_CLOSE:
                TO_CLOSE.pop()()

    return await asyncio.to_thread(run)


async def test_sushy_walks_the_inventory(machine: Machine) -> None:
    """sushy logs in with a session and reads system, processors, memory, storage and NICs as the machine has them."""

    def read() -> None:
        system = with_sushy(machine).get_system(SYSTEM)
        assert system.uuid == machine.identity.uuid
        assert system.memory_summary.size_gib == machine.hardware.memory_gib
        assert [cpu.total_cores for cpu in system.processors.get_members()] == [
            machine.hardware.cores
        ] * machine.hardware.sockets
        nics = system.ethernet_interfaces.get_members()
        assert sorted(nic.mac_address.lower() for nic in nics) == sorted(machine.identity.host_macs)
        drives = system.storage.get_members()[0].drives
        assert [drive.serial_number for drive in drives] == [disk.serial for disk in machine.hardware.disks]
        assert system.bios.attributes["BootMode"] == "UEFI"

    await apart(read)


async def test_sushy_reads_the_manager_and_chassis(machine: Machine) -> None:
    """sushy finds the manager that hosts the console, and the chassis, from the system."""

    def read() -> None:
        client = with_sushy(machine)
        manager = client.get_manager("/redfish/v1/Managers/1")
        assert manager.uuid == machine.identity.bmc_uuid
        assert manager.graphical_console.max_concurrent_sessions > 0
        assert client.get_system(SYSTEM).chassis[0].identity == "1"

    await apart(read)


async def test_sushy_switches_power(machine: Machine) -> None:
    """sushy switches a machine on, shuts it down, and sees the state change after a while."""

    def switch() -> None:
        system = with_sushy(machine).get_system(SYSTEM)

        def is_now(state: sushy.PowerState) -> bool:
            system.refresh(force=True)
            return bool(system.power_state == state)

        assert is_now(sushy.PowerState.OFF)
        system.reset_system(sushy.RESET_ON)
        wait_for(lambda: is_now(sushy.PowerState.ON))
        system.reset_system(sushy.RESET_GRACEFUL_SHUTDOWN)
        wait_for(lambda: is_now(sushy.PowerState.OFF))

    await apart(switch)


async def test_sushy_sets_a_one_time_override(machine: Machine) -> None:
    """The machine has the override that sushy set, with the ETag that sushy sent; a boot clears it."""

    def override() -> None:
        system = with_sushy(machine).get_system(SYSTEM)
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE)
        assert machine.state.override.is_network
        system.refresh(force=True)
        assert system.boot.target == sushy.BOOT_SOURCE_TARGET_PXE
        system.reset_system(sushy.RESET_ON)
        wait_for(lambda: not machine.state.override.is_network)

    await apart(override)


async def test_sushy_is_told_about_a_wrong_password(machine: Machine) -> None:
    """Wrong credentials are an access error, not something else."""
    with pytest.raises(exceptions.AccessError):
        await apart(lambda: with_sushy(machine, "wrong").get_system(SYSTEM))


async def test_sushy_blinks_the_led(machine: Machine) -> None:
    """The indicator can be set and is read back."""

    def blink() -> None:
        system = with_sushy(machine).get_system(SYSTEM)
        system.set_indicator_led(sushy.INDICATOR_LED_BLINKING)
        system.refresh(force=True)
        assert system.indicator_led == sushy.INDICATOR_LED_BLINKING

    await apart(blink)


@pytest.mark.parametrize("auth", [redfish.AuthMethod.SESSION, redfish.AuthMethod.BASIC])
async def test_redfish_logs_in_both_ways(machine: Machine, auth: str) -> None:
    """DMTF's client logs in with a session or basic authentication, reads the system, and logs out."""

    def use() -> None:
        client = with_redfish(machine)
        client.login(auth=auth)
        answer = client.get(SYSTEM)
        assert (answer.status, answer.dict["UUID"]) == (200, machine.identity.uuid)
        assert len(client.get(SESSIONS).dict["Members"]) == (1 if auth == redfish.AuthMethod.SESSION else 0)
        client.logout()

    await apart(use)


async def test_redfish_follows_every_link(machine: Machine) -> None:
    """Every link in a response exists, has its own @odata.id and a type."""
    assert len(await apart(lambda: crawl(with_redfish(machine)))) > 20


async def test_redfish_reads_error_bodies(machine: Machine) -> None:
    """A value that is not allowed is refused with a message that names it; unknown paths with 404."""

    def provoke() -> None:
        client = with_redfish(machine)
        client.login()
        answer = client.patch(SYSTEM, body={"Boot": {"BootSourceOverrideTarget": "Floppy"}})
        assert answer.status == 400
        assert "Floppy" in answer.text
        assert client.get("/redfish/v1/Nothing").status == 404
        assert client.delete(SYSTEM).status == 405

    await apart(provoke)


async def test_redfish_restarts_the_bmc(machine: Machine) -> None:
    """After Manager.Reset the BMC is unreachable for a while, and its old sessions are invalid afterwards."""

    def restart() -> None:
        client = with_redfish(machine)
        client.login()
        action = client.get("/redfish/v1/Managers/1").dict["Actions"]["#Manager.Reset"]["target"]
        assert client.post(action, body={"ResetType": "GracefulRestart"}).status == 204
        time.sleep(0.3)
        assert client.get(SYSTEM).status == 401

    await apart(restart)


async def test_redfish_is_told_about_a_wrong_password(machine: Machine) -> None:
    """DMTF's client recognises refused credentials."""
    with pytest.raises(InvalidCredentialsError):
        await apart(lambda: with_redfish(machine, "wrong").login(auth=redfish.AuthMethod.SESSION))


def crawl(client: Any) -> set[str]:
    """Every path that links lead to, from the root."""
    client.login()
    seen: set[str] = set()
    todo = ["/redfish/v1/"]
    while todo:
        path = todo.pop()
        if path.rstrip("/") in seen:
            continue
        seen.add(path.rstrip("/"))
        answer = client.get(path)
        assert answer.status == 200, path
        assert answer.dict["@odata.id"].rstrip("/") == path.rstrip("/")
        assert answer.dict["@odata.type"]
        todo += links(answer.dict)
    return seen


def links(value: object) -> list[str]:
    """Every @odata.id below the top of a resource."""
    if isinstance(value, dict):
        own = [value["@odata.id"]] if set(value) == {"@odata.id"} else []
        return own + [link for part in value.values() for link in links(part)]
    return [link for part in value for link in links(part)] if isinstance(value, list) else []


async def test_sushy_and_redfish_know_our_event_subscriptions(fleet: Fleet, machine: Machine) -> None:
    """One client subscribes, the project's client finds it and the other removes it."""
    there = "https://192.0.2.9/events/b1/t"
    options = machine.site.options
    access = BMCEndpoint(
        "b", machine.identity.bmc_ip, options.port, options.scheme, options.username, options.password,
        ca_pem=fleet.ca_pem,
    )  # fmt: skip

    def subscribe() -> None:
        service = with_sushy(machine).get_event_service()
        made = service.subscriptions.create({"Destination": there, "Protocol": "Redfish", "Context": "theirs"})
        assert made.destination == there

    def remove() -> None:
        client = with_redfish(machine)
        client.login(auth="session")
        uri = client.get("/redfish/v1/EventService/Subscriptions").dict["Members"][0]["@odata.id"]
        assert client.get(uri).dict["Context"] == "theirs"
        assert client.delete(uri).status == 204
        client.logout()

    pool = RedfishPool()
    try:
        await apart(subscribe)
        (held,) = await pool.get(access).subscriptions()
        assert (held.destination, held.context) == (there, "theirs")
        await apart(remove)
        assert await pool.get(access).subscriptions() == ()
    finally:
        await pool.aclose()


@pytest.fixture
async def carrying() -> AsyncIterator[Machine]:
    """A machine whose BMC offers virtual media, HttpBootUri and an asset tag."""
    offers = frozenset({Carrier.VIRTUAL_MEDIA, Carrier.HTTP_BOOT_URI, Carrier.ASSET_TAG})
    options = Options(power=0.05, boot=0.05, medium=0.1, port=free_port(), password=PASSWORD, carriers=(offers,))
    made = Fleet(1, seed=3, options=options, settings=FleetSettings("http://127.0.0.1:9", offset=50_100))
    await made.serve()
    CA[made.machines[0].identity.bmc_ip] = Path()
    yield made.machines[0]
    await made.stop()


async def test_sushy_inserts_and_ejects_a_medium(carrying: Machine) -> None:
    """sushy finds the CD, inserts an ISO, sees it as inserted after a while, boots from it once and ejects it."""

    def use() -> None:
        system = with_sushy(carrying).get_system(SYSTEM)
        (slot,) = [each for each in system.virtual_media.get_members() if sushy.VIRTUAL_MEDIA_CD in each.media_types]
        slot.insert_media("http://192.0.2.9/boot/x/s1.iso")

        def is_inserted() -> bool:
            slot.refresh(force=True)
            return bool(slot.inserted)

        wait_for(is_inserted)
        assert slot.image_name == "s1.iso"
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
        assert carrying.state.override.target == "Cd"
        slot.eject_media()
        assert not is_inserted()

    await apart(use)


async def test_sushy_sets_a_url_of_http_boot(carrying: Machine) -> None:
    """The property and the target; a boot option without it removes it."""
    there = "http://192.0.2.9/boot/x/boot.efi"

    def use() -> None:
        system = with_sushy(carrying).get_system(SYSTEM)
        http, once = sushy.BOOT_SOURCE_TARGET_UEFI_HTTP, sushy.BOOT_SOURCE_ENABLED_ONCE
        system.set_system_boot_options(http, once, http_boot_uri=there)
        assert carrying.http_url == there
        system.refresh(force=True)
        assert system.boot.http_boot_uri == there
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, once)
        assert carrying.http_url == ""

    await apart(use)


async def test_sushy_and_redfish_read_secure_boot_and_the_asset_tag(carrying: Machine) -> None:
    """As the machine has them; DMTF's client writes the tag."""

    def use() -> None:
        system = with_sushy(carrying).get_system(SYSTEM)
        assert system.secure_boot.enabled is False
        client = redfish.redfish_client(url(carrying), "admin", PASSWORD, timeout=10, max_retry=1)
        client.login()
        assert client.patch(SYSTEM, body={"AssetTag": "R2-17"}).status == 200
        assert carrying.state.asset_tag == "R2-17"
        client.logout()
        system.refresh(force=True)
        assert system.asset_tag == "R2-17"

    await apart(use)


async def test_redfish_follows_the_links_of_carriers(carrying: Machine) -> None:
    """Down to the slots."""

    def follow() -> set[str]:
        return crawl(redfish.redfish_client(url(carrying), "admin", PASSWORD, timeout=10, max_retry=1))

    assert await apart(follow) >= {f"{SYSTEM}/VirtualMedia/Cd", f"{SYSTEM}/SecureBoot"}
