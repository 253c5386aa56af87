"""Binds ServerClaims to Servers, and asks for the boot configuration that each claim describes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from metal.api.claim import ServerClaim
from metal.api.claim_boot import answered, has_booted, is_asked
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION, PARK, PARKED
from metal.api.server import Server, State
from metal.controllers.claim import boot_config, matching
from metal.controllers.claim.candidate_order import Ring
from metal.controllers.claim.scope import ClaimDeps, ClaimScope
from metal.controllers.server.states.traits import traits_of
from metal.controllers.shared.indexes import BY_CLAIM
from metal.kube.client.errors import Conflict
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows

_TRIES = 4
"""How many servers are looked at freshly in one pass; the cache is seldom behind on more."""


@dataclass
class ServerClaimReconciler:
    """Level-triggered; a server is taken by one patch that its resourceVersion guards, so never by two claims."""

    deps: ClaimDeps
    _ring: Ring = field(default_factory=Ring)

    def __post_init__(self) -> None:
        self.deps.servers.add_handler(self._ring.note)

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises Conflict when another claim was faster; the next pass looks again."""
        claim = self.deps.claims.get(key)
        if claim is None:
            return Done()
        if claim.metadata.deletion_timestamp is not None:
            await self._let_go(claim)
            return Done()  # the Server's reconciler notices; the boot configuration goes with its owner
        if claim.metadata.annotations.get(self.deps.context.kinds.key(OPERATION)) == IGNORE:
            return Done()
        scope = ClaimScope(self.deps, claim)
        if key.namespace == self.deps.settings.namespace:
            _refuse(scope)
            await scope.commit()
            return Done()
        server = self._mine(claim) or await self._bind(scope)
        if server is not None:
            await self._serve(scope, server)
        await scope.commit()
        return Done() if server is not None else Requeue(self.deps.context.jitter(self.deps.settings.resync))

    async def _let_go(self, claim: ServerClaim) -> None:
        """Nothing here holds a claim up; with the Go operator's finalizer one taken over would stay for ever."""
        kinds = self.deps.context.kinds
        await remove_finalizer(self.deps.context.client, kinds.claim, claim, kinds.key("serverclaim"))

    def _mine(self, claim: ServerClaim) -> Server | None:
        """The server that the claim holds. Of several (two managers may have taken one each) the one that it names."""
        held = [s for s in self.deps.servers.by_index(BY_CLAIM, str(key_of(claim))) if _is_mine(claim, s)]
        return min(held, key=lambda s: s.metadata.name, default=None)

    async def _bind(self, scope: ClaimScope) -> Server | None:
        claim = scope.claim
        ref = claim.spec.server_ref
        if _has_lost(scope, self.deps.servers.get(Key(ref.name)) if ref else None):
            return None
        problem = matching.selector_problem(claim)
        if problem:
            scope.phase("Unbound", "a selector that can be read")
            scope.say("Bound", False, "InvalidSelector", problem)
            return None
        verdict = matching.choose(claim, self._candidates(claim))
        for _ in range(_TRIES):
            if verdict.server is None:
                break
            server = await self._take(scope, verdict.server.metadata.name)
            if server is not None:
                return server
            verdict = matching.choose(claim, self._candidates(claim))
        if verdict.server is not None:
            raise Conflict("the servers that fit change faster than one can be taken")
        scope.phase("Unbound", "a server that fits")
        scope.say("Bound", False, verdict.reason, verdict.message)
        return None

    def _candidates(self, claim: ServerClaim) -> Iterator[Server]:
        """The servers that the claim may have, in the order in which it looks at them."""
        ref = claim.spec.server_ref
        names = self._ring.names(claim) if ref is None else (ref.name,)
        return (server for name in names if (server := self.deps.servers.get(Key(name))) is not None)

    async def _take(self, scope: ClaimScope, name: str) -> Server | None:
        """Read the server as it is now, and take it if it still fits. The patch fails if it changed in between.

        None when the cache was behind; it is not any more. Raises Conflict, NotFound and other ApiErrors.
        """
        kinds, claim = self.deps.context.kinds, scope.claim
        server = await self.deps.context.client.get(kinds.server, name)
        if _is_mine(claim, server):
            self.deps.servers.observe(server)
            return server  # an earlier patch went through although its answer was lost
        if matching.misfit(claim, server) is not None:
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

    def _is_parking(self, server: Server) -> bool:
        key, notes = self.deps.context.kinds.key, server.metadata.annotations
        return notes.get(key(PARKED)) == "true" or notes.get(key(OPERATION)) == PARK

    async def _serve(self, scope: ClaimScope, server: Server) -> None:
        if scope.claim.spec.server_ref is None:
            await scope.patch({"spec": {"serverRef": {"name": server.metadata.name}}})
        if server.status.state == State.PARKED or self._is_parking(server):
            _stand_down(scope, server)
            return
        if traits_of(server.status.state).claim_boots:
            await boot_config.follow(scope, server)
        scope.phase("Bound", _waiting_for(scope.claim, server))
        scope.say("Bound", True, "Bound", f"bound to server {server.metadata.name}")
        _booted(scope, server)


