"""Replays a history: each entry with the objects and machines as they were just before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from metal.api.boot_window import BootWindow
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.common import ObjectRef
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server, State
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
        """The Server of a machine."""
        return next((server for server in self.servers.values() if server.uuid == uuid), None)

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
    """Each entry with the world just before it.

    The world is updated in place after each step.
    """
    world = World()
    for entry in history:
        yield entry, world
        world.apply(entry)


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
