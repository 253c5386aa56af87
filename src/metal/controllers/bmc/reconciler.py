"""One pass over one BMC: finds its address and credentials, checks it over Redfish, and keeps its Servers up to date.

Phases run in a fixed order. A phase that returns a Result ends the pass, since later phases need what it could not get:
no request is sent without an address and credentials, and no Server is created before the systems were read.

1. `trust.accept` carries out the operations that accept a certificate or host key, before the BMC is contacted.
2. `restart.check_deadline` ends the wait for a restart that took too long, so that the next phases contact the BMC
  again.
3. `connect.resolve_endpoint` combines address, credentials and certificate policy.
4. `duplicates.hold` ends the pass when another object is in charge of this BMC.
5. `connect.back_off` pauses after a restart, and after refused credentials: BMCs lock accounts after a few failed
  logins.
6. `operations.run` carries out the operation annotation (a restart), or restarts a BMC that failed for a long time.
7. `check.check` reads manager and systems into the status.
8. `approval.confirm` waits for the approval of a BMC whose serial number is not expected.
9. `servers.reconcile_servers` creates a Server for each new system and updates the known ones.
10. `duplicates.compare_managers` finds other objects for the same BMC by what its manager shows.
11. `event_subscription.ensure` keeps the event subscription.

The pass repeats after `settings.interval`, less often while the BMC sends events. The status is written once, at the
end.
"""

from metal.api.kinds import Kinds
from metal.api.names import IGNORE
from metal.controllers.bmc import check, connect, event_subscription, finalize, operations, restart, trust
from metal.controllers.bmc.dns import ensure_record
from metal.controllers.bmc.enrolment import approval, duplicates, servers
from metal.controllers.bmc.scope import Deps, Scope
from metal.controllers.shared.bmc_events import received_recently
from metal.controllers.shared.reconciled import refusals, reporting
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows

_PHASES = (
    trust.accept, restart.check_deadline, connect.resolve_endpoint, duplicates.hold, connect.back_off,
    operations.run, check.check, approval.confirm, servers.reconcile_servers, duplicates.compare_managers,
    event_subscription.ensure,
)  # fmt: skip


class BMCReconciler:
    """Checks a BMC at an interval: its manager, its health and its systems."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    async def reconcile(self, key: Key) -> Result:
        """One pass for one BMC."""
        bmc = self.deps.bmcs.get(key)
        if bmc is None:
            self.deps.memos.pop(key, None)
            return Done()
        scope = Scope(self.deps, bmc)
        async with refusals(scope):
            if result := await finalize.finalize(scope):
                return result
        if scope.operation == IGNORE:
            return Done()
        async with reporting(scope):
            result = restart.limit_requeue(scope, await self._run_phases(scope))
            await ensure_record(scope)  # also when the BMC does not answer: administrators then need its name most
        return result

    async def _run_phases(self, scope: Scope) -> Result:
        for phase in _PHASES:
            if result := await phase(scope):
                return result
        settings = self.deps.settings
        has_events = received_recently(scope.status, scope.now, settings.event_max_age)
        return Requeue(self.deps.context.jitter(settings.interval * (settings.event_slowdown if has_events else 1.0)))


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler, except those that its modules declare."""
    watched = (kinds.bmc, kinds.bmc_secret, kinds.endpoint, kinds.server)
    return (
        *follows(*watched, why="checks each BMC and creates Servers for its systems"),
        Permission(
            kinds.bmc, ("patch",), "adds its finalizer, and removes operation annotations that were carried out"
        ),
        Permission(kinds.bmc, ("patch",), "reports the state of the BMC", "status"),
    )
