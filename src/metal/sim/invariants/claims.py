"""A claimed server belongs to one claim: nothing else holds it, powers it, or boots another system on it."""

from datetime import datetime

from metal.api.boot_window import BootWindow, Purpose
from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.machine import tenancy
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import LONG_AGO, PASS, STARTS, STOPS, Entry, World, replay, violation


def check_one_claim(history: History) -> None:
    """A server is held by one claim at a time, and a claim holds one server."""
    for entry, world in replay(history):
        if isinstance(entry, ObjectChange) and entry.kind == "Server" and entry.obj is not None:
            problem = _handed_over(world.servers.get(entry.name), entry.obj) or _second_server(world, entry.obj)
            if problem:
                raise violation(history, entry, problem, server=entry.name, machine=entry.obj.uuid)


def _handed_over(old: Server | None, new: Server) -> str:
    if old is None:
        return ""
    before, after = tenancy.of(old).uid, tenancy.of(new).uid
    if before and after and before != after:
        return f"server {new.metadata.name} went from claim {before} to claim {after} without being cleaned up"
    held, holds = old.spec.server_claim_ref, new.spec.server_claim_ref
    if held is not None and holds is not None and held != holds:
        return f"server {new.metadata.name} went from claim {held.name} to claim {holds.name} at once"
    return ""


def _second_server(world: World, new: Server) -> str:
    ref, name = new.spec.server_claim_ref, new.metadata.name
    if ref is None or new.status.state == State.CLEANUP:
        return ""
    known = world.claims.get((ref.namespace, ref.name))
    if known is not None and known.spec.server_ref is not None:
        return ""  # it has the server that it names
    for other in world.servers.values():
        same = other.spec.server_claim_ref == ref and tenancy.of(other).uid in ("", tenancy.of(new).uid)
        if same and other.metadata.name != name and other.status.state != State.CLEANUP:
            return f"claim {ref.namespace}/{ref.name} holds two servers, {other.metadata.name} and {name}"
    return ""


def check_untouched(history: History) -> None:
    """A claimed server is powered and imaged only by its claim, its Cleanup or a maintenance.

    A reconcile that began before the claim changed may still act until its deadline.
    """
    changed: dict[tuple[str, str], datetime] = {}
    for entry, world in replay(history):
        if isinstance(entry, ObjectChange):
            if entry.kind == "ServerClaim":
                changed[entry.namespace, entry.name] = entry.at
            continue
        server = world.server(entry.machine)
        if server is None or server.spec.server_claim_ref is None or _is_requested(server):
            continue
        ref = server.spec.server_claim_ref
        in_progress = entry.at - changed.get((ref.namespace, ref.name), LONG_AGO) < PASS
        problem = "" if in_progress else _power_problem(entry, server, world)
        problem = problem or _image_problem(entry, server, world)
        if problem:
            name = server.metadata.name
            raise violation(history, entry, f"{problem} ({name})", server=name, machine=entry.machine)


def _is_requested(server: Server) -> bool:
    """True while an approved maintenance has the server, or a reset or parking was requested."""
    status = server.status
    if server.spec.server_maintenance_ref is not None or status.state == State.MAINTENANCE:
        return True
    asked, request = status.operation_request, status.power_request
    return (asked is not None and asked.asked_at is not None) or (request is not None and request.reason == "parking")


def _power_problem(entry: MachineEvent, server: Server, world: World) -> str:
    if entry.what != "reset":
        return ""
    kind, claim = str(entry.details["type"]), world.claim(server)
    starts = kind in STARTS or (kind == "PushPowerButton" and entry.details.get("power") == "Off")
    if starts and _is_sanitization(server, claim):
        return ""
    if starts and (claim is None or claim.spec.power == "Off" or server.status.state != State.RESERVED):
        return f"{kind} reached a claimed server in state {server.status.state} whose claim does not request power"
    stops = kind in STOPS or (kind == "PushPowerButton" and not starts)
    if stops and claim is not None and not _may_stop(claim, server):
        return f"{kind} reached a claimed server whose claim requests power and has booted"
    return ""


def _is_sanitization(server: Server, claim: ServerClaim | None) -> bool:
    """The server is in a sanitization boot, and the claim of its tenant is deleted."""
    window, tenant = server.status.boot_window, tenancy.of(server).uid
    begun = window is not None and window.purpose == Purpose.SANITIZATION
    return begun and server.status.state == State.CLEANUP and (claim is None or claim.metadata.uid != tenant)


def _may_stop(claim: ServerClaim, server: Server) -> bool:
    """The claim requests power off, a network boot is pending or in progress, or the last tenant remains."""
    boot, window = tenancy.of(server).boot, server.status.boot_window
    owed = boot is None or boot.booted_at is None or claim.spec.boot_generation > boot.boot_generation
    begun = window is not None and boot is not None and window.boot_generation > boot.boot_generation
    return claim.spec.power == "Off" or owed or begun or tenancy.of(server).uid not in ("", claim.metadata.uid)


def _image_problem(entry: MachineEvent, server: Server, world: World) -> str:
    if entry.what != "os" or entry.details.get("source") != "network":
        return ""
    if server.status.state not in (State.RESERVED, State.ERROR):
        return ""
    failure = server.status.failure
    if server.status.state == State.ERROR and failure is not None and failure.state == State.CLEANUP:
        return ""
    if entry.details.get("kind") in ("probe", "sanitizer"):
        return "a claimed server runs the probe"
    window, claim = server.status.boot_window, world.claim(server)
    if window is not None and claim is not None and window.claim_uid not in ("", claim.metadata.uid):
        return f"a claimed server was booted for another claim, {window.claim_uid}"
    return ""


def check_one_network_boot(history: History) -> None:
    """A tenant's system is booted from the network once for each claim, and once for each reboot generation.

    Otherwise the machine boots its disk.
    """
    booted: dict[str, int] = {}
    asked: dict[str, set[int]] = {}
    for entry, world in replay(history):
        if isinstance(entry, ObjectChange) and entry.kind == "ServerClaim" and entry.obj is not None:
            asked.setdefault(entry.obj.metadata.uid, set()).add(entry.obj.spec.boot_generation)
        window = _tenants_boot(entry, world)
        if window is None:
            continue
        problem = _unasked(window, booted, asked)
        if problem:
            server = world.server(entry.machine) if isinstance(entry, MachineEvent) else None
            name = server.metadata.name if server is not None else ""
            machine = server.uuid if server is not None else ""
            raise violation(history, entry, f"{problem} on {name}", server=name, machine=machine)
        booted[window.claim_uid] = window.boot_generation


def _tenants_boot(entry: Entry, world: World) -> BootWindow | None:
    """The boot window of a tenant's system that this entry boots from the network."""
    if not isinstance(entry, MachineEvent) or entry.what != "os" or entry.details.get("kind") != "tenant":
        return None
    server = world.server(entry.machine)
    window = server.status.boot_window if server is not None else None
    if window is None or entry.details.get("source") != "network" or window.purpose == Purpose.MAINTENANCE:
        return None
    return window


def _unasked(window: BootWindow, booted: dict[str, int], asked: dict[str, set[int]]) -> str:
    uid, number = window.claim_uid, window.boot_generation
    if uid in booted and number <= booted[uid]:
        return f"claim {uid} was imaged a second time (boot generation {number})"
    if uid in booted and number not in asked.get(uid, set()):
        return f"claim {uid} was imaged for boot generation {number}, which it never requested,"
    return ""
