"""A fleet's whole life with a manager that has the generated rights only: none is missing, none is too many.

The manager acts as its ServiceAccount on the embedded API, with the generated roles applied, and behind a guard that
knows which right each request needs.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from metal.api.core import CONFIG_MAP, NAMESPACE
from metal.apiserver.auth.access import service_account
from metal.codegen.rbac import NAME, files, roles
from metal.config import Config
from metal.kube.client.errors import AlreadyExists
from metal.kube.client.protocol import Client
from metal.kube.meta.permissions import Where
from tests.codegen.rbac.apply import apply_all
from tests.codegen.rbac.guard import Guard
from tests.sim.plane import KINDS, OPTIONS, START, Plane, is_ready
from tests.sim.steps import approve, maintain, rule, until_server

pytestmark = pytest.mark.looptime
HOME = Config().namespace
ELSEWHERE = {"leases": "tests/kube/controller/test_election.py: here one manager is alone"}
"""Resources whose rights are proved by another test."""


class GuardedPlane(Plane):
    """A plane whose managers, one after the other, are behind one guard."""

    guard: Guard | None = None

    def manager_client(self) -> Client:
        if self.guard is None:
            account = self.api.client(*service_account(HOME, NAME))
            self.guard = Guard(account, self.api.client(), roles(namespace=HOME).rights, HOME, KINDS.all())
        return self.guard

    async def start_manager(self) -> None:
        """As an administrator installs it, before its first start."""
        with contextlib.suppress(AlreadyExists):
            await self.client.create(NAMESPACE, {"metadata": {"name": HOME}})
            await apply_all(self.client, "".join(files(namespace=HOME).values()))
        await super().start_manager()


@asynccontextmanager
async def guarded(n: int) -> AsyncIterator[tuple[GuardedPlane, Guard]]:
    world = GuardedPlane(n, 0, Config(probe_image="images.sim/probe:latest"), OPTIONS)
    await world.start()
    assert world.guard is not None
    try:
        yield world, world.guard
        world.check()
    finally:
        await world.stop()


async def test_a_whole_life_needs_every_right_and_no_other() -> None:
    """Enrolment, claims, faults, leftovers of other operators, restarts and deletions: each rule is used."""
    async with guarded(3) as (world, guard):
        await world.announce()
        await world.until_available(3)
        await _claim_and_release(world)
        await _a_bmc_dies_again_and_again(world)
        await _leftovers_of_older_operators(world)
        await _names_that_were_used_before(world)
        await _a_server_goes_in_cleanup(world)
        await _maintenances_and_rules(world)
        await _everything_goes(world)
    assert guard.refused == []
    unused = [right for right in guard.rights if right not in guard.used and right.resource not in ELSEWHERE]
    assert [f"{right.verb} {right.resource} {right.where}" for right in unused] == []


async def test_a_namespace_that_is_not_allowed_says_so() -> None:
    """Without the right to its Secrets a claim waits, its boot configuration says why, and goes on once it is given."""
    async with guarded(1) as (world, guard):
        given = [right for right in guard.rights if right.where is Where.TENANTS]
        guard.rights = [right for right in guard.rights if right not in given]
        await world.announce()
        await world.until_available(1)
        await world.add_claim()
        await asyncio.sleep(60)
        config = await world.client.get(KINDS.boot_config, "c1", "default")
        (found,) = [one for one in config.status.conditions if one.type == "IgnitionValidation"]
        assert (found.status, found.reason) == ("False", "SecretForbidden")
        assert "may not read the Secret c1 in namespace default" in found.message
        assert set(guard.refused) == {"get secrets.core c1 in namespace default"}
        guard.rights += given
        await world.until_claim(is_ready)


async def _claim_and_release(world: Plane) -> None:
    await world.add_claim()
    await world.until_claim(is_ready)
    await world.client.delete(KINDS.claim, "c1", "default")
    await world.until_available(3)


async def _a_bmc_dies_again_and_again(world: Plane) -> None:
    """The same Event again is counted up; a new manager goes on counting where the old one was killed."""
    await asyncio.sleep(600 - (world.clock() - START).total_seconds() % 600)  # all of it in one window of Events
    faults = world.fleet.machines[0].faults
    for _ in range(2):
        for dead in (True, False):
            faults.dead = dead
            await asyncio.sleep(100)
        await world.restart_manager()
    await world.until_available(3)


async def _leftovers_of_older_operators(world: Plane) -> None:
    """Owner references from BMC and BMCSecret to an Endpoint, and its finalizer."""
    bmc = (await world.client.list(KINDS.bmc)).items[0]
    name = bmc.metadata.name
    endpoint = await world.client.get(KINDS.endpoint, name)
    owner = {"apiVersion": KINDS.endpoint.api_version, "kind": "Endpoint", "name": name, "uid": endpoint.metadata.uid}
    await world.client.patch(KINDS.endpoint, name, {"metadata": {"finalizers": [KINDS.key("endpoint")]}})
    for kind in (KINDS.bmc, KINDS.bmc_secret):
        await world.client.patch(kind, name, {"metadata": {"ownerReferences": [owner]}})
    secret = {"stringData": {"username": world.fleet.options.username}}
    await world.client.patch(KINDS.bmc_secret, name, secret)
    await world.client.delete(KINDS.endpoint, name)
    await world.until_true(lambda: True)
    await asyncio.sleep(120)
    assert (await world.client.get(KINDS.bmc, name)).metadata.owner_references == ()


async def _names_that_were_used_before(world: Plane) -> None:
    """A Server and a claim that come again find what has the name of their predecessors' and waits to be collected."""
    first, other = (await world.servers())[:2]
    owner = {
        "apiVersion": KINDS.server.api_version, "kind": "Server", "name": other.metadata.name,
        "uid": other.metadata.uid,
    }  # fmt: skip
    spec = {"kernelURL": "http://boot.test/kernel", "initrdURL": "http://boot.test/initrd"}
    ipxe = {"metadata": {"name": "c1", "namespace": "default", "ownerReferences": [owner]}, "spec": spec}
    await world.client.create(KINDS.ipxe, ipxe)
    await world.client.delete(KINDS.server, first.metadata.name)
    metadata = {"name": f"inventory-{first.metadata.name}", "namespace": HOME, "ownerReferences": [owner]}
    await world.client.apply(CONFIG_MAP, {"metadata": metadata, "data": {}}, manager="test")
    await _a_machine_says_that_it_booted(world)
    await world.until_available(3)
    await _claim_and_release(world)


