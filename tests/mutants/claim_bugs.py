"""Bugs of the Go operator and their kin in binding, tenancy and power, each put back by a small switch; see `bug`.

The numbers are those of its issues and of its weaknesses (W), in the project's reference of that operator.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from metal.api.server import State
from metal.api.tenancy import Tenancy
from metal.bmc.power import PowerState
from metal.controllers.claim import matching
from metal.controllers.claim import reconciler as claims
from metal.controllers.server import power
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import available, cleanup, maintenance, reserved
from metal.controllers.server.tenancy import tenancy
from metal.controllers.server.tenancy.adoption import adoption
from metal.controllers.server.tenancy.adoption.adoption_table import Annotation
from metal.kube.controller.controller import Requeue
from tests.mutants import stories
from tests.mutants.bug import bug, disable_correction_of_records, nothing


@bug(stories.deaf_system, "is Cleanup and On|is Error and On|which is gone|resets within a minute")
def asks_gracefully_and_never_cuts_power(patch: pytest.MonkeyPatch) -> None:
    """W15: an operating system that ignores the request blocks the server for ever."""

    async def ask_again(scope: Scope, request: Any, why: str) -> Requeue:
        return await power._act(scope, request)

    patch.setattr(power, "_force", ask_again)


@bug(stories.plain_life, "became Available while its power was")
def releases_before_off_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    """#1039, #1048: the claim is forgotten while its machine still runs."""
    patch.setattr(cleanup, "power", SimpleNamespace(converge=nothing))


@bug(stories.stale_off, "became Available while its power was")
def believes_an_off_from_before_the_power_on(patch: pytest.MonkeyPatch) -> None:
    """#1048: a BMC's old reading counts as confirmation."""
    patch.setattr(power, "is_outdated_off", lambda *_: False)


@bug(stories.lost_status, "imaged a second time")
def boots_a_tenant_again_whose_status_was_lost(patch: pytest.MonkeyPatch) -> None:
    """#1108: a restored server is treated as a new one: neither annotation nor claim is asked."""
    disable_correction_of_records(patch)
    patch.setattr(adoption, "_annotation", lambda _: Annotation.NONE)
    patch.setattr(adoption, "assume_booted", lambda _: None)


@bug(stories.same_name_again, "without being cleaned up")
def takes_a_new_claim_for_the_old_one(patch: pytest.MonkeyPatch) -> None:
    """#773: a claim of the same name inherits the server as its last tenant left it."""
    patch.setattr(tenancy, "_holds", lambda claim, _: claim.metadata.deletion_timestamp is None)
    patch.setattr(claims, "_is_held_by", _same_name)


def _same_name(claim: Any, server: Any) -> bool:
    ref = server.spec.server_claim_ref
    return ref is not None and (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)


@bug(stories.plain_life, "without a Cleanup|became Available while|is Reserved|which is gone")
def skips_cleanup(patch: pytest.MonkeyPatch) -> None:
    """The Go operator has no Cleanup: Reserved goes to Available."""
    go = Scope.transition

    def shortcut(self: Scope, state: State, message: str, *, warning: bool = False) -> Requeue:
        if state is State.CLEANUP:
            self.set(tenancy=Tenancy(data="Clean"), boot_window=None)
            state = State.AVAILABLE
        go(self, state, message, warning=warning)
        return Requeue(10)

    patch.setattr(Scope, "transition", shortcut)


@bug(stories.kept_away, "it was cordoned", 2)
def takes_a_cordoned_server(patch: pytest.MonkeyPatch) -> None:
    """#140, #141: a cordon has no effect."""
    patch.setattr(matching, "_cordoned", lambda *_: None)


@bug(stories.kept_away, "taint that the claim does not tolerate", 2)
def takes_a_tainted_server(patch: pytest.MonkeyPatch) -> None:
    """#137, #878: a taint has no effect."""
    patch.setattr(matching, "_tainted", lambda *_: None)


@bug(stories.named_early, "it was in state")
def takes_a_server_that_is_not_available(patch: pytest.MonkeyPatch) -> None:
    """#133: a claim binds to a server in Discovery."""
    patch.setattr(matching, "_not_available", lambda *_: None)


@bug(stories.maintained, "a maintenance held it|in state Maintenance", 2)
def takes_a_server_in_maintenance(patch: pytest.MonkeyPatch) -> None:
    """#300, #301: a claim binds under a maintenance."""
    judge = matching._not_available

    def blind(claim: Any, server: Any) -> Any:
        plain = msgspec.structs.replace(server.spec, server_maintenance_ref=None)
        state = "Available" if server.status.state == "Maintenance" else server.status.state
        status = msgspec.structs.replace(server.status, state=state)
        return judge(claim, msgspec.structs.replace(server, spec=plain, status=status))

    patch.setattr(matching, "_not_available", blind)


