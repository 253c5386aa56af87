"""Steps that many tests of the Server begin with."""

import asyncio
import contextlib
from typing import Any

from metal.api.server import Server
from metal.kube.client.errors import AlreadyExists, NotFound
from tests.controllers.fakebmc import UUID
from tests.controllers.world import KINDS, World


async def claimed_and_booted(w: World, *, uuid: str = UUID, **claim: Any) -> Server:
    """A server whose claim c1 has booted and is at rest."""
    await w.add_server(uuid=uuid)
    await w.discover()
    await w.add_claim(**claim)
    await w.boot_claim()
    return await w.until_true(lambda s: not s.status.waiting_for)


async def claimed_and_booting(w: World) -> Server:
    """A server that is on, in the window of its claim's first boot; nothing has been fetched yet."""
    await w.add_server()
    await w.discover()
    await w.add_claim()
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await w.settle()
    await w.config_ready("c1", "default")
    return await w.until_true(lambda s: s.status.power_state == "On" and s.status.state == "Reserved")


async def operate(w: World, operation: str, name: str = "s1") -> None:
    """Annotate the server with an operation."""
    await w.client.patch(KINDS.server, name, {"metadata": {"annotations": {KINDS.key("operation"): operation}}})


async def reasons(w: World) -> set[str]:
    """Reasons of all Events so far, once they have been sent."""
    await asyncio.sleep(5)
    return {event.reason for event in await w.events()}


async def retry(w: World, name: str = "s1") -> None:
    """Annotate the server with operation=retry."""
    await operate(w, "retry", name)


async def maintain(w: World, on: bool = True, name: str = "m1", **spec: Any) -> None:
    """An enforced maintenance takes hold of the server, or lets it go."""
    if not on:
        with contextlib.suppress(NotFound):
            await w.client.delete(KINDS.maintenance, name, "default")
        return
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"policy": "Enforced", "serverRef": {"name": "s1"}, **spec},
    }
    with contextlib.suppress(AlreadyExists):
        await w.client.create(KINDS.maintenance, body)


def condition(server: Server, type: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    return next((c.status, c.reason) for c in server.status.conditions if c.type == type)
