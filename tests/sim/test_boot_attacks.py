"""A neighbour on the boot network tries to be taken for a machine: it gets no Ignition, and reports nothing."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from metal.api.core import EVENT, Event
from metal.config.options import BootOptions, Sanitization, Timeouts
from metal.sim.machine.machine import Machine
from tests.sim.plane import KINDS, Plane, is_ready, plane
from tests.sim.steps import until_server

pytestmark = pytest.mark.looptime
NEIGHBOUR = "127.77.0.66"
FIRST = BootOptions(minimum_trust="FirstRequest")
SHORT = Timeouts(race_window=60.0, discovery=400.0, claim_boot=400.0)


class Neighbour:
    """A client of the boot network that knows the machine's UUID and polls twice a second."""

    def __init__(self, world: Plane, machine: Machine, address: str = NEIGHBOUR) -> None:
        self.world, self.machine, self.address = world, machine, address
        self.statuses: dict[str, set[int]] = {"script": set(), "ignition": set(), "report": set()}
        self.tokens: list[str] = []
        self.loot: list[bytes] = []

    async def poll(self) -> None:
        """Ask for the script, and with each token for the Ignition, for ever."""
        while True:
            await self.ask_script()
            for token in self.tokens[-3:]:
                await self.ask_ignition(token)
            await asyncio.sleep(0.5)

    async def ask_script(self) -> None:
        status, body = await self._get("script", f"/ipxe/{self.machine.identity.uuid}")
        if status == 200:
            self.tokens += re.findall(r"ignition\S*token=([\w-]+)", body.decode())

    async def ask_ignition(self, token: str) -> None:
        status, body = await self._get("ignition", f"/ignition/{self.machine.identity.uuid}?token={token}")
        if status == 200:
            self.loot.append(body)

    async def report(self, endpoint: str, token: str, data: dict[str, Any]) -> int:
        """Send a report in the name of the machine."""
        reply = await self.world.network.request(
            "POST", f"{self.world.config.registry_url}/{endpoint}", headers={"authorization": f"Bearer {token}"},
            body=json.dumps({"systemUUID": self.machine.identity.uuid, "data": data}).encode(), source_ip=self.address,
        )  # fmt: skip
        self.statuses["report"].add(reply[0])
        return reply[0]

    async def _get(self, what: str, path: str) -> tuple[int, bytes]:
        url = f"{self.world.config.boot_url}{path}"
        status, _, body = await self.world.network.request("GET", url, headers={}, body=b"", source_ip=self.address)
        self.statuses[what].add(status)
        return status, body


@asynccontextmanager
async def polling(neighbour: Neighbour) -> AsyncIterator[Neighbour]:
    """The neighbour polls meanwhile."""
    task = asyncio.ensure_future(neighbour.poll())
    try:
        yield neighbour
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _available(world: Plane) -> str:
    await world.announce()
    await world.until_available(1, within=1500)
    return (await world.servers())[0].metadata.name


@pytest.mark.behaviour(
    "Server: network boot",
    "A neighbour that polls for the script since before the power-on gets nothing, and the machine boots.",
)
async def test_a_neighbour_that_polls_before_the_power_on_gets_nothing() -> None:
    """From before the discovery until the tenant's system runs; its requests delay nothing."""
    async with plane() as world, polling(Neighbour(world, world.fleet.machines[0])) as neighbour:
        await _available(world)
        await world.add_claim()
        await world.until_claim(is_ready)
    assert neighbour.statuses["script"] <= {403, 404, 503}
    assert neighbour.loot == []


@pytest.mark.behaviour(
    "Server: network boot",
    "With FirstRequest a neighbour that was first gets no Ignition: the machine's own request ends the "
    "boot, and finally Error BootContested.",
)
async def test_a_neighbour_that_is_first_gets_no_ignition() -> None:
    """It gets a script once the BMC shows On, as the site accepts; the Ignition waits, and the machine asks, too."""
    async with plane(boot=FIRST, timeouts=SHORT) as world:
        machine = world.fleet.machines[0]
        machine.faults.unreported_lease = True
        name = await _available(world)
        async with polling(Neighbour(world, machine)) as neighbour:
            await world.add_claim()
            server = await until_server(world, name, lambda s: s.status.state == "Error", within=3000)
            machine_off = {event.reason for event in await _events(world)}
    assert server.status.failure is not None
    assert server.status.failure.reason == "BootContested"
    assert "MachineOff" in machine_off
    assert neighbour.tokens
    assert neighbour.statuses["ignition"] == {403, 503}
    assert neighbour.loot == []


