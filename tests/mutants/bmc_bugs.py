"""Further bugs, in the handling of BMCs that fail, each put back by a small switch; see `bug`."""

from typing import Any

import pytest

from metal.api.server import State
from metal.bmc.redfish import pool
from metal.controllers.server.bmc import failing
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import error
from metal.kube.controller.controller import Requeue
from tests.mutants import stories
from tests.mutants.bug import bug

_RESUME = error._resume


@bug(stories.rejected_power_on, "rejected requests within an hour")
def takes_any_answer_for_a_recovery(patch: pytest.MonkeyPatch) -> None:
    """A read that succeeds ends the failure of every operation, so its pauses and its deadline start again."""
    patch.setattr(failing, "succeeded", lambda scope, _: scope.set(failing_operations=()))


@bug(stories.outage_between_boots, "after an outage, before 1")
def forgets_failed_boots_in_an_outage(patch: pytest.MonkeyPatch) -> None:
    """The BMC answers again, and the count of network boots starts again with it."""

    def resume(scope: Scope, state: State, message: str, **_: Any) -> Requeue:
        return _RESUME(scope, state, message)

    patch.setattr(error, "_resume", resume)


@bug(stories.host_in_post, "is Error", patience=300)
def takes_post_for_a_permanent_error(patch: pytest.MonkeyPatch) -> None:
    """A 400 is permanent whatever its message says, so a host in POST leaves its server in Error."""
    patch.setattr(pool, "error_type", lambda _: None)
