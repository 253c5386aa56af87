"""One pass over one ServerClaim: binds it to a Server, writes its boot configuration, and reports its progress.

Binding: candidates come from the informer cache in the claim's own order, and `matching` selects the first that
matches and that no older claim gets (`waiting`). That server is read again from the API, since the cache may be behind,
and the Lease of its machine confirms that no other Server acts on it. It is reserved with a single patch of
spec.serverClaimRef, guarded by resourceVersion: of two claims that select the same server one patch fails with
Conflict, and that claim selects again. Then spec.serverRef of the claim names the server. Only the claim's UID in the
server's status proves who holds it, since a deleted claim may be created again under the same name.

A bound claim stays bound to its server: when the server is taken from it or deleted, the claim is Unbound with reason
ServerLost and gets no other server, as its data was on the lost one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from metal.api.claim import ServerClaim
from metal.api.claim_boot import booted_generation, has_booted, requests_boot
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION, PARK, PARKED
from metal.api.server import Server, State
from metal.controllers.claim import boot_config, matching, sanitization
from metal.controllers.claim.candidate_order import CandidateOrder
from metal.controllers.claim.reasons import ClaimReason
from metal.controllers.claim.scope import ClaimDeps, ClaimScope
from metal.controllers.server.traits import traits_of
from metal.controllers.shared.condition_types import BOOTED
from metal.controllers.shared.indexes import BY_CLAIM
from metal.controllers.shared.reconciled import refusals, reporting
from metal.kube.client.errors import Conflict
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows
from metal.machine import tenancy
from metal.machine.lease_tenancy import RecordOutdated
from metal.machine.system_lease import NotInCharge, Unidentified

_ATTEMPTS = 4
"""How many servers are read from the API in one pass; the cache is seldom behind for more."""


@dataclass
class ServerClaimReconciler:
    """Binds claims to servers. Level-triggered; two claims never get the same server."""

    deps: ClaimDeps
    wake: Callable[[Key], None] = lambda _: None
    """Queues a key; set when the reconciler is wired to its controller."""
    _order: CandidateOrder = field(default_factory=CandidateOrder)

    def __post_init__(self) -> None:
        self.deps.servers.add_handler(self._order.update)

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when another claim reserved the server first; the next pass selects again."""
        claim = self.deps.claims.get(key)
        if claim is None:
            return Done()
        scope = ClaimScope(self.deps, claim)
        if claim.metadata.deletion_timestamp is not None:
            async with refusals(scope):
                await self._remove_finalizer(claim)
            return Done()  # the Server controller sees it; the boot configuration is deleted with its owner
        if claim.metadata.annotations.get(self.deps.context.kinds.key(OPERATION)) == IGNORE:
            return Done()
        if key.namespace == self.deps.settings.namespace:
            _report_reserved_namespace(scope)
            await scope.commit()
            return Done()
        async with reporting(scope):
            server = self._held_server(claim) or await self._bind(scope)
            if server is not None:
                await self._report_bound(scope, server)
        return Done() if server is not None else Requeue(self.deps.context.jitter(self.deps.settings.resync))

    async def _remove_finalizer(self, claim: ServerClaim) -> None:
        """Remove the Go operator's finalizer, which a claim from a migration has; this operator needs none."""
        kinds = self.deps.context.kinds
        await remove_finalizer(self.deps.context.client, kinds.claim, claim, kinds.key("serverclaim"))

    def _held_server(self, claim: ServerClaim) -> Server | None:
        """The server that the claim holds, or None; of several, which two managers may have reserved, the named one."""
        held = [s for s in self.deps.servers.by_index(BY_CLAIM, str(key_of(claim))) if _is_held_by(claim, s)]
        return min(held, key=lambda s: s.metadata.name, default=None)

    async def _bind(self, scope: ClaimScope) -> Server | None:
        claim = scope.claim
        ref = claim.spec.server_ref
        if _can_never_bind(scope, self.deps.servers.get(Key(ref.name)) if ref else None):
            return None
        problem = matching.selector_problem(claim)
        if problem:
            scope.phase("Unbound", "a valid selector")
            scope.report("Bound", False, ClaimReason.INVALID_SELECTOR, problem)
            return None
        return await self._bind_first(scope)

    async def _bind_first(self, scope: ClaimScope) -> Server | None:
        """Reserve the first server that matches and that no older claim gets; report why there is none."""
        for _ in range(_ATTEMPTS):
            choice = matching.choose(
                scope.claim, self._candidates(scope.claim), partial(self._is_for_older, scope.claim)
            )
            if choice.server is None:
                scope.phase("Unbound", "a matching server")
                scope.report("Bound", False, choice.reason, choice.message)
                return None
            server = await self._reserve(scope, choice.server.metadata.name)
            if server is not None:
                return server
        raise Conflict("every selected server changed before it could be reserved")

    def _candidates(self, claim: ServerClaim) -> Iterator[Server]:
        """The servers that the claim may have, in the claim's order."""
        ref = claim.spec.server_ref
        names: Iterable[str] = self._order.names(claim) if ref is None else (ref.name,)
        if ref is None and (promised := self.deps.waiting.promised(key_of(claim))):
            names = chain((promised,), (name for name in names if name != promised))
        return (server for name in names if (server := self.deps.servers.get(Key(name))) is not None)

    def _is_for_older(self, claim: ServerClaim, server: Server) -> bool:
        """True when an older claim gets this server; that claim is woken, for it may not know of the server."""
        if self.deps.waiting.may_take(claim, server):
            return False
        if (older := self.deps.waiting.getting(server.metadata.name)) is not None:
            self.wake(older)
        return True

    async def _reserve(self, scope: ClaimScope, name: str) -> Server | None:
        """Read the server from the API, and reserve it if it still matches; None when it does not.

        Raises Conflict when the server changed in between, NotFound and other ApiErrors.
        """
        kinds, claim = self.deps.context.kinds, scope.claim
        server = await self.deps.context.client.get(kinds.server, name)
        if _is_held_by(claim, server):
            self.deps.servers.observe(server)
            return server  # an earlier patch succeeded although its response was lost
        if matching.mismatch(claim, server) is not None or not await self._is_in_charge(server):
            self.deps.servers.observe(server)
            return None
        ref = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
        body = {
            "metadata": {"resourceVersion": server.metadata.resource_version},
            "spec": {"serverClaimRef": ref, "bootConfigurationRef": ref},
        }
        server = await self.deps.context.client.patch(kinds.server, name, body)
        self.deps.servers.observe(server)
        return server

    async def _is_in_charge(self, server: Server) -> bool:
        """Whether the API confirms that this Server, and no other one of the same machine, acts on it, and that its
        record of tenancy is not older than the last tenancy."""
        try:
            await self.deps.leases.require(server)
        except (NotInCharge, Unidentified, RecordOutdated):
            return False
        return True

    def _is_parking(self, server: Server) -> bool:
        key, notes = self.deps.context.kinds.key, server.metadata.annotations
        return notes.get(key(PARKED)) == "true" or notes.get(key(OPERATION)) == PARK

    async def _report_bound(self, scope: ClaimScope, server: Server) -> None:
        if scope.claim.spec.server_ref is None:
            await scope.patch({"spec": {"serverRef": {"name": server.metadata.name}}})
        if matching.is_ignored(server):
            _report_ignored(scope, server)
            return
        if server.status.state == State.PARKED or self._is_parking(server):
            _report_parked(scope, server)
            return
        if traits_of(server.status.state).claim_boots and not _is_outdated(scope, server):
            await boot_config.reconcile(scope, server)
        scope.phase("Bound", _waiting_for(scope.claim, server))
        scope.report("Bound", True, "Bound", f"bound to server {server.metadata.name}")
        _report_boot(scope, server)
        sanitization.report(scope, server)