async def _events(world: Plane) -> tuple[Event, ...]:
    await asyncio.sleep(5)
    return tuple((await world.client.list(EVENT)).items)


@pytest.mark.behaviour(
    "Server: network boot",
    "A claim with `minimumBootTrust: OutOfBand` excludes a neighbour with the leased address: the "
    "machine is not powered on.",
)
async def test_a_neighbour_with_the_leased_address_is_shut_out_by_the_claim() -> None:
    """Nothing in band proves who asks: only a token through the BMC would, so such a claim is not booted without."""
    async with plane() as world:
        machine = world.fleet.machines[0]
        name = await _available(world)
        async with polling(Neighbour(world, machine, machine.identity.host_ip)) as neighbour:
            await world.add_claim(minimumBootTrust="OutOfBand")
            server = await until_server(
                world, name, lambda s: s.status.wait is not None and s.status.wait.for_ == "BootTrust"
            )
            await asyncio.sleep(300)
            powers = list(world.fleet.history.of(machine.identity.uuid, "power"))
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until_available(1)
    assert server.status.power_state == "Off"
    assert powers[-1].details["state"] == "Off"
    assert neighbour.statuses["script"] <= {403}
    assert neighbour.loot == []


@pytest.mark.behaviour(
    "Server: network boot", "A report in the name of a machine needs a token that was served to the machine itself."
)
async def test_a_neighbour_reports_nothing_in_the_name_of_the_machine() -> None:
    """Neither at the discovery nor at the erasure: it gets no token, and what it invents is refused."""
    async with plane(sanitization=Sanitization()) as world:
        machine = world.fleet.machines[0]
        async with polling(Neighbour(world, machine)) as neighbour:
            forging = asyncio.ensure_future(_forge(neighbour))
            name = await _available(world)
            await world.add_claim()
            await world.until_claim(is_ready)
            await world.client.delete(KINDS.claim, "c1", "default")
            await asyncio.sleep(10)
            await world.until_available(1, within=1500)
            forging.cancel()
        server = await world.client.get(KINDS.server, name)
        evidence = (await world.client.list(KINDS.evidence)).items
    assert neighbour.statuses["report"] <= {401, 403}
    assert neighbour.tokens == []
    assert {nic.mac_address for nic in server.status.network_interfaces} == set(machine.identity.host_macs)
    assert {nic.source for nic in server.status.network_interfaces} == {"OutOfBand"}
    assert [(one.spec.boot_method, one.spec.boot_trust) for one in evidence] == [("IPXE", "Lease")]
    assert "X" not in [drive.serial_number for one in evidence for drive in one.status.drives]


async def _forge(neighbour: Neighbour) -> None:
    """Reports of another network card, and of erased drives, with tokens that the neighbour knows or guesses."""
    erased = {"done": True, "drives": [{"name": "sda", "serialNumber": "X", "result": "Succeeded", "samplesRead": 64}]}
    inventory = {"networkInterfaces": [{"name": "eth0", "macAddress": "02:66:66:66:66:66"}]}
    while True:
        for token in ("guess", *neighbour.tokens[-2:]):
            await neighbour.report("register", token, inventory)
            await neighbour.report("sanitization", token, erased)
        await asyncio.sleep(1)


@pytest.mark.behaviour(
    "Server: network boot",
    "With FirstRequest a neighbour that was first in a sanitization boot gets no token for a report, so "
    "it cannot report an erasure.",
)
async def test_a_neighbour_with_the_script_of_a_sanitization_reports_no_erasure() -> None:
    """The evidence of each boot is of the machine; while the neighbour polls, the server is not released."""
    async with plane(boot=FIRST, timeouts=SHORT, sanitization=Sanitization()) as world:
        machine = world.fleet.machines[0]
        machine.faults.unreported_lease = True
        name = await _available(world)
        await world.add_claim()
        await world.until_claim(is_ready, within=900)
        async with polling(Neighbour(world, machine)) as neighbour:
            forging = asyncio.ensure_future(_forge(neighbour))
            await world.client.delete(KINDS.claim, "c1", "default")
            server = await until_server(world, name, lambda s: s.status.state == "Error", within=3000)
            forging.cancel()
            during = (await world.client.list(KINDS.evidence)).items
        await world.client.patch(KINDS.server, name, {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}})
        await world.until_available(1, within=3000)
        after = (await world.client.list(KINDS.evidence)).items
    assert server.status.failure is not None
    assert server.status.failure.reason == "BootContested"
    assert neighbour.tokens
    assert neighbour.statuses["report"] == {403}
    assert not during
    assert [one.spec.boot_trust for one in after] == ["FirstRequest"]
