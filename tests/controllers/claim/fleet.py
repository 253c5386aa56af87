"""Fleets of servers for the tests of claims."""

from metal.api.server import Server
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.world import KINDS, World


async def available(w: World, count: int) -> None:
    """Servers s0, s1, … that are Available without a walk through discovery."""
    await w.runtime.stop(grace=0.0)
    for n in range(count):
        address = f"10.0.1.{n}"
        uuid = f"11111111-2222-3333-4444-{n:012d}"
        w.pool.bmcs[address] = FakeBMC(uuid=uuid)
        await w.add_server(f"s{n}", address=address, uuid=uuid, labels={"rack": str(n % 2)})
        await w.client.patch_status(KINDS.server, f"s{n}", {"status": {"state": "Available", "powerState": "Off"}})
    await w.restart()


async def holders(w: World) -> list[str]:
    """Names of the claims that hold a server, once for each server."""
    servers: tuple[Server, ...] = (await w.client.list(KINDS.server)).items
    return [s.spec.server_claim_ref.name for s in servers if s.spec.server_claim_ref]
