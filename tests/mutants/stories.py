"""Short lives of simulated servers, each of which gives one sort of bug its chance. None of them judges by itself.

What must hold is said by the invariants over the history, and by `at_rest`: all comes to rest.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from metal.api.server import Server
from metal.kube.client.errors import AlreadyExists, ApiError, NotFound
from metal.machine.leases import lease_ended
from metal.sim.machine.machine import Machine
from tests.sim.plane import KINDS, Plane, is_of, is_ready

Story = Callable[[Plane], Awaitable[None]]
PATIENCE = 2400.0
"""Seconds of virtual time until everything that can come to rest has."""


class Restless(AssertionError):
    """The faults have stopped, and something is still not as it was asked for."""


async def at_rest(world: Plane, patience: float = PATIENCE) -> None:
    """Every server is Available and off, or has what its claim wants; no claim is without a word.

    Raises Restless, or InvariantViolation when something happened that must never happen.
    """
    world.check()  # what must never happen tells more than a rest that never comes
    end = asyncio.get_running_loop().time() + patience
    while problem := await restless(world):
        if asyncio.get_running_loop().time() > end:
            raise Restless(problem)
        await asyncio.sleep(30)


async def restless(world: Plane) -> str:
    """What is not as it should be at rest, or nothing."""
    claims = {f"{c.metadata.namespace}/{c.metadata.name}": c for c in (await world.client.list(KINDS.claim)).items}
    for server in await world.servers():
        name, status, ref = server.metadata.name, server.status, server.spec.server_claim_ref
        machine = next((m for m in world.fleet.machines if is_of(server, m)), None)
        if machine is None:
            return f"{name} describes no machine: {status.waiting_for}"
        claim = claims.get(f"{ref.namespace}/{ref.name}") if ref is not None else None
        if ref is not None and claim is None:
            return f"{name} is held by the claim {ref.name}, which is gone"
        wanted = claim.spec.power if claim is not None else "Off"
        expected = "Reserved" if ref is not None else "Available"
        if (status.state, machine.state.power) != (expected, wanted):
            return f"{name} is {status.state} and {machine.state.power}: {status.waiting_for}"
        if wanted == "On" and (machine.state.os is None or machine.state.os.kind not in ("tenant", "disk")):
            return f"{name} runs {machine.state.os}, not its tenant's system"
    return next((f"claim {name} says nothing" for name, c in claims.items() if not c.status.conditions), "")


async def discovered(world: Plane) -> Machine:
    """All are Available; returns the first machine."""
    await world.announce()
    await world.until_available(len(world.fleet.machines))
    return world.fleet.machines[0]


async def claimed(world: Plane, name: str = "c1", **spec: object) -> Machine:
    """A claim has its system; returns the machine."""
    await discovered(world)
    await world.add_claim(name, **spec)
    await world.until_claim(is_ready, name)
    await world.until_true(lambda: bool(world.tenants()), what="the tenant's system")
    return world.tenants()[0]


async def release(world: Plane, name: str = "c1") -> None:
    with suppress(NotFound):
        await world.client.delete(KINDS.claim, name, "default")


async def change_server(world: Plane, machine: Machine, body: dict[str, object]) -> None:
    server = await world.server_of(machine)
    assert server is not None
    await world.client.patch(KINDS.server, server.metadata.name, body)


async def maintain(world: Plane, machine: Machine, *, on: bool) -> None:
    """An enforced maintenance takes hold of a machine's server, or ends."""
    server = await world.server_of(machine)
    assert server is not None
    name = f"m-{server.metadata.name}"
    if not on:
        with suppress(NotFound):
            await world.client.delete(KINDS.maintenance, name, "default")
        return
    spec = {"policy": "Enforced", "serverRef": {"name": server.metadata.name}}
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    with suppress(AlreadyExists):
        await world.client.create(KINDS.maintenance, body)


async def plain_life(world: Plane) -> None:
    """Claimed, off and on again, given back, claimed by another one."""
    await claimed(world)
    for power in ("Off", "On"):
        await world.client.patch(KINDS.claim, "c1", {"spec": {"power": power}}, "default")
        await asyncio.sleep(120)
    await release(world)
    await asyncio.sleep(300)
    await world.add_claim("c2")
    await asyncio.sleep(300)


async def power_loss(world: Plane) -> None:
    """The mains of a tenant's machine fail."""
    machine = await claimed(world)
    machine.lose_power()
    await asyncio.sleep(600)


async def switched_off(world: Plane) -> None:
    """A tenant switches its machine off and leaves it so."""
    await claimed(world)
    await world.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
    await asyncio.sleep(300)


async def off_claim(world: Plane) -> None:
    """A claim binds with power Off, as machine controllers do, and is filled in later."""
    await discovered(world)
    await world.add_claim(power="Off")
    await asyncio.sleep(300)
    await world.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
    await asyncio.sleep(300)