def _stand_down(scope: ClaimScope, server: Server) -> None:
    name = server.metadata.name
    scope.phase("Bound", f"server {name}, which is parked")
    scope.say("Bound", True, "Bound", f"bound to server {name}")
    scope.say(
        "Ready", False, "ServerParked", f"server {name} is parked: its power is somebody else's until it is unparked"
    )


def _refuse(scope: ClaimScope) -> None:
    """Its boot configuration and Secret could be those of a server's discovery, which are named like the server."""
    message = (
        f"namespace {scope.claim.metadata.namespace} is the manager's own, and claims get no server there; "
        "delete this claim and make it in another namespace"
    )
    scope.phase("Unbound", "its deletion: claims belong in another namespace")
    scope.say("Bound", False, "NamespaceReserved", message)
    scope.say("Ready", False, "NamespaceReserved", message)


def _is_mine(claim: ServerClaim, server: Server) -> bool:
    """True when the server is held by this claim, not by a former one of the same name."""
    ref, named = server.spec.server_claim_ref, claim.spec.server_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    if named is not None and named.name != server.metadata.name:
        return False
    return server.status.tenant in ("", claim.metadata.uid) and server.status.state != State.CLEANUP


def _has_lost(scope: ClaimScope, named: Server | None) -> bool:
    """True when the claim can get no server, because it had one or because the one it names is not there."""
    ref = scope.claim.spec.server_ref
    name = ref.name if ref else ""
    before = conditions.find(scope.status.conditions, "Bound")
    had = scope.status.phase == "Bound" or (before is not None and before.reason == "ServerLost")
    if conditions.is_true(scope.status.conditions, "Booted") or (ref is not None and named is None and had):
        scope.phase("Unbound", f"server {name}, which it had")
        message = f"server {name}, which this claim had, was taken from it or is gone; a new claim gets a new server"
        scope.say("Bound", False, "ServerLost", message)
        scope.say("Ready", False, "ServerLost", message)
        return True
    if ref is not None and named is None:
        scope.phase("Unbound", f"server {name}")
        scope.say("Bound", False, "ServerNotFound", f"there is no server {name}")
        return True
    return False


def _waiting_for(claim: ServerClaim, server: Server) -> str:
    if server.status.state == State.ERROR and server.status.failure is not None:
        return f"server {server.metadata.name}, which is in Error: {server.status.failure.message}"
    booted = server.status.claim_boot
    if is_asked(claim, booted):
        return server.status.waiting_for or f"network boot {claim.spec.boot_generation}"
    if has_booted(booted) and server.status.power_state == claim.spec.power:
        return ""
    return server.status.waiting_for


def _booted(scope: ClaimScope, server: Server) -> None:
    claim, boot = scope.claim, server.status.claim_boot
    if boot is None or not has_booted(boot, claim):
        scope.say("Booted", False, "NotBooted", "the claim's image has not booted yet")
        if not _in_error(scope, server):
            text = _waiting_for(claim, server) or "the claim's image has not booted yet"
            scope.say("Ready", False, "NotBooted", text)
        return
    scope.set(boot_generation=answered(claim, boot))
    scope.say("Booted", True, "Booted", f"the server booted {boot.image or 'before its status was lost'}")
    if is_asked(claim, boot):
        scope.say("Ready", False, "NetworkBootRequested", f"waits for {_waiting_for(claim, server)}")
    elif claim.spec.power in ("", server.status.power_state):
        scope.say("Ready", True, "Running", f"power is {server.status.power_state}")
    elif not _in_error(scope, server):
        scope.say("Ready", False, "PowerPending", f"power is {server.status.power_state or 'unknown'}")


def _in_error(scope: ClaimScope, server: Server) -> bool:
    """True when it is the server's failure that keeps the claim from being Ready, which is said then."""
    if server.status.state != State.ERROR:
        return False
    scope.say("Ready", False, "ServerInError", _waiting_for(scope.claim, server) or "its server is in Error")
    return True


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API, but for what its modules declare."""
    return (
        *follows(kinds.claim, kinds.server, kinds.boot_config, why="claims get the servers that fit"),
        Permission(kinds.server, ("get", "patch"), "takes a server for a claim, looking at its newest version"),
        Permission(kinds.claim, ("patch",), "names the server that was found"),
        Permission(kinds.claim, ("patch",), "says what became of the claim", "status"),
    )
