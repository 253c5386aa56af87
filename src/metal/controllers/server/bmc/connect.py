"""Finds the BMC of a Server and the system on it, and checks that the system is this Server's.

The BMC is declared by a BMC object (`spec.bmcRef`) or by `spec.bmc`; its address may come from an Endpoint, its
credentials come from a BMCSecret. What is missing or invalid is raised as `NoAccess` and becomes a condition of the
Server.

The system is the one with the Server's UUID (`system_check.matches`); its path is kept in `spec.systemURI`. A BMC may
number its systems differently after an update: `find_moved_system` looks the system up by UUID when the path shows none
or another one. `Scope.observe` and the inventory check the UUID of everything they read (`system_check.require`), so
that nothing is done to another machine under this Server's name.
"""

from typing import cast

from metal.api.bmc import BMCSecret
from metal.api.common import LocalRef
from metal.api.endpoint import Endpoint
from metal.api.server import State
from metal.bmc.errors import BMCError, BMCNotFound
from metal.bmc.pool import BMC, BMCEndpoint
from metal.controllers.server import system_check
from metal.controllers.server.bmc import failing
from metal.controllers.server.bmc.bmc_errors import InvalidSpec, NoAccess, SystemNotFound, await_restart, bmc_failed
from metal.controllers.server.bmc.recorded import RecordedOperations
from metal.controllers.server.reasons import Operation
from metal.controllers.server.scope import Scope
from metal.controllers.shared.access import authorities, secret_use
from metal.controllers.shared.access.bmc_endpoint import endpoint_for_bmc, endpoint_for_inline
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.condition_types import RESET
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key


async def run(scope: Scope) -> None:
    """Attach the BMC to the scope and make sure that the system's URI is known. Raises BMCError."""
    problem = system_check.problem(scope.server)
    if problem:
        raise InvalidSpec(problem)
    if scope.server.spec.bmc_ref is None and (inline := scope.server.spec.bmc) is not None:
        deps = scope.deps
        await authorities.read(scope.context, scope.settings.namespace, inline.tls, deps.endpoint_defaults)
    not_allowed = await _bind_secret(scope)
    access = _endpoint_of(scope)
    if isinstance(access, Problem) and access.reason == secret_use.NOT_BOUND:
        access = not_allowed or access
    if isinstance(access, Problem):
        raise NoAccess(access.reason, access.message)
    try:
        scope.client = scope.deps.pool.get(access)
    except ValueError as exc:
        raise NoAccess("AccessInvalid", f"the BMC cannot be reached as declared: {exc}") from exc
    scope.bmc, scope.endpoint = cast("BMC", RecordedOperations(scope, scope.client)), access
    failing.succeeded(scope, Operation.CONNECT)
    if not scope.uri:
        await find_system(scope)


async def pause(scope: Scope) -> Requeue | None:
    """Leave the machine alone while its BMC restarts, until the deadline that the BMC's status gives."""
    ref = scope.server.spec.bmc_ref
    bmc = scope.deps.bmcs.get(Key(ref.name)) if ref is not None else None
    if bmc is None or bmc.status.restart is None or not conditions.is_true(bmc.status.conditions, RESET):
        return None
    until = bmc.status.restart.until
    if until is None or scope.now >= until or scope.status.state == State.ERROR:
        return None
    return await_restart(scope, bmc.metadata.name, until)


async def find_system(scope: Scope) -> None:
    """Look the system up by its UUID and keep its URI. Raises BMCError."""
    found = [system for system in await scope.connected().systems() if system_check.matches(scope.server, system)]
    if not found:
        raise SystemNotFound(f"the BMC has no system with the UUID {scope.server.uuid}; correct spec.systemUUID")
    if scope.uri == found[0].uri:
        return
    await scope.patch({"spec": {"systemURI": found[0].uri}})


async def find_moved_system(scope: Scope, exc: BMCError) -> Requeue:
    """Look up a system that is not where it was; `exc` is what its old path showed."""
    before = scope.uri
    try:
        if before:
            await find_system(scope)
    except BMCError as error:
        return bmc_failed(scope, exc if isinstance(error, BMCNotFound) else error)
    if scope.uri == before:
        return bmc_failed(scope, exc)
    scope.record_event("SystemMoved", f"the BMC shows this system at {scope.uri} now, formerly {before}")
    return Requeue(0)


async def _bind_secret(scope: Scope) -> Problem | None:
    """Bind the BMCSecret to its first users, before a password is sent."""
    deps, spec = scope.deps, scope.server.spec
    bmc = deps.bmcs.get(Key(spec.bmc_ref.name)) if spec.bmc_ref is not None else None
    source = spec.bmc if spec.bmc_ref is None else bmc.spec if bmc is not None else None
    secret = _secret(scope, source.bmc_secret_ref.name) if source is not None else None
    annotation = deps.endpoint_defaults.policy.bound_to
    if secret is None or secret_use.is_bound(secret, annotation):
        return None
    users = secret_use.users_of(secret, deps.bmcs, deps.servers)
    return await secret_use.bind(scope.context, deps.secrets, users, secret, annotation)


def _endpoint_of(scope: Scope) -> BMCEndpoint | Problem:
    """The endpoint of the BMC, or why it cannot be resolved."""
    deps, spec = scope.deps, scope.server.spec
    if spec.bmc_ref is None:
        inline = spec.bmc
        endpoint = _endpoint(scope, inline.endpoint_ref if inline else None)
        secret = _secret(scope, inline.bmc_secret_ref.name if inline else "")
        return endpoint_for_inline(scope.server, endpoint, secret, deps.endpoint_defaults)
    bmc = deps.bmcs.get(Key(spec.bmc_ref.name))
    if bmc is None:
        return Problem("BMCNotFound", f"BMC {spec.bmc_ref.name} does not exist: create it or correct spec.bmcRef")
    endpoint = _endpoint(scope, bmc.spec.endpoint_ref)
    return endpoint_for_bmc(bmc, endpoint, _secret(scope, bmc.spec.bmc_secret_ref.name), deps.endpoint_defaults)


def _endpoint(scope: Scope, ref: LocalRef | None) -> Endpoint | None:
    return scope.deps.endpoints.get(Key(ref.name)) if ref else None


def _secret(scope: Scope, name: str) -> BMCSecret | None:
    return scope.deps.secrets.get(Key(name)) if name else None
