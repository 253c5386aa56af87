"""A tenant's data is erased before a server becomes Available, unless the policy or an administrator decided otherwise.

"Dirty" means that a tenant's system has run since the last erasure. A machine stays dirty when its Server is deleted.
"""

from metal.api.boot_window import Purpose
from metal.api.sanitization import EvidencePhase, Result, SanitizationEvidence
from metal.api.server import Server, State
from metal.machine import tenancy
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import Entry, World, became_available, replay, violation

_SYSTEMS = ("tenant", "disk")
_ERASED = ("Clear", "Purge")


def check_sanitized(history: History) -> None:
    """A machine that ran a tenant's system becomes Available only after a Cleanup with evidence, or policy None.

    The evidence is of this server, signed, and every drive in it was erased.
    """
    dirty: set[str] = set()
    cleaned: set[str] = set()
    for entry, world in replay(history):
        if isinstance(entry, MachineEvent) and _is_tenants(entry, world):
            dirty.add(entry.machine)
            cleaned.discard(entry.machine)
        gone = _deleted(entry, world)
        if gone is not None and (_was_left(gone) or not _problem(gone, world)):
            dirty.discard(gone.uuid)
        if isinstance(entry, ObjectChange) and entry.kind == "Server" and entry.obj is not None:
            if entry.obj.status.state == State.CLEANUP:
                cleaned.add(entry.obj.uuid)
            server = became_available(entry, world)
            if server is not None and server.uuid in dirty:
                problem = "without a Cleanup" if server.uuid not in cleaned else _problem(server, world)
                _require(history, entry, server, problem)
                dirty.discard(server.uuid)


def _is_tenants(entry: MachineEvent, world: World) -> bool:
    """True for a system that starts for a claim: from its image, or from the disk while a claim has the server.

    A maintenance's system is none, nor is a system on the disk of a free server.
    """
    if entry.what != "os" or entry.details.get("kind") not in _SYSTEMS:
        return False
    server, window = world.server(entry.machine), world.windows.get(entry.machine)
    if window is not None and window.purpose == Purpose.MAINTENANCE:
        return False
    if entry.details["kind"] == "tenant":
        return True
    return server is not None and bool(tenancy.of(server).uid or server.spec.server_claim_ref)


def _deleted(entry: Entry, world: World) -> Server | None:
    """The Server whose object this entry deletes."""
    if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is not None:
        return None
    return world.servers.get(entry.name)


def _was_left(server: Server) -> bool:
    """True when data may remain on its disks by decision."""
    return tenancy.is_data_kept(tenancy.of(server))


def _problem(server: Server, world: World) -> str:
    became = tenancy.of(server).sanitization
    if became in tenancy.DATA_KEPT:
        return ""
    if became not in _ERASED:
        return f"without evidence of sanitization or the policy None (status.tenancy.sanitization is {became!r})"
    evidence = world.evidence.get(server.status.sanitization_evidence)
    return "without the evidence that it names" if evidence is None else _evidence_problem(evidence, server)


def _evidence_problem(evidence: SanitizationEvidence, server: Server) -> str:
    status, name = evidence.status, evidence.metadata.name
    if evidence.spec.server_ref.name != server.metadata.name or evidence.spec.system_uuid != server.uuid:
        return f"with the evidence {name} of another server"
    if status.phase != EvidencePhase.SUCCEEDED or status.owed:
        return f"although the evidence {name} is {status.phase or 'empty'}"
    if any(drive.result != Result.SUCCEEDED for drive in status.drives):
        return f"although the evidence {name} has a drive that was not erased"
    return "" if status.signature is not None else f"although the evidence {name} is not signed"


def check_disks_are_clean(history: History) -> None:
    """A machine that becomes Available has no tenant data on its disks, unless data may remain by decision."""
    marked: set[str] = set()
    for entry, world in replay(history):
        if isinstance(entry, MachineEvent) and entry.details.get("kind") == "tenant" and _is_tenants(entry, world):
            marked.add(entry.machine)
        if isinstance(entry, MachineEvent) and entry.what == "disk" and entry.details.get("first"):
            marked.discard(entry.machine)
        gone = _deleted(entry, world)
        if gone is not None and _was_left(gone):
            marked.discard(gone.uuid)
        server = became_available(entry, world)
        if server is not None and server.uuid in marked:
            kept = tenancy.of(server).sanitization in tenancy.DATA_KEPT
            _require(history, entry, server, "" if kept else "with a tenant's data on its disks")
            marked.discard(server.uuid)


def _require(history: History, entry: Entry, server: Server, problem: str) -> None:
    if problem:
        name = server.metadata.name
        sentence = f"server {name} became Available after a tenant {problem}"
        raise violation(history, entry, sentence, server=name, machine=server.uuid)
