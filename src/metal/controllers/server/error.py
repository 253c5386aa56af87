"""Error: says what failed and what to do, until it is told to go on, a maintenance comes, or the cause is gone."""

from collections.abc import Mapping

from metal.api.server import State
from metal.controllers.server.reserved import find_claim
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {"Repair": ""}


async def run(scope: Scope) -> Requeue:
    """The interrupted state again once the cause is gone. Raises BMCError while the BMC is the cause."""
    failure = scope.status.failure
    if scope.server.spec.server_maintenance_ref is not None:
        return scope.go(State.MAINTENANCE, "a maintenance holds the server")
    await scope.observe(max_age=0.0)
    if failure is None:
        return _resume(scope, State.INITIAL, "nothing is known of the failure; discovery runs again")
    if failure.reason.startswith("BMC"):
        return _resume(scope, State(failure.state or State.INITIAL), "the BMC answers again")
    if failure.reason == "BootConfigurationNotReady" and _config_ready(scope):
        return _resume(scope, State(failure.state), "the boot configuration is ready now")
    if failure.reason.startswith("Power") and f"Power{scope.status.power_state}Timeout" == failure.reason:
        return _resume(scope, State(failure.state), "the power reached what was asked for")
    if failure.state == State.RESERVED and scope.server.spec.server_claim_ref is not None and await _claim_gone(scope):
        return _resume(scope, State.CLEANUP, "the claim is gone; the server is being cleaned up")
    scope.condition("Ready", False, failure.reason, failure.message)
    again = scope.wait("Repair", f"{failure.reason}: {failure.message}")
    return Requeue(again.after)


def resume_interrupted(scope: Scope) -> Requeue:
    """What operation=retry does: back to the interrupted state, with a fresh set of attempts."""
    failure = scope.status.failure
    state = State(failure.state) if failure is not None and failure.state else State.INITIAL
    return _resume(scope, state, "retry was asked for")


def _resume(scope: Scope, state: State, message: str) -> Requeue:
    if state is State.AVAILABLE and scope.status.tenant:
        state = State.CLEANUP  # whatever failed, a tenant's traces are still owed
    scope.set(boot_attempts=0)
    return scope.go(state, message)


def _config_ready(scope: Scope) -> bool:
    config = scope.boot_config()
    return config is not None and config.status.state == "Ready"


async def _claim_gone(scope: Scope) -> bool:
    return await find_claim(scope) is None
