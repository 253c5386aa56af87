"""A Server name belongs to one machine for ever, one Server acts on it, and each machine is served its own boot."""

import re

from metal.api.boot_window import Phase
from metal.api.server import Server, State
from metal.machine import tenancy
from metal.machine.identity import is_shared
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import Entry, replay, violation

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAY_COUNT = (200, 201, 500, 503)
"""Status codes after which a report may be stored: the API's answer may have been lost."""


def check_one_machine(history: History) -> None:
    """A Server name belongs to one machine, also after deletion, and enrolment makes no second Server of a machine.

    Servers that were applied by hand, or enrolled after the mainboard was replaced, may describe the same machine. At
    most one of them has a boot in progress, and at most one has a claim whose tenant it has recorded. A Server
    without a UUID describes no machine.
    """
    owners: dict[str, str] = {}
    replaced: set[str] = set()
    for entry, world in replay(history):
        if isinstance(entry, MachineEvent) and entry.what == "mainboard":
            replaced.add(entry.machine)
        if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is None:
            continue
        server: Server = entry.obj
        if server.uuid and owners.setdefault(entry.name, server.uuid) != server.uuid:
            text = f"server {entry.name} was {owners[entry.name]} and is {server.uuid} now"
            raise violation(history, entry, text, server=entry.name, machine=server.uuid)
        if is_shared(server.uuid):
            continue
        others = [one for one in world.servers.values() if one.uuid == server.uuid and one.metadata.name != entry.name]
        for other in others:
            if problem := _both(server, other, is_new=entry.name not in world.servers and server.uuid not in replaced):
                text = f"machine {server.uuid} has two servers, {other.metadata.name} and {entry.name}: {problem}"
                raise violation(history, entry, text, server=entry.name, machine=server.uuid)


def _both(server: Server, other: Server, *, is_new: bool) -> str:
    """What must not be true of two Servers of one machine at the same time."""
    if is_new and _is_enrolled(server) and _is_enrolled(other):
        return "both were enrolled"
    if _is_booting(server) and _is_booting(other):
        return "both have a network boot in progress"
    return "both have a tenant" if _has_tenant(server) and _has_tenant(other) else ""


def _has_tenant(server: Server) -> bool:
    return bool(tenancy.of(server).uid) and server.spec.server_claim_ref is not None


def _is_enrolled(server: Server) -> bool:
    return any(owner.kind == "BMC" and owner.controller for owner in server.metadata.owner_references)


def _is_booting(server: Server) -> bool:
    window = server.status.boot_window
    return window is not None and window.phase in (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)


def check_discovered(history: History) -> None:
    """A server goes from Discovery to Available only after a report that its machine sent in its present boot."""
    switched_on: set[str] = set()
    reported: set[str] = set()
    for entry, world in replay(history):
        if isinstance(entry, MachineEvent):
            _follow(entry, switched_on, reported)
            continue
        old = world.servers.get(entry.name) if entry.kind == "Server" else None
        if old is None or entry.obj is None or old.status.state != State.DISCOVERY:
            continue
        if entry.obj.status.state == State.AVAILABLE and entry.obj.uuid not in reported:
            text = f"server {entry.name} became Available without a report of its present boot"
            raise violation(history, entry, text, server=entry.name, machine=entry.obj.uuid)


def _follow(entry: MachineEvent, switched_on: set[str], reported: set[str]) -> None:
    if entry.what == "power" and entry.details["state"] == "On":
        switched_on.add(entry.machine)
        reported.discard(entry.machine)
    elif entry.what == "report" and entry.details["status"] in _MAY_COUNT and entry.machine in switched_on:
        reported.add(entry.machine)


def check_strangers(history: History) -> None:
    """A machine receives script, token and Ignition for its own UUID only."""
    for entry in history:
        if not isinstance(entry, MachineEvent) or entry.what != "fetch" or entry.details["status"] != 200:
            continue
        asked = _UUID.search(str(entry.details["path"]))
        if asked is not None and asked[0] != entry.machine:
            raise _served(history, entry, asked[0])


def _served(history: History, entry: Entry, asked: str) -> Exception:
    machine = entry.machine if isinstance(entry, MachineEvent) else ""
    return violation(history, entry, f"machine {machine} got what is served to {asked}", machine=machine)