@bug(stories.impatient_claims, "claim|imaged|took", 2)
def takes_what_another_claim_has_taken(patch: pytest.MonkeyPatch) -> None:
    """#158, #190, #230, #356, #374, #389, #391: two claims believe their caches, and the last writer wins."""

    async def take(self: Any, scope: Any, name: str) -> Any:
        client, kind = self.deps.context.client, self.deps.context.kinds.server
        await asyncio.sleep(5)
        await client.patch(kind, name, {"spec": {"serverClaimRef": None}})
        ref = {"namespace": scope.claim.metadata.namespace, "name": scope.claim.metadata.name}
        return await client.patch(kind, name, {"spec": {"serverClaimRef": ref, "bootConfigurationRef": ref}})

    patch.setattr(matching, "_held", lambda *_: None)
    patch.setattr(matching, "_not_available", lambda *_: None)
    patch.setattr(claims.ServerClaimReconciler, "_reserve", take)


@bug(stories.plain_life, "without a deadline")
def waits_without_a_deadline(patch: pytest.MonkeyPatch) -> None:
    """W12, W27: waits have no end."""
    wait = Scope.wait

    def endless(self: Scope, name: WaitFor, text: str, **more: Any) -> Requeue:
        return wait(self, name, text, poll=more.get("poll"))

    patch.setattr(Scope, "wait", endless)
    patch.setattr(Scope, "_deadline", lambda *_: None)


@bug(stories.dead_power, "after the deadline")
def never_enters_error(patch: pytest.MonkeyPatch) -> None:
    """W16: nothing ever sets Error; a missed deadline is silence."""
    patch.setattr(Scope, "fail", lambda *_: Requeue(30))


@bug(stories.pressed_button, "is Available and On")
def leaves_an_available_server_on(patch: pytest.MonkeyPatch) -> None:
    """W13, #135: a server that is on stays on, and cannot be claimed."""
    patch.setattr(available, "power", SimpleNamespace(converge=nothing))


@bug(stories.plain_life, "was Ready before it had booted")
def says_ready_when_it_is_bound(patch: pytest.MonkeyPatch) -> None:
    """W16: a claim tells nothing of its boot."""
    patch.setattr(claims, "_report_boot", lambda scope, _: scope.report("Ready", True, "Bound", "bound"))


@bug(stories.maintained, "claim does not request power|runs the probe|reached a claimed server|without a Cleanup", 2)
def discovers_a_tenants_server_after_its_maintenance(patch: pytest.MonkeyPatch) -> None:
    """#264, #455: what ends a maintenance forgets whose server it was."""

    async def leave(scope: Scope) -> Requeue:
        return scope.transition(State.INITIAL, "ended")

    patch.setattr(maintenance, "_leave", leave)


@bug(stories.off_claim, "claim does not request power|runs None")
def boots_a_claim_that_wants_its_server_off(patch: pytest.MonkeyPatch) -> None:
    """#96: the claim's power is not looked at before its first boot."""
    patch.setattr(reserved, "_stay_off", _boot_anyway)


@bug(stories.switched_off, "is Reserved and On")
def does_not_follow_the_claims_power(patch: pytest.MonkeyPatch) -> None:
    """#96: once booted, the machine stays as it is."""

    async def rest(scope: Scope, _: Any) -> Requeue:
        await scope.observe()
        return await reserved._settled(scope, "as it is")

    patch.setattr(reserved, "_follow_power", rest)


@bug(stories.plain_life, "which is gone")
def forgets_to_say_who_used_the_server(patch: pytest.MonkeyPatch) -> None:
    """#87: a deleted claim leaves its reference behind, and no other claim gets the server."""

    async def stay(scope: Scope) -> Requeue:
        if await tenancy.find_claim(scope) is None:
            await power.converge(scope, PowerState.OFF, "released")
            return Requeue(60)
        return await _RUN(scope)

    patch.setattr(reserved, "run", stay)


_RUN: Callable[[Scope], Awaitable[Requeue]] = reserved.run


async def _boot_anyway(scope: Scope, claim: Any) -> Requeue:
    return await reserved._network_boot(scope, claim)


@bug(stories.late_ignition, "ends .* later", patience=300)
def counts_each_deadline_from_the_present_time(patch: pytest.MonkeyPatch) -> None:
    """W12: each pass computed another deadline, so that no wait ended."""
    deadline = Scope._deadline
    patch.setattr(Scope, "_deadline", lambda self, name, _, seconds: deadline(self, name, self.now, seconds))
