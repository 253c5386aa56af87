"""Replays a history: each entry with the objects and machines as they were just before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from metal.api.boot_window import BootWindow
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.common import ObjectRef
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server, State
from metal.machine.charge import in_charge
from metal.machine.uuids import spellings
from metal.sim.history import History, MachineEvent, ObjectChange

K = TypeVar("K")
V = TypeVar("V")
Entry = MachineEvent | ObjectChange
STARTS = frozenset({"On", "ForceOn", "GracefulRestart", "ForceRestart", "PowerCycle"})
"""Reset types that end with the power on."""
STOPS = frozenset({"ForceOff", "GracefulShutdown"})
"""Reset types that end with the power off."""
PASS = timedelta(seconds=60)
"""Deadline of one reconcile, and so the greatest age of what it has read."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_SHOWN = 25


class InvariantViolation(AssertionError):
    """An invariant does not hold. str() has the violation and the entries that led to it."""


@dataclass
class World:
    """Objects and machines at one moment."""

    servers: dict[str, Server] = field(default_factory=dict)
    claims: dict[tuple[str, str], ServerClaim] = field(default_factory=dict)
    configs: dict[tuple[str, str], ServerBootConfiguration] = field(default_factory=dict)
    evidence: dict[str, SanitizationEvidence] = field(default_factory=dict)
    windows: dict[str, BootWindow] = field(default_factory=dict)
    """The last boot window of each machine by UUID, also after its Server was deleted."""
    power: dict[str, str] = field(default_factory=dict)
    """The true power state of each machine by UUID."""

    def server(self, uuid: str) -> Server | None:
        """The Server of a machine; of several the one in charge, if there is one."""
        found = [server for server in self.servers.values() if server.uuid == uuid]
        return in_charge(found) if found else None

    def claim(self, server: Server) -> ServerClaim | None:
        """The claim that holds a server, unless it is deleted or being deleted, or is bound to another server.

        A request of a former leader may arrive after its successor has bound the claim to another server. Such a
        claimRef has no effect and is removed.
        """
        ref = server.spec.server_claim_ref
        claim = self.claims.get((ref.namespace, ref.name)) if ref else None
        if claim is None or claim.metadata.deletion_timestamp:
            return None
        named = claim.spec.server_ref
        return claim if named is None or named.name == server.metadata.name else None

    def config(self, ref: ObjectRef | None) -> ServerBootConfiguration | None:
        """The boot configuration behind a reference."""
        return self.configs.get((ref.namespace, ref.name)) if ref else None

    def apply(self, entry: Entry) -> None:
        """Apply one entry."""
        if isinstance(entry, MachineEvent):
            if entry.what == "power":
                self.power[entry.machine] = str(entry.details["state"])
            return
        key = (entry.namespace, entry.name)
        if entry.kind == "Server":
            _put(self.servers, entry.name, entry.obj)
            if entry.obj is not None and entry.obj.status.boot_window is not None:
                self.windows[entry.obj.uuid] = entry.obj.status.boot_window
        elif entry.kind == "ServerClaim":
            _put(self.claims, key, entry.obj)
        elif entry.kind == "ServerBootConfiguration":
            _put(self.configs, key, entry.obj)
        elif entry.kind == "SanitizationEvidence":
            _put(self.evidence, entry.name, entry.obj)


def _put(table: dict[K, V], key: K, obj: V | None) -> None:
    if obj is None:
        table.pop(key, None)
    else:
        table[key] = obj


def replay(history: History) -> Iterator[tuple[Entry, World]]:
    """Each entry with the world just before it; a machine has one UUID here for ever.

    UUIDs with reversed bytes, and those of a replaced mainboard, are replaced by the machine's first one. The world is
    updated in place after each step.
    """
    world, first = World(), _first_uuids(history)
    for raw in history:
        entry = _of_machine(raw, first)
        yield entry, world
        world.apply(entry)


def _first_uuids(history: History) -> dict[str, str]:
    """The first UUID of each machine by all others that describe it."""
    found: dict[str, str] = {}
    for machine in {entry.machine: None for entry in history if isinstance(entry, MachineEvent)}:
        found[_swapped(machine)] = machine
    for entry in history:
        if isinstance(entry, MachineEvent) and entry.what == "mainboard":
            new, old = str(entry.details["becomes"]), entry.machine
            found[new] = found[_swapped(new)] = found.get(old, old)
    return {other: uuid for other, uuid in found.items() if other != uuid}


def _swapped(machine: str) -> str:
    return spellings(machine)[-1]


def _of_machine(entry: Entry, first: dict[str, str]) -> Entry:
    """The entry under the first UUID of its machine."""
    if isinstance(entry, MachineEvent):
        known = first.get(entry.machine)
        return entry if known is None else replace(entry, machine=known)
    if entry.kind != "Server" or entry.obj is None or (known := first.get(entry.obj.uuid)) is None:
        return entry
    spec = msgspec.structs.replace(entry.obj.spec, system_uuid=known, uuid="")
    return replace(entry, obj=msgspec.structs.replace(entry.obj, spec=spec))


def became_available(entry: Entry, world: World) -> Server | None:
    """The server of this entry, when the entry is its transition to Available."""
    if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is None:
        return None
    server: Server = entry.obj
    old = world.servers.get(entry.name)
    if server.status.state != State.AVAILABLE or (old is not None and old.status.state == State.AVAILABLE):
        return None
    return server


def violation(history: History, entry: Entry, sentence: str, *, server: str = "", machine: str = "") -> Exception:
    """The exception: the sentence, and the entries of this server and machine that led to it."""
    lines: list[str] = []
    for one in history:
        if _concerns(one, server, machine):
            lines.append(_line(one))
        if one is entry:
            break
    story = "\n".join(f"  {line}" for line in lines[-_SHOWN:])
    return InvariantViolation(f"{entry.at:%H:%M:%S}: {sentence}\npreceding entries:\n{story}")


def _concerns(entry: Entry, server: str, machine: str) -> bool:
    if isinstance(entry, MachineEvent):
        return entry.machine == machine
    return entry.kind == "ServerClaim" or entry.name == server


def _line(entry: Entry) -> str:
    if isinstance(entry, MachineEvent):
        return str(entry)
    status = getattr(entry.obj, "status", None)
    shown = getattr(status, "state", "") or getattr(status, "phase", "")
    waits = getattr(status, "waiting_for", "")
    name = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    what = "deleted" if entry.obj is None else f"{shown}{f' waits for {waits}' if waits else ''}"
    return f"{entry.at:%H:%M:%S.%f} {entry.kind} {name} {what}"