async def late_ignition(world: Plane) -> None:
    """The Secret that a claim names comes minutes after it."""
    await discovered(world)
    body = {
        "metadata": {"name": "c1", "namespace": "default"},
        "spec": {"power": "On", "image": "images.sim/demo:latest", "ignitionSecretRef": {"name": "late"}},
    }
    await world.client.create(KINDS.claim, body)
    await asyncio.sleep(200)
    await world.add_claim("late", serverSelector={"matchLabels": {"no": "where"}})
    await asyncio.sleep(300)


async def new_image(world: Plane) -> None:
    """The claim's image changes while its system runs."""
    await claimed(world)
    await world.client.patch(KINDS.claim, "c1", {"spec": {"image": "images.sim/probe:latest"}}, "default")
    await asyncio.sleep(600)


async def asked_again(world: Plane) -> None:
    """The claim asks for another boot; later its machine loses its power."""
    machine = await claimed(world)
    await world.client.patch(KINDS.claim, "c1", {"spec": {"bootGeneration": 1}}, "default")
    await asyncio.sleep(600)
    machine.lose_power()
    await asyncio.sleep(300)


async def asked_and_lost_status(world: Plane) -> None:
    """As before, and then a backup without status is restored."""
    await asked_again(world)
    await _lose_status(world, world.fleet.machines[0])
    await asyncio.sleep(900)


async def changed_mind(world: Plane) -> None:
    """The claim asks for another boot and takes that back while the machine boots."""
    machine = await claimed(world)
    await world.client.patch(KINDS.claim, "c1", {"spec": {"bootGeneration": 1}}, "default")
    await world.until_true(lambda: machine.state.netbooting, what="the boot that was asked for")
    await world.client.patch(KINDS.claim, "c1", {"spec": {"bootGeneration": 0}}, "default")
    await asyncio.sleep(900)


async def deaf_system(world: Plane) -> None:
    """A tenant's system that ignores the shutdown request is given back."""
    machine = await claimed(world)
    machine.faults.ignores_graceful = True
    await release(world)
    await asyncio.sleep(1200)
    machine.faults.ignores_graceful = False


async def same_name_again(world: Plane) -> None:
    """A claim is deleted, and one of the same name made in the same moment."""
    await claimed(world)
    await release(world)
    with suppress(AlreadyExists):
        await world.add_claim("c1")
    await asyncio.sleep(600)


async def lost_status(world: Plane) -> None:
    """A backup without status is restored under a tenant."""
    machine = await claimed(world)
    await _lose_status(world, machine)
    await asyncio.sleep(900)


async def _lose_status(world: Plane, machine: Machine) -> None:
    server = await world.server_of(machine)
    assert server is not None
    fields = msgspec.to_builtins(server.status)
    await world.client.patch_status(KINDS.server, server.metadata.name, {"status": dict.fromkeys(fields)})


async def stale_off(world: Plane) -> None:
    """A BMC that tells old power states, and a claim that goes while its machine is being switched on."""
    machine = await discovered(world)
    await asyncio.sleep(60)
    machine.faults.stale_power = True
    await world.add_claim()
    await world.until_true(lambda: machine.state.power != "Off", what="switched on")
    await asyncio.sleep(2)
    await release(world)
    await asyncio.sleep(300)
    machine.faults.stale_power = False


async def kept_away(world: Plane) -> None:
    """A cordoned, a tainted and a maintained server, and claims for each."""
    await discovered(world)
    bodies: list[dict[str, object]] = [
        {"spec": {"unclaimable": True}}, {"spec": {"taints": [{"key": "k", "effect": "NoBind"}]}},
    ]  # fmt: skip
    for machine, body in zip(world.fleet.machines, bodies, strict=False):
        await change_server(world, machine, body)
    for name in ("c1", "c2"):
        await world.add_claim(name)
    await asyncio.sleep(300)


async def impatient_claims(world: Plane) -> None:
    """Claims come before any server is discovered, and more than there are servers."""
    for number in range(6):
        await world.add_claim(f"c{number}")
    await world.announce()
    await asyncio.sleep(900)


async def maintained(world: Plane) -> None:
    """A maintenance takes a claimed server and ends; a free one is claimed meanwhile."""
    machine = await claimed(world)
    for one in world.fleet.machines:
        await maintain(world, one, on=True)
    await asyncio.sleep(60)
    await world.add_claim("c2")
    await asyncio.sleep(300)
    await maintain(world, machine, on=False)
    await asyncio.sleep(900)
    for one in world.fleet.machines:
        await maintain(world, one, on=False)
    await asyncio.sleep(900)


async def dead_power(world: Plane) -> None:
    """A BMC accepts every reset and does nothing; later it is repaired, and a retry is requested."""
    machine = await discovered(world)
    machine.faults.ignores_reset = True
    await world.add_claim()
    await asyncio.sleep(5000)
    machine.faults.ignores_reset = False
    with suppress(ApiError):
        await change_server(world, machine, {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}})
    await asyncio.sleep(900)


async def pressed_button(world: Plane) -> None:
    """An available server is switched on outside the operator."""
    (await discovered(world)).press_power_button()
    await asyncio.sleep(900)


