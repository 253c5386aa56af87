"""A claim is bound only to an eligible server, and is Ready only after its own boot."""

from datetime import datetime, timedelta

from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.controllers.claim.matching import blocking_taints
from metal.kube.meta.conditions import is_true
from metal.kube.meta.objects import key_of
from metal.machine import tenancy
from metal.sim.history import History, ObjectChange
from metal.sim.invariants.world import World, replay, violation

_WATCHES = timedelta(seconds=1)
"""Tolerance for the order of changes of claims and servers, which are recorded by separate watches."""


def check_eligible(history: History) -> None:
    """A server is bound only while it is Available and off, without cordon, untolerated taint or maintenance."""
    lived: set[str] = set()
    for entry, world in replay(history):
        if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is None:
            continue
        old, ref = world.servers.get(entry.name), entry.obj.spec.server_claim_ref
        lived |= {entry.name} if entry.obj.status.state else set()
        if old is None or ref is None or old.spec.server_claim_ref is not None:
            continue
        if not old.status.state and entry.name in lived:
            continue  # it lost its status, and is bound to its own claim again
        problem = _forbidden(old, world.claims.get((ref.namespace, ref.name)))
        if problem:
            text = f"claim {ref.namespace}/{ref.name} took server {entry.name} although {problem}"
            raise violation(history, entry, text, server=entry.name, machine=old.uuid)


def _forbidden(server: Server, claim: ServerClaim | None) -> str:
    if server.status.state != State.AVAILABLE:
        return f"it was in state {server.status.state or 'Initial'}"
    if server.status.power_state != "Off":
        return f"its power was {server.status.power_state or 'unknown'}"
    if server.spec.unclaimable:
        return "it was cordoned"
    if server.spec.server_maintenance_ref is not None:
        return "a maintenance held it"
    if claim is not None and blocking_taints(server.spec.taints, claim):
        return "it has a taint that the claim does not tolerate"
    return ""


def check_kept(history: History) -> None:
    """A server loses its tenant only after the tenant's claim is deleted or being deleted."""
    gone = _goings(history)
    for entry, world in replay(history):
        if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is None:
            continue
        old = world.servers.get(entry.name)
        if old is None or entry.obj.spec.server_claim_ref == old.spec.server_claim_ref:
            continue
        claim = world.claim(old)
        if claim is None or claim.spec.server_ref is None or claim.metadata.uid != tenancy.of(old).uid:
            continue
        at = gone.get(claim.metadata.uid)
        if at is None or at > entry.at + _WATCHES:
            text = f"server {entry.name} was taken from claim {key_of(claim)}"
            raise violation(history, entry, text, server=entry.name, machine=old.uuid)


def _goings(history: History) -> dict[str, datetime]:
    """By claim UID, when its deletion began."""
    found: dict[str, datetime] = {}
    for entry, world in replay(history):
        if not isinstance(entry, ObjectChange) or entry.kind != "ServerClaim":
            continue
        old = world.claims.get((entry.namespace, entry.name))
        if entry.obj is not None and entry.obj.metadata.deletion_timestamp:
            found.setdefault(entry.obj.metadata.uid, entry.at)
        elif old is not None and (entry.obj is None or entry.obj.metadata.uid != old.metadata.uid):
            found.setdefault(old.metadata.uid, entry.at)
    return found


def check_ready(history: History) -> None:
    """A claim is Ready only when its server's status has the latest boot that the claim requested."""
    booted = _boots(history)
    for entry, world in replay(history):
        if not isinstance(entry, ObjectChange) or entry.kind != "ServerClaim" or entry.obj is None:
            continue
        claim: ServerClaim = entry.obj
        if not is_true(claim.status.conditions, "Ready") or _was_ready(world, entry):
            continue
        named = claim.spec.server_ref.name if claim.spec.server_ref else ""
        before = [number for at, number in booted.get(claim.metadata.uid, []) if at <= entry.at + _WATCHES]
        if not before:
            raise violation(history, entry, f"claim {entry.name} was Ready before it had booted", server=named)
        if _was_looked_at(claim) and claim.spec.boot_generation > max(before):
            text = f"claim {entry.name} was Ready before the boot {claim.spec.boot_generation} that it requests"
            raise violation(history, entry, text, server=named)


def _was_looked_at(claim: ServerClaim) -> bool:
    """False while the status is for an older generation."""
    return claim.status.observed_generation == claim.metadata.generation


def _boots(history: History) -> dict[str, list[tuple[datetime, int]]]:
    """By claim UID, when its boots were recorded, with their boot generation."""
    found: dict[str, list[tuple[datetime, int]]] = {}
    for entry in history:
        if isinstance(entry, ObjectChange) and entry.kind == "Server" and entry.obj is not None:
            boot = tenancy.of(entry.obj).boot
            if boot is None or boot.booted_at is None:
                continue
            known = found.setdefault(boot.claim_uid, [])
            if not known or known[-1][1] != boot.boot_generation:
                known.append((entry.at, boot.boot_generation))
    return found


def _was_ready(world: World, entry: ObjectChange) -> bool:
    old = world.claims.get((entry.namespace, entry.name))
    return old is not None and is_true(old.status.conditions, "Ready")