def _report_ignored(scope: ClaimScope, server: Server) -> None:
    name, key = server.metadata.name, scope.context.kinds.key(OPERATION)
    scope.phase("Bound", f"server {name}, which is not managed")
    scope.report("Bound", True, "Bound", f"bound to server {name}")
    text = f"server {name} has the annotation {key}=ignore: remove it to have the operator manage the server again"
    scope.report("Ready", False, "ServerNotManaged", text)


def _report_parked(scope: ClaimScope, server: Server) -> None:
    name = server.metadata.name
    scope.phase("Bound", f"server {name}, which is parked")
    scope.report("Bound", True, "Bound", f"bound to server {name}")
    scope.report(
        "Ready",
        False,
        "ServerParked",
        f"server {name} is parked: the operator does not manage its power until it is unparked",
    )


def _report_reserved_namespace(scope: ClaimScope) -> None:
    """Objects of a claim there could have the names of a server's discovery objects."""
    message = (
        f"namespace {scope.claim.metadata.namespace} is reserved for the manager: delete this claim and create it in "
        "another namespace"
    )
    scope.phase("Unbound", "the deletion of this claim: its namespace is reserved")
    scope.report("Bound", False, ClaimReason.NAMESPACE_RESERVED, message)
    scope.report("Ready", False, ClaimReason.NAMESPACE_RESERVED, message)


