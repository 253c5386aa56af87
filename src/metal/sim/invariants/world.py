"""Replays a history: at each entry, what the objects and machines were just before."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from metal.api.boot_window import BootWindow
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.common import ObjectRef
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server, State
from metal.sim.history import Change, Happening, History

K = TypeVar("K")
V = TypeVar("V")
Entry = Happening | Change
STARTS = frozenset({"On", "ForceOn", "GracefulRestart", "ForceRestart", "PowerCycle"})
"""Reset types that end with the power on."""
STOPS = frozenset({"ForceOff", "GracefulShutdown"})
"""Reset types that end with the power off."""
PASS = timedelta(seconds=60)
"""Longest that one pass of a controller over one object takes: its deadline. What it has read may be so old."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_TOLD = 25


class InvariantViolation(AssertionError):
    """Something that must never happen did. str() tells what, and what led to it."""


@dataclass
class World:
    """Objects and machines at one moment."""

    servers: dict[str, Server] = field(default_factory=dict)
    claims: dict[tuple[str, str], ServerClaim] = field(default_factory=dict)
    configs: dict[tuple[str, str], ServerBootConfiguration] = field(default_factory=dict)
    evidence: dict[str, SanitizationEvidence] = field(default_factory=dict)
    windows: dict[str, BootWindow] = field(default_factory=dict)
    """The last network boot of each machine, by its UUID; also of one whose Server is gone."""
    power: dict[str, str] = field(default_factory=dict)
    """Power by the machine's UUID, as it truly was."""

    def server(self, uuid: str) -> Server | None:
        """The Server of a machine."""
        return next((server for server in self.servers.values() if server.uuid == uuid), None)

    def claim(self, server: Server) -> ServerClaim | None:
        """The claim that holds a server, unless it is gone or going, or has another server.

        A leader that was cut off while it bound a claim may have its request arrive after its heir has bound that claim
        elsewhere. What it wrote then holds nothing, and is undone.
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
        """Go on by one entry."""
        if isinstance(entry, Happening):
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
    """Each entry with the world just before it."""
    world = World()
    for entry in history:
        yield entry, world
        world.apply(entry)


def became_available(entry: Entry, world: World) -> Server | None:
    """The server whose version this is, when it is the first one in which it is Available."""
    if not isinstance(entry, Change) or entry.kind != "Server" or entry.obj is None:
        return None
    server: Server = entry.obj
    old = world.servers.get(entry.name)
    if server.status.state != State.AVAILABLE or (old is not None and old.status.state == State.AVAILABLE):
        return None
    return server


def violation(history: History, entry: Entry, sentence: str, *, server: str = "", machine: str = "") -> Exception:
    """The exception: the sentence, and what led to it, of this server and machine alone."""
    told: list[str] = []
    for one in history:
        if _concerns(one, server, machine):
            told.append(_line(one))
        if one is entry:
            break
    story = "\n".join(f"  {line}" for line in told[-_TOLD:])
    return InvariantViolation(f"{entry.at:%H:%M:%S}: {sentence}\nwhat led to it:\n{story}")


def _concerns(entry: Entry, server: str, machine: str) -> bool:
    if isinstance(entry, Happening):
        return entry.machine == machine
    return entry.kind == "ServerClaim" or entry.name == server


def _line(entry: Entry) -> str:
    if isinstance(entry, Happening):
        return str(entry)
    status = getattr(entry.obj, "status", None)
    shown = getattr(status, "state", "") or getattr(status, "phase", "")
    waits = getattr(status, "waiting_for", "")
    name = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    what = "deleted" if entry.obj is None else f"{shown}{f' waits for {waits}' if waits else ''}"
    return f"{entry.at:%H:%M:%S.%f} {entry.kind} {name} {what}"
