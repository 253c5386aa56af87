"""Gives every system of the BMC its Server, under a number that belongs to the system's UUID for ever."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.bmc.protocols import SystemInfo
from metal.controllers.bmc.scope import BY_UUID, Scope
from metal.controllers.bmc.system_present import tell
from metal.kube.client.errors import AlreadyExists, Conflict
from metal.kube.controller.controller import Result
from metal.kube.meta.objects import Key
from metal.kube.meta.ownership import controller_reference
from metal.kube.meta.permissions import APPLY, Permission, blocks

MANAGER = "metal.ironcore.dev/controller-manager"
"""Field manager, that of the Go operator."""


@dataclass
class Outcome:
    """What became of the systems: sentences for what needs a person."""

    enrolled: int = 0
    reason: str = ""
    problems: list[str] = field(default_factory=list)

    def problem(self, reason: str, text: str) -> None:
        """Note a sentence; the first reason names them all."""
        self.reason = self.reason or reason
        self.problems.append(text)


async def enrol(scope: Scope) -> Result | None:
    """Create missing Servers, follow changes of path and labels, and say which systems have none or are gone."""
    outcome = Outcome()
    present: dict[str, SystemInfo] = {}
    for system in scope.systems:
        if _counts(system, present, outcome):
            present[system.uuid.lower()] = system
    for uuid, system in present.items():
        await _one(scope, uuid, system, outcome)
    for uuid, number in sorted(scope.status.systems.items()):
        if uuid not in present:
            await _gone(scope, uuid, number, outcome)
    _conclude(scope, outcome)
    return None


def server_name(bmc: str, number: int) -> str:
    """Name of the Server with this number."""
    return f"{bmc}-system-{number}"


def _counts(system: SystemInfo, present: Mapping[str, SystemInfo], outcome: Outcome) -> bool:
    """Whether the system becomes a Server: it boots, and has a UUID of its own."""
    if not system.bootable:
        return False
    if not system.uuid:
        outcome.problem("UUIDMissing", f"system {system.uri} reports no UUID, so that nothing can identify it")
        return False
    if system.uuid.lower() in present:
        text = f"systems {present[system.uuid.lower()].uri} and {system.uri} report the same UUID {system.uuid}"
        outcome.problem("UUIDNotUnique", text)
        return False
    return True


async def _one(scope: Scope, uuid: str, system: SystemInfo, outcome: Outcome) -> None:
    server = _existing(scope, uuid)
    if server is None:
        server = await _create(scope, uuid, system)
    elif not _is_ours(scope, server):
        text = f"Server {server.metadata.name} of another BMC has the UUID {uuid}: delete the one that is wrong"
        outcome.problem("UUIDNotUnique", text)
        return
    else:
        server = await _follow(scope, server, system)
        await tell(scope, server, True, "Listed", "the BMC lists the system again")
    await _label(scope, server)
    outcome.enrolled += 1


def _existing(scope: Scope, uuid: str) -> Server | None:
    """The Server of this system, ours before another's: whoever created it, there must not be two."""
    found = scope.deps.servers.by_index(BY_UUID, uuid)
    found.sort(key=lambda server: (not _is_ours(scope, server), server.metadata.name))
    server = found[0] if found else None
    if server is not None and _is_ours(scope, server) and uuid not in scope.status.systems:
        number = _number(scope, server.metadata.name)
        if number is not None:
            scope.set(systems={**scope.status.systems, uuid: number})
    return server


def _is_ours(scope: Scope, server: Server) -> bool:
    ref = server.spec.bmc_ref
    return ref is not None and ref.name == scope.name


async def _create(scope: Scope, uuid: str, system: SystemInfo) -> Server:
    number = scope.status.systems.get(uuid)
    if number is None:
        number = _free_number(scope)
        scope.set(systems={**scope.status.systems, uuid: number})
    name = server_name(scope.name, number)
    body = {
        "metadata": {"name": name, "ownerReferences": [controller_reference(scope.obj, scope.kind)]},
        "spec": {"systemUUID": uuid, "systemURI": system.uri, "bmcRef": {"name": scope.name}},
    }
    try:
        server = await scope.context.client.create(scope.context.kinds.server, body)
    except AlreadyExists as exc:
        raise Conflict(f"Server {name} exists and is not in the cache yet") from exc
    scope.deps.servers.observe(server)
    scope.event("Normal", "ServerCreated", f"created Server {name} for the system with UUID {uuid}")
    return server


def _free_number(scope: Scope) -> int:
    """The smallest number that was never given and whose name is not taken."""
    given = set(scope.status.systems.values())
    number = 0
    while number in given or scope.deps.servers.get(Key(server_name(scope.name, number))) is not None:
        number += 1
    return number


def _number(scope: Scope, name: str) -> int | None:
    digits = name.removeprefix(f"{scope.name}-system-")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


async def _follow(scope: Scope, server: Server, system: SystemInfo) -> Server:
    """Keep the path up to date: firmware updates change it."""
    if server.spec.system_uri == system.uri:
        return server
    patch: dict[str, Any] = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "spec": {"systemURI": system.uri},
    }
    server = await scope.context.client.patch(scope.context.kinds.server, server.metadata.name, patch)
    scope.deps.servers.observe(server)
    return server


async def _label(scope: Scope, server: Server) -> None:
    """Apply the BMC's labels, as one owner among others: a label removed from the BMC goes from the Server too."""
    name, labels = server.metadata.name, dict(scope.obj.metadata.labels)
    if scope.memo.labels.get(name, {}) == labels:
        return
    body = {"metadata": {"name": name, "labels": labels}}
    scope.deps.servers.observe(await scope.context.client.apply(scope.context.kinds.server, body, manager=MANAGER))
    scope.memo.labels[name] = labels


async def _gone(scope: Scope, uuid: str, number: int, outcome: Outcome) -> None:
    name = server_name(scope.name, number)
    server = scope.deps.servers.get(Key(name))
    if server is None:
        return  # deleted by a person who knows that the system is gone; its number stays taken
    text = f"the BMC no longer lists the system with UUID {uuid}: Server {name} is kept; delete it if that is right"
    outcome.problem("SystemGone", text)
    await tell(scope, server, False, "SystemGone", text)


def _conclude(scope: Scope, outcome: Outcome) -> None:
    if outcome.problems:
        scope.report("Enrolled", False, outcome.reason, "; ".join(outcome.problems))
        return
    count = "1 system has its Server" if outcome.enrolled == 1 else f"{outcome.enrolled} systems have their Servers"
    scope.condition("Enrolled", True, "Enrolled", count if outcome.enrolled else "the BMC lists no system that boots")


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What enrolment of systems does with the API."""
    return (
        Permission(kinds.server, APPLY, "gives each system its Server, with the BMC's labels and its present path"),
        blocks(kinds.bmc),
    )