def _is_held_by(claim: ServerClaim, server: Server) -> bool:
    """True when the server is held by this claim, not by a former one of the same name."""
    ref, named = server.spec.server_claim_ref, claim.spec.server_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    if named is not None and named.name != server.metadata.name:
        return False
    return tenancy.of(server).uid in ("", claim.metadata.uid) and server.status.state != State.CLEANUP


def _can_never_bind(scope: ClaimScope, named: Server | None) -> bool:
    """True when the claim can get no server: it lost the one it had, or the server that it names does not exist.

    A claim that had a server and names none was restored without it: its data may be on any server.
    """
    ref = scope.claim.spec.server_ref
    name = f"server {ref.name}" if ref else "its server"
    before = conditions.find(scope.status.conditions, "Bound")
    had = scope.status.phase == "Bound" or (before is not None and before.reason == ClaimReason.SERVER_LOST)
    if conditions.is_true(scope.status.conditions, BOOTED) or (named is None and had):
        scope.phase("Unbound", f"its deletion: {name} was lost")
        message = f"{name} was taken from this claim or deleted: create a new claim to get another server"
        scope.report("Bound", False, ClaimReason.SERVER_LOST, message)
        scope.report("Ready", False, ClaimReason.SERVER_LOST, message)
        return True
    if ref is not None and named is None:
        scope.phase("Unbound", name)
        scope.report("Bound", False, "ServerNotFound", f"{name} does not exist")
        return True
    return False


def _waiting_for(claim: ServerClaim, server: Server) -> str:
    if server.status.state == State.ERROR and server.status.failure is not None:
        return f"server {server.metadata.name}, which is in Error: {server.status.failure.message}"
    booted = tenancy.of(server).boot
    if requests_boot(claim, booted):
        return server.status.waiting_for or f"network boot {claim.spec.boot_generation}"
    if has_booted(booted) and server.status.power_state == claim.spec.power:
        return ""
    return server.status.waiting_for


def _report_boot(scope: ClaimScope, server: Server) -> None:
    claim, boot = scope.claim, tenancy.of(server).boot
    if boot is None or not has_booted(boot, claim):
        if _is_outdated(scope, server):
            return
        scope.report(BOOTED, False, "NotBooted", "the claim's image has not booted yet")
        if not _report_error(scope, server):
            text = _waiting_for(claim, server) or "the claim's image has not booted yet"
            scope.report("Ready", False, "NotBooted", text)
        return
    scope.set(boot_generation=booted_generation(claim, boot))
    scope.report(BOOTED, True, "Booted", f"the server booted {boot.image or 'before its status was lost'}")
    if requests_boot(claim, boot):
        scope.report("Ready", False, "NetworkBootRequested", f"waiting for {_waiting_for(claim, server)}")
    elif claim.spec.power in ("", server.status.power_state):
        scope.report("Ready", True, "Running", f"power is {server.status.power_state}")
    elif not _report_error(scope, server):
        scope.report("Ready", False, "PowerPending", f"power is {server.status.power_state or 'unknown'}")


def _is_outdated(scope: ClaimScope, server: Server) -> bool:
    """True when the claim has booted and its server does not know: a backup of the server was restored, or this copy
    of it is old. The condition Booted stays, because the Server controller corrects the server's record by it."""
    booted = conditions.is_true(scope.status.conditions, BOOTED)
    return booted and not has_booted(tenancy.of(server).boot, scope.claim)


def _report_error(scope: ClaimScope, server: Server) -> bool:
    """Report the failure of a server in Error; True when there is one."""
    if server.status.state != State.ERROR:
        return False
    scope.report(
        "Ready", False, ClaimReason.SERVER_IN_ERROR, _waiting_for(scope.claim, server) or "the server is in Error"
    )
    return True


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler, except those that its modules declare."""
    return (
        *follows(kinds.claim, kinds.server, kinds.boot_config, why="binds claims to matching servers"),
        Permission(kinds.server, ("get", "patch"), "reserves a server for a claim, after reading its newest version"),
        Permission(kinds.claim, ("patch",), "names the server that was reserved"),
        Permission(kinds.claim, ("patch",), "reports the progress of the claim", "status"),
    )