async def curious_neighbour(world: Plane) -> None:
    """A machine asks for what another one boots, with a token that it made up."""
    first, second = (await discovered(world)), world.fleet.machines[1]
    server = await world.server_of(first)
    assert server is not None
    await world.add_claim(serverRef={"name": server.metadata.name})
    for _ in range(240):
        for path in (f"/ipxe/{first.identity.uuid}", f"/ignition/{first.identity.uuid}?token=guess"):
            reply = await world.network.request(
                "GET", world.config.boot_url + path, headers={}, body=b"", source_ip=second.identity.host_ip
            )
            second.note("fetch", path=path.partition("?")[0], status=reply[0], bytes=len(reply[2]))
        await asyncio.sleep(1)
    await release(world)


async def first_neighbour(world: Plane) -> None:
    """The machine's lease is not reported, and another machine asks first, again and again, for what it boots."""
    first, second = (await discovered(world)), world.fleet.machines[1]
    server = await world.server_of(first)
    assert server is not None
    first.faults.unreported_lease = True
    await lease_ended(world.client, KINDS, first.identity.host_macs[0], first.identity.host_ip)
    await world.add_claim(serverRef={"name": server.metadata.name})
    path = f"/ipxe/{first.identity.uuid}"
    for _ in range(240):
        reply = await world.network.request(
            "GET", world.config.boot_url + path, headers={}, body=b"", source_ip=second.identity.host_ip
        )
        second.note("fetch", path=path, status=reply[0], bytes=len(reply[2]))
        await asyncio.sleep(1)
    first.faults.unreported_lease = False
    await release(world)


async def old_report(world: Plane) -> None:
    """During a rediscovery whose probe is silent, the report of the former boot is sent again."""
    machine = await discovered(world)
    tokens = list(machine.secrets)
    machine.faults.never_reports = True
    await maintain(world, machine, on=True)
    await asyncio.sleep(60)
    machine.press_power_button()
    await asyncio.sleep(600)
    await maintain(world, machine, on=False)
    for _ in range(30):
        for token in tokens:
            body = msgspec.json.encode({"systemUUID": machine.identity.uuid, "data": {"networkInterfaces": []}})
            await world.network.request(
                "POST", f"{world.config.registry_url}/register", headers={"authorization": f"Bearer {token}"},
                body=body, source_ip=machine.identity.host_ip,
            )  # fmt: skip
        await asyncio.sleep(10)
    machine.faults.never_reports = False


async def spent_token(world: Plane) -> None:
    """A tenant's system asks for its Ignition again, long after it had it."""
    machine = await claimed(world)
    await asyncio.sleep(60)
    for token in machine.secrets:
        await world.network.request(
            "GET", f"{world.config.boot_url}/ignition/{machine.identity.uuid}?token={token}", headers={}, body=b"",
            source_ip=machine.identity.host_ip,
        )  # fmt: skip
    await asyncio.sleep(60)


async def named_early(world: Plane) -> None:
    """A claim names a server that is still being discovered."""
    await world.announce()
    await world.until(bool, what="a server")
    name = (await world.servers())[0].metadata.name
    await asyncio.sleep(10)
    await world.add_claim(serverRef={"name": name})
    await asyncio.sleep(600)


async def rejected_power_on(world: Plane) -> None:
    """A BMC answers reads and rejects changes for more than an hour; then it is repaired, and a retry requested."""
    machine = await discovered(world)
    machine.faults.rejects_writes = True
    await world.add_claim()
    await asyncio.sleep(5000)
    machine.faults.rejects_writes = False
    with suppress(ApiError):
        await change_server(world, machine, {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}})
    await asyncio.sleep(900)


async def outage_between_boots(world: Plane) -> None:
    """A network boot fails, and before the next one the BMC does not answer until the server is in Error."""
    machine = await discovered(world)
    machine.faults.drops_override = True
    await world.add_claim()
    await world.until(lambda servers: servers[0].status.boot_attempts == 1, what="a failed network boot")
    machine.faults.dead = True
    machine.faults.drops_override = False
    await asyncio.sleep(1500)
    machine.faults.dead = False
    await asyncio.sleep(600)


async def host_in_post(world: Plane) -> None:
    """A machine is in POST when a claim boots it, so that its BMC rejects the boot override for three minutes."""
    machine = await discovered(world)
    machine.faults.in_post = True
    await world.add_claim()
    await asyncio.sleep(180)
    machine.faults.in_post = False
    await asyncio.sleep(300)


async def clock_set_back(world: Plane) -> None:
    """The clock is set back one hour while the drives are erased, and a day while the next claim's system boots."""
    await claimed(world, sanitizationPolicy="Clear")
    await release(world)
    await world.until(lambda servers: _erases(servers[0]), what="an erasure in progress")
    world.clock.adjust(-3600)
    await asyncio.sleep(300)
    await world.add_claim("c2")
    await world.until(lambda servers: servers[0].status.state == "Reserved", what="reserved")
    await asyncio.sleep(5)
    world.clock.adjust(-86400)
    await asyncio.sleep(300)


def _erases(server: Server) -> bool:
    return server.status.wait is not None and server.status.wait.for_ == "Sanitization"
