"""A Server that is restored as it was before its claim: the tenant's machine is left alone."""

import asyncio

import msgspec
import pytest

from metal.api.server import Server
from tests.controllers.world import KINDS, World, world
from tests.sim.plane import is_ready

pytestmark = pytest.mark.looptime


async def restore(w: World, old: Server) -> None:
    """Put metadata, spec and status as they were, as a backup tool does."""
    now, then = msgspec.to_builtins(await w.server()), msgspec.to_builtins(old)
    kept = {key: then["metadata"].get(key, {}) for key in ("labels", "annotations")}
    gone = {key: dict.fromkeys(now["metadata"].get(key, {})) | kept[key] for key in kept}
    spec = dict.fromkeys(now["spec"]) | then["spec"]
    await w.client.patch(KINDS.server, "s1", {"spec": spec, "metadata": gone})
    status = dict.fromkeys(now["status"]) | then["status"]
    await w.client.patch_status(KINDS.server, "s1", {"status": status})


@pytest.mark.behaviour(
    "ServerClaim", "A Server that is restored as it was before its claim is given back to the claim that has booted."
)
@pytest.mark.parametrize("while_down", [False, True])
@pytest.mark.parametrize("state", ["Initial", "Discovery", "Available"])
async def test_a_server_restored_as_it_was_before_its_claim_keeps_its_tenant(state: str, while_down: bool) -> None:
    """Status, annotations and spec.serverClaimRef are those of before: the tenant's machine runs on."""
    async with world(sanitization_policy="Clear") as w:
        await w.add_server()
        undiscovered, available = await w.until("Discovery"), await w.discover()
        old = available if state == "Available" else undiscovered
        old = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, state=state))
        await w.add_claim()
        await w.boot_claim()
        await w.until_claim(is_ready)
        w.bmc.calls.clear()
        if while_down:
            await w.runtime.stop(grace=0.0)
        await restore(w, old)
        if while_down:
            await w.restart()
        await w.until("Reserved")
        await asyncio.sleep(900)
        claim, server = await w.claim(), await w.server()
    assert (server.status.state, claim.status.phase, w.bmc.writes()) == ("Reserved", "Bound", [])
