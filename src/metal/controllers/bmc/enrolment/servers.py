"""Creates a Server for each system of the BMC, and updates the path and the labels of known ones.

A system is identified by its UUID, in either byte order; where that is the UUID of many machines, by manufacturer and
serial number (`metal.machine.identity`). The first time a system is seen it gets a number, which is written to
`status.systems` and names the Server, `<bmc>-system-<number>`; the number is never given to another system, so a claim
that names a Server never gets another machine. A system that nothing identifies gets no Server.

A machine has one Server. Before one is created, the Lease of the machine is acquired (`metal.machine.system_lease`), so
that of several BMC objects and managers only one creates it. A Server of this BMC that has never been started and is
not in charge of its machine is deleted again.

A new system in the place of one that is gone is not enrolled while the Server of that one has a tenant: its mainboard
may have been replaced, and the discovery would interrupt the tenant. The Server of a system that the BMC no longer
lists is kept with the condition SystemPresent=False: only an administrator knows whether the machine was removed. The
condition Enrolled summarizes all systems.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

from metal.api.kinds import Kinds
from metal.api.names import BMC_LABELS
from metal.api.server import Server
from metal.bmc.systems import SystemInfo
from metal.controllers.bmc.enrolment.system_present import report_present
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.indexes import BY_BMC, BY_IDENTITY
from metal.kube.client.errors import AlreadyExists, Conflict, NotFound
from metal.kube.controller.controller import Result
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import Key
from metal.kube.meta.ownership import controller_of, controller_reference
from metal.kube.meta.permissions import APPLY, Permission, blocks
from metal.machine.charge import has_tenancy
from metal.machine.identity import Identity, compare, identity_of, identity_of_system, is_shared

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


@dataclass(frozen=True)
class Shown:
    """A system that the BMC lists, and what identifies its machine."""

    system: SystemInfo
    identity: Identity

    @property
    def known_as(self) -> str:
        """Its key in status.systems: the UUID as reported, or the key of its serial number."""
        return self.system.uuid.lower() if self.identity.uuid else self.identity.key


async def reconcile_servers(scope: Scope) -> Result | None:
    """Create missing Servers, update path and labels, and report systems that have no Server or have disappeared."""
    outcome = Outcome()
    present: dict[str, Shown] = {}
    for system in scope.systems:
        shown = Shown(system, identity_of_system(system.uuid, system.manufacturer, system.serial_number))
        if _is_identified(shown, present, outcome):
            present[shown.identity.key] = shown
    for shown in present.values():
        await _reconcile_system(scope, shown, present, outcome)
    for server in _gone(scope, present):
        await _report_missing(scope, server, outcome)
    _report(scope, outcome)
    return None


def server_name(bmc: str, number: int) -> str:
    """Name of the Server with this number."""
    return f"{bmc}-system-{number}"


def _key_of(known_as: str) -> str:
    """The key of an identity, of a key in status.systems."""
    return identity_of_system(known_as, "", "").key or known_as


def _is_identified(shown: Shown, present: Mapping[str, Shown], outcome: Outcome) -> bool:
    """Whether the system gets a Server: it can boot, and has an identity of its own."""
    system, key = shown.system, shown.identity.key
    if not system.bootable:
        return False
    if not system.uuid:
        outcome.problem("UUIDMissing", f"system {system.uri} reports no UUID and cannot be identified")
        return False
    if not key and is_shared(system.uuid):
        outcome.problem(
            "IdentityAmbiguous",
            f"system {system.uri} reports the UUID {system.uuid}, which many machines have, and no serial number of "
            "its own: set a UUID or a serial number in its firmware, or create its Server with the annotation "
            "machine-id",
        )
        return False
    if not key:
        outcome.problem("UUIDMissing", f"system {system.uri} reports {system.uuid!r}, which is no UUID")
        return False
    if key in present:
        text = f"systems {present[key].system.uri} and {system.uri} report the same UUID {system.uuid}"
        outcome.problem("UUIDNotUnique", text)
        return False
    return True


async def _reconcile_system(scope: Scope, shown: Shown, present: Mapping[str, Shown], outcome: Outcome) -> None:
    server = _existing(scope, shown)
    if server is None:
        replaced = _replaced(scope, shown, present)
        if replaced is not None:
            outcome.problem("SystemReplaced", _replaced_text(scope, shown, replaced))
            return
        server = await _create(scope, shown)
    elif _is_ours(scope, server):
        server = await _update(scope, server, shown.system)
        await report_present(scope, server, True, "Listed", "the BMC lists the system again")
    if not _is_ours(scope, server):
        outcome.problem("DuplicateSystem", _duplicate_text(scope, shown, server))
        return
    if await _remove_unstarted(scope, server):
        outcome.problem("DuplicateSystem", f"Server {server.metadata.name} was a duplicate and is removed")
        return
    await _apply_labels(scope, server)
    outcome.enrolled += 1


def _existing(scope: Scope, shown: Shown) -> Server | None:
    """The Server of this system, preferably one of this BMC that acts on the machine."""
    found = [
        server for server in scope.deps.servers.by_index(BY_IDENTITY, shown.identity.key)
        if compare(shown.identity, identity_of(server, scope.context.kinds)).exclusive
    ]  # fmt: skip
    found.sort(key=lambda server: (not _is_ours(scope, server), _is_duplicate(server), server.metadata.name))
    server = found[0] if found else None
    if server is not None and _is_ours(scope, server) and _number_of(scope, shown) is None:
        number = _number(scope, server.metadata.name)
        if number is not None:
            scope.set(systems={**scope.status.systems, shown.known_as: number})
    return server


def _is_ours(scope: Scope, server: Server) -> bool:
    ref = server.spec.bmc_ref
    return ref is not None and ref.name == scope.name


def _is_duplicate(server: Server) -> bool:
    """Whether another Server acts on the machine of this one, by its own condition."""
    known = find(server.status.conditions, "DuplicateSystem")
    return known is not None and known.status == "True" and known.reason == "OtherServerInCharge"


def _duplicate_text(scope: Scope, shown: Shown, server: Server) -> str:
    name, ref = server.metadata.name, server.spec.bmc_ref
    other = f"of BMC {ref.name}" if ref is not None else "with spec.bmc"
    return (
        f"system {shown.system.uri} with the UUID {shown.system.uuid} is the machine of Server {name} {other}; no "
        f"second Server is created. If the BMC was replaced, set spec.bmcRef.name of Server {name} to {scope.name}, "
        f"which keeps its claim; if two BMC objects describe one BMC, delete BMC {scope.name}; if these are two "
        "machines, set different UUIDs in their firmware"
    )


def _replaced(scope: Scope, shown: Shown, present: Mapping[str, Shown]) -> Server | None:
    """The Server with a tenancy whose system is gone and in whose place this new one is, if there is one.

    It is in its place when it has the same path, or when the BMC lists no other system.
    """
    alone = len(present) == 1
    return next(
        (
            gone for gone in _gone(scope, present)
            if has_tenancy(gone) and (alone or gone.spec.system_uri == shown.system.uri)
        ),
        None,
    )  # fmt: skip


def _gone(scope: Scope, present: Mapping[str, Shown]) -> list[Server]:
    """The Servers of this BMC whose system it does not list."""
    found = scope.deps.servers.by_index(BY_BMC, scope.name)
    keys = {server.metadata.name: identity_of(server, scope.context.kinds).key for server in found}
    gone = [server for server in found if keys[server.metadata.name] and keys[server.metadata.name] not in present]
    return sorted(gone, key=lambda server: server.metadata.name)


def _replaced_text(scope: Scope, shown: Shown, gone: Server) -> str:
    name, uuid = gone.metadata.name, shown.system.uuid
    return (
        f"system {shown.system.uri} has the UUID {uuid}, in the place of Server {name} with the UUID {gone.uuid}, "
        "which has a tenant; it is neither enrolled nor switched. If its mainboard was replaced, set spec.systemUUID "
        f"of Server {name} to {uuid}, which keeps its claim; if the address of BMC {scope.name} leads to another "
        "machine, correct the address"
    )


async def _create(scope: Scope, shown: Shown) -> Server:
    """The Server of a new system; that of another BMC when it has been faster."""
    number = _number_of(scope, shown)
    if number is None:
        number = _free_number(scope)
        scope.set(systems={**scope.status.systems, shown.known_as: number})
    name = server_name(scope.name, number)
    other = await scope.deps.leases.acquire(shown.identity.key, name)
    if other is not None:
        scope.deps.servers.observe(other)
        return other
    body = {
        "metadata": _metadata(scope, name),
        "spec": {
            "systemUUID": shown.system.uuid.lower(), "systemURI": shown.system.uri, "bmcRef": {"name": scope.name},
        },
    }  # fmt: skip
    try:
        server = await scope.context.client.create(scope.context.kinds.server, body)
    except AlreadyExists as exc:
        raise Conflict(f"Server {name} exists and is not in the cache yet") from exc
    scope.deps.servers.observe(server)
    scope.event(
        "Normal", "ServerCreated", f"created Server {name} for the system with UUID {shown.system.uuid.lower()}"
    )
    return server


async def _remove_unstarted(scope: Scope, server: Server) -> bool:
    """Delete a Server that enrolment made and that was never started, when another one acts on its machine."""
    owner = controller_of(server)
    is_made_here = owner is not None and owner.uid == scope.obj.metadata.uid
    if not is_made_here or server.status.state or has_tenancy(server) or not _is_duplicate(server):
        return False
    meta = server.metadata
    try:
        await scope.context.client.delete(
            scope.context.kinds.server, meta.name, uid=meta.uid, resource_version=meta.resource_version
        )
    except NotFound:
        return True
    scope.event("Normal", "DuplicateRemoved", f"removed Server {meta.name}: another Server describes its machine")
    return True


def _number_of(scope: Scope, shown: Shown) -> int | None:
    """The number that this system was given, under either byte order of its UUID."""
    key = shown.identity.key
    return next((number for known, number in scope.status.systems.items() if _key_of(known) == key), None)


def _metadata(scope: Scope, name: str) -> dict[str, Any]:
    """Metadata of a new Server, with its finalizer, which saves a write; of a BMC without labels none are applied."""
    metadata: dict[str, Any] = {
        "name": name, "ownerReferences": [controller_reference(scope.obj, scope.kind)],
        "finalizers": [scope.context.kinds.key("server")],
    }  # fmt: skip
    if not scope.obj.metadata.labels:
        metadata["annotations"] = {_digest_key(scope): _digest({})}
    return metadata


def _free_number(scope: Scope) -> int:
    """The smallest number that no system has and whose name is free."""
    given = set(scope.status.systems.values())
    number = 0
    while number in given or scope.deps.servers.get(Key(server_name(scope.name, number))) is not None:
        number += 1
    return number


def _number(scope: Scope, name: str) -> int | None:
    digits = name.removeprefix(f"{scope.name}-system-")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


async def _update(scope: Scope, server: Server, system: SystemInfo) -> Server:
    """Update the path of the system, which firmware updates can change, and the owner of a Server that was moved here.

    A Server that is still owned by the BMC that this one replaced would be deleted with it.
    """
    changes: dict[str, Any] = {}
    owner = controller_of(server)
    if server.spec.system_uri != system.uri:
        changes["spec"] = {"systemURI": system.uri}
    if owner is not None and owner.kind == scope.kind.kind and owner.uid != scope.obj.metadata.uid:
        changes["metadata"] = {"ownerReferences": [controller_reference(scope.obj, scope.kind)]}
    if not changes:
        return server
    metadata = {**changes.get("metadata", {}), "resourceVersion": server.metadata.resource_version}
    patch = {**changes, "metadata": metadata}
    server = await scope.context.client.patch(scope.context.kinds.server, server.metadata.name, patch)
    scope.deps.servers.observe(server)
    return server


async def _apply_labels(scope: Scope, server: Server) -> None:
    """Apply the BMC's labels server-side: a label removed from the BMC is removed from the Server, others stay.

    The digest of the labels that were applied last is on the Server itself, so that a label that was removed while no
    manager ran is removed too, and nothing is applied while nothing changed.
    """
    labels, meta = scope.obj.metadata.labels, server.metadata
    digest = _digest(labels)
    if meta.annotations.get(_digest_key(scope)) == digest and labels.items() <= meta.labels.items():
        return
    metadata = {"name": meta.name, "labels": dict(labels), "annotations": {_digest_key(scope): digest}}
    fresh = await scope.context.client.apply(scope.context.kinds.server, {"metadata": metadata}, manager=MANAGER)
    scope.deps.servers.observe(fresh)


def _digest_key(scope: Scope) -> str:
    return scope.context.kinds.key(BMC_LABELS)


def _digest(labels: Mapping[str, str]) -> str:
    return blake2b(msgspec.json.encode(dict(labels), order="sorted"), digest_size=8).hexdigest()


async def _report_missing(scope: Scope, server: Server, outcome: Outcome) -> None:
    name = server.metadata.name
    way_out = (
        f"it has a tenant: correct the address of BMC {scope.name}, or spec.systemUUID or spec.bmcRef of Server "
        f"{name}; its claim is kept"
        if has_tenancy(server)
        else "delete it if the system was removed"
    )
    text = f"the BMC no longer lists the system with UUID {server.uuid}; Server {name} is kept: {way_out}"
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
