"""Creates a Server for each system of the BMC, and updates the path and the labels of known ones.

A system is identified by its UUID. The first time a UUID is seen it gets a number, which is written to
`status.systems` and names the Server, `<bmc>-system-<number>`; the number is never given to another UUID, so a claim
that names a Server never gets another machine. A system without a UUID, or with one that another system has, gets no
Server. The Server of a system that the BMC no longer lists is kept with the condition SystemPresent=False: only an
administrator knows whether the machine was removed. The condition Enrolled summarizes all systems.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.bmc.systems import SystemInfo
from metal.controllers.bmc.scope import BY_UUID, Scope
from metal.controllers.bmc.system_present import report_present
from metal.kube.client.errors import AlreadyExists, Conflict
from metal.kube.controller.controller import Result
from metal.kube.meta.objects import Key
from metal.kube.meta.ownership import controller_reference
from metal.kube.meta.permissions import APPLY, Permission, blocks

MANAGER = "metal.ironcore.dev/controller-manager"
"""Field manager, the same as the Go operator's."""


@dataclass
class Outcome:
    """Result for all systems: how many have a Server, and a sentence for each problem."""

    enrolled: int = 0
    reason: str = ""
    problems: list[str] = field(default_factory=list)

    def problem(self, reason: str, text: str) -> None:
        """Add a sentence; the reason of the first problem becomes that of the condition."""
        self.reason = self.reason or reason
        self.problems.append(text)


async def reconcile_servers(scope: Scope) -> Result | None:
    """Create missing Servers, update path and labels, and report systems that have no Server or have disappeared."""
    outcome = Outcome()
    present: dict[str, SystemInfo] = {}
    for system in scope.systems:
        if _is_identified(system, present, outcome):
            present[system.uuid.lower()] = system
    for uuid, system in present.items():
        await _reconcile_system(scope, uuid, system, outcome)
    for uuid, number in sorted(scope.status.systems.items()):
        if uuid not in present:
            await _report_missing(scope, uuid, number, outcome)
    _report(scope, outcome)
    return None


def server_name(bmc: str, number: int) -> str:
    """Name of the Server with this number."""
    return f"{bmc}-system-{number}"


def _is_identified(system: SystemInfo, present: Mapping[str, SystemInfo], outcome: Outcome) -> bool:
    """Whether the system gets a Server: it can boot, and has a UUID of its own."""
    if not system.bootable:
        return False
    if not system.uuid:
        outcome.problem("UUIDMissing", f"system {system.uri} reports no UUID and cannot be identified")
        return False
    if system.uuid.lower() in present:
        text = f"systems {present[system.uuid.lower()].uri} and {system.uri} report the same UUID {system.uuid}"
        outcome.problem("UUIDNotUnique", text)
        return False
    return True


async def _reconcile_system(scope: Scope, uuid: str, system: SystemInfo, outcome: Outcome) -> None:
    server = _existing(scope, uuid)
    if server is None:
        server = await _create(scope, uuid, system)
    elif not _is_ours(scope, server):
        text = f"Server {server.metadata.name} of another BMC has the same UUID {uuid}: delete the wrong Server"
        outcome.problem("UUIDNotUnique", text)
        return
    else:
        server = await _update_path(scope, server, system)
        await report_present(scope, server, True, "Listed", "the BMC lists the system again")
    await _apply_labels(scope, server)
    outcome.enrolled += 1


def _existing(scope: Scope, uuid: str) -> Server | None:
    """The Server of this system, preferably one of this BMC: there must be only one for a UUID."""
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
    """The smallest number that no UUID has and whose name is free."""
    given = set(scope.status.systems.values())
    number = 0
    while number in given or scope.deps.servers.get(Key(server_name(scope.name, number))) is not None:
        number += 1
    return number


def _number(scope: Scope, name: str) -> int | None:
    digits = name.removeprefix(f"{scope.name}-system-")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


async def _update_path(scope: Scope, server: Server, system: SystemInfo) -> Server:
    """Update the path of the system, which firmware updates can change."""
    if server.spec.system_uri == system.uri:
        return server
    patch: dict[str, Any] = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "spec": {"systemURI": system.uri},
    }
    server = await scope.context.client.patch(scope.context.kinds.server, server.metadata.name, patch)
    scope.deps.servers.observe(server)
    return server


async def _apply_labels(scope: Scope, server: Server) -> None:
    """Apply the BMC's labels server-side: a label removed from the BMC is removed from the Server, others stay."""
    name, labels = server.metadata.name, dict(scope.obj.metadata.labels)
    if scope.memo.labels.get(name, {}) == labels:
        return
    body = {"metadata": {"name": name, "labels": labels}}
    scope.deps.servers.observe(await scope.context.client.apply(scope.context.kinds.server, body, manager=MANAGER))
    scope.memo.labels[name] = labels


async def _report_missing(scope: Scope, uuid: str, number: int, outcome: Outcome) -> None:
    name = server_name(scope.name, number)
    server = scope.deps.servers.get(Key(name))
    if server is None:
        return  # an administrator deleted it; the number stays reserved
    text = (
        f"the BMC no longer lists the system with UUID {uuid}; Server {name} is kept: delete it if the system was "
        "removed"
    )
    outcome.problem("SystemGone", text)
    await report_present(scope, server, False, "SystemGone", text)


def _report(scope: Scope, outcome: Outcome) -> None:
    if outcome.problems:
        scope.report("Enrolled", False, outcome.reason, "; ".join(outcome.problems))
        return
    count = "1 system has a Server" if outcome.enrolled == 1 else f"{outcome.enrolled} systems have Servers"
    scope.condition("Enrolled", True, "Enrolled", count if outcome.enrolled else "the BMC lists no bootable system")


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (
        Permission(kinds.server, APPLY, "creates a Server for each system, and updates its labels and path"),
        blocks(kinds.bmc),
    )
