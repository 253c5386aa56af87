"""What users do to the servers of a plane, step by step."""

import asyncio
from collections.abc import Callable
from typing import Any

from metal.api.server import Server
from tests.sim.plane import KINDS, Plane

NEEDED, APPROVED = KINDS.key("maintenance-needed"), KINDS.key("maintenance-approved")
TEMPLATE = {"name": "m1", "spec": {"serverRef": {"name": "x"}, "image": "images.sim/demo:latest"}}
"""What a maintenance boots."""


async def operate(world: Plane, name: str, operation: str) -> None:
    """Annotate a server with an operation."""
    await world.client.patch(KINDS.server, name, {"metadata": {"annotations": {KINDS.key("operation"): operation}}})


async def maintain(world: Plane, server: str, name: str = "m1", **spec: Any) -> None:
    """A ServerMaintenance in namespace default."""
    body = {
        "metadata": {"name": name, "namespace": "default", "annotations": {KINDS.key("reason"): "new DIMM"}},
        "spec": {"serverRef": {"name": server}, **spec},
    }
    await world.client.create(KINDS.maintenance, body)


async def approve(world: Plane, claim: str = "c1") -> None:
    """Approve as the owner of a claim, once requested."""
    await world.until_claim(lambda found: NEEDED in found.metadata.labels, claim)
    await world.client.patch(KINDS.claim, claim, {"metadata": {"labels": {APPROVED: "true"}}}, "default")


async def until_server(world: Plane, name: str, check: Callable[[Server], bool], *, within: float = 900.0) -> Server:
    """Wait in virtual time until the check holds for one server."""
    await world.until(
        lambda servers: any(s.metadata.name == name and check(s) for s in servers), within=within, what=name
    )
    return await world.client.get(KINDS.server, name)


async def rule(world: Plane, name: str = "network") -> None:
    """A readiness rule for all servers."""
    spec = {
        "conditions": [{"type": "NetworkReady", "requiredStatus": "True"}],
        "enforcementMode": "Continuous",
        "taint": {"key": "example.com/network"},
    }
    await world.client.create(KINDS.readiness_rule, {"metadata": {"name": name}, "spec": spec})
    await world.until(lambda servers: all(s.spec.taints for s in servers))
    await world.client.delete(KINDS.readiness_rule, name)
    await world.until(lambda servers: not any(s.spec.taints for s in servers))
    await asyncio.sleep(1)