async def _a_server_goes_in_cleanup(world: Plane) -> None:
    """What it owes is erased by the one that comes in its place."""
    await world.add_claim()
    await world.until_claim(is_ready)
    await world.client.delete(KINDS.claim, "c1", "default")
    await world.until(lambda servers: any(s.status.state == "Cleanup" for s in servers))
    for server in await world.servers():
        if server.status.state == "Cleanup":
            await world.client.delete(KINDS.server, server.metadata.name)
    await world.until_available(3)


async def _maintenances_and_rules(world: Plane) -> None:
    """One with a boot of its own that ends, one that goes without its finalizer, one that a claim's owner approves."""
    name = (await world.servers())[0].metadata.name
    template = {"name": "m1", "spec": {"serverRef": {"name": name}, "image": "images.sim/demo:latest"}}
    await maintain(world, name, serverBootConfigurationTemplate=template)
    await until_server(world, name, lambda s: s.spec.maintenance_boot_configuration_ref is not None)
    await world.client.patch(KINDS.maintenance, "m1", {"metadata": {"finalizers": None}}, "default")
    await world.client.delete(KINDS.maintenance, "m1", "default")
    await until_server(world, name, lambda s: s.spec.server_maintenance_ref is None)
    await world.until_available(3)
    await world.add_claim(serverRef={"name": name})
    await world.until_claim(is_ready)
    await maintain(world, name, "m2")
    await approve(world)
    await until_server(world, name, lambda s: s.status.state == "Maintenance")
    await world.client.delete(KINDS.maintenance, "m2", "default")
    await until_server(world, name, lambda s: s.status.state == "Reserved")
    await world.client.delete(KINDS.claim, "c1", "default")
    await world.until_available(3)
    await rule(world)


async def _a_machine_says_that_it_booted(world: Plane) -> None:
    """With the token of its report, which comes late enough for another word before it."""
    for machine in world.fleet.machines:
        machine.faults.reports_late = True
    for _ in range(600):
        if await _is_heard(world):
            break
        await asyncio.sleep(1)
    for machine in world.fleet.machines:
        machine.faults.reports_late = False


async def _is_heard(world: Plane) -> bool:
    for machine in world.fleet.machines:
        body = json.dumps({"systemUUID": machine.identity.uuid, "booted": True}).encode()
        for token in machine.secrets:
            if (await world.manager.registry.bootstate(f"Bearer {token}", body, "10.0.0.1")).status == 200:
                return True
    return False


async def _everything_goes(world: Plane) -> None:
    """BMCs ask for leases again, so that others come in their place."""
    before: set[str] = set()
    for kind in (KINDS.endpoint, KINDS.bmc, KINDS.server, KINDS.bmc_secret):
        for obj in (await world.client.list(kind)).items:
            before.add(obj.metadata.uid)
            await world.client.delete(kind, obj.metadata.name)
    await asyncio.sleep(60)
    assert before.isdisjoint(bmc.metadata.uid for bmc in (await world.client.list(KINDS.bmc)).items)
    assert before.isdisjoint(server.metadata.uid for server in await world.servers())
