"""Bugs of the Go operator and their kin in network boots, each put back by a small switch; see `bug`.

The numbers are those of its issues and of its weaknesses (W), in the project's reference of that operator.
"""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from metal.api import claim_boot
from metal.api.tenancy import Tenancy
from metal.controllers.server.netboot import boot, progress, readiness, trust
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import discovery, reserved
from metal.controllers.server.tenancy import reimage, tenancy
from metal.kube.controller.controller import Requeue
from metal.machine import boot_window, kept_tenancy
from metal.machine.boot_window import Refused
from metal.machineapi.bootserver.service import BootService
from tests.mutants import stories
from tests.mutants.bug import bug, disable_correction_of_records, nothing, unbooted


@bug(stories.power_loss, "imaged a second time")
def boots_the_network_after_a_power_loss(patch: pytest.MonkeyPatch) -> None:
    """W14: a tenant's machine that lost its power is sent to the network again."""

    async def follow(scope: Scope, claim: Any) -> Requeue:
        if scope.status.power_state == "Off":
            scope.set(tenancy=unbooted(scope.tenancy), boot_window=None)
            return Requeue(1)
        await scope.observe(max_age=0)
        return Requeue(5)

    patch.setattr(reserved, "_follow_power", follow)
    disable_correction_of_records(patch)


@bug(stories.late_ignition, "before its boot configuration was Ready")
def switches_on_before_the_boot_configuration_is_ready(patch: pytest.MonkeyPatch) -> None:
    """#247: a reserved server is power-cycled before its boot configuration is Ready."""
    patch.setattr(readiness, "is_ready", lambda _: True)


@bug(stories.old_report, "without a report of its present boot")
def takes_the_report_of_a_former_boot(patch: pytest.MonkeyPatch) -> None:
    """W10, #101: any report for a UUID is accepted, from any boot."""
    patch.setattr(boot_window, "_require_token", lambda *_: None)


@bug(stories.curious_neighbour, "got what is served to", 2)
def serves_an_ignition_to_whoever_asks(patch: pytest.MonkeyPatch) -> None:
    """#749: what is served for a UUID is served to anybody who knows it."""
    patch.setattr(boot_window, "_require_token", lambda *_: None)


@bug(stories.curious_neighbour, "got what is served to", 2)
def serves_a_script_to_whoever_asks(patch: pytest.MonkeyPatch) -> None:
    """#749: the script carries the token, and its reader is not looked at."""

    class Everybody(frozenset[str]):
        def __contains__(self, _: object) -> bool:
            return True

    async def of_everybody(*_: object) -> frozenset[str]:
        return Everybody({"any"})

    patch.setattr(BootService, "_leases", of_everybody)


@bug(stories.first_neighbour, "got what is served to", 2)
def serves_whoever_asks_first(patch: pytest.MonkeyPatch) -> None:
    """Ours, of a former version: without a known lease the first client is served, whatever the site requires."""
    patch.setattr(boot_window, "reaches", lambda *_: True)


@bug(stories.first_neighbour, "got what is served to", 2)
def records_no_minimum(patch: pytest.MonkeyPatch) -> None:
    """A boot window without a minimum is one of a former version, and served as such."""
    patch.setattr(trust, "higher", lambda *_: "")


@bug(stories.new_image, "imaged a second time")
def boots_a_changed_image_under_a_running_tenant(patch: pytest.MonkeyPatch) -> None:
    """#153 without a limit: a change of the claim's image re-images the machine at once."""
    run = reserved.run

    async def eager(scope: Scope) -> Requeue:
        claim = await tenancy.find_claim(scope)
        done = scope.status.tenancy.boot
        if claim is not None and done is not None and done.image not in ("", claim.spec.image):
            scope.set(tenancy=unbooted(scope.tenancy), boot_window=None)
            await scope.commit()
        return await run(scope)

    patch.setattr(reserved, "run", eager)
    disable_correction_of_records(patch)


@bug(stories.plain_life, "which it never requested|imaged a second time")
def boots_for_every_generation_of_the_claim(patch: pytest.MonkeyPatch) -> None:
    """W14: each change of a claim, of its power too, has its machine boot over the network."""
    find = tenancy.find_claim

    async def changed(scope: Scope) -> Any:
        claim = await find(scope)
        number = claim.metadata.generation if claim is not None else 0
        return claim and msgspec.structs.replace(
            claim, spec=msgspec.structs.replace(claim.spec, boot_generation=number)
        )

    async def always(*_: object) -> bool:
        return True

    patch.setattr(reserved, "find_claim", changed)
    patch.setattr(reimage, "_is_cache_current", always)


def _asking(claim: Any, number: int) -> Any:
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, boot_generation=number))


@bug(stories.asked_and_lost_status, "imaged a second time")
def forgets_which_boot_was_asked_for(patch: pytest.MonkeyPatch) -> None:
    """A server that lost its status takes the last request of its claim for a new one."""
    take = tenancy.record_tenant

    def forgetful(scope: Scope, claim: Any) -> None:
        take(scope, _asking(claim, 0))

    def rebuilt(value: str, now: Any) -> Tenancy:
        found = rebuild(value, now)
        boot = None if found.boot is None else msgspec.structs.replace(found.boot, boot_generation=0)
        return msgspec.structs.replace(found, boot=boot)

    rebuild = kept_tenancy.rebuilt
    patch.setattr(kept_tenancy, "rebuilt", rebuilt)
    patch.setattr(reserved, "record_tenant", forgetful)
    patch.setattr(claim_boot, "booted_generation", lambda _, done: done.boot_generation)


@bug(stories.asked_again, "imaged a second time|is Reserved and|runs None")
def never_writes_down_that_it_has_booted_again(patch: pytest.MonkeyPatch) -> None:
    """W14: a request that is answered and not noted is answered again and again."""
    note = progress.record_success

    async def once(scope: Scope, claim: Any) -> Requeue | None:
        if scope.status.tenancy.boot is None:
            return await note(scope, claim)
        window = scope.status.boot_window
        if window is not None and window.phase == "Succeeded" and window.boot_generation:
            scope.set(boot_window=None)
        return None

    patch.setattr(reserved, "record_success", once)


@bug(stories.changed_mind, "runs None|is Reserved and")
def leaves_a_withdrawn_boot_half_way(patch: pytest.MonkeyPatch) -> None:
    """What is served no more stays in the machine, which waits for it for ever."""

    async def forget(scope: Scope, _: Any) -> None:
        scope.close_window()

    patch.setattr(reimage, "withdraw", forget)


@bug(stories.impatient_claims, "imaged a second time|is Reserved|is Error|runs None", 2, patience=300)
def never_ends_a_boot(patch: pytest.MonkeyPatch) -> None:
    """W14: the override is written again and again, and each reboot boots the network."""

    async def again(scope: Scope, window: Any) -> None:
        if window.purpose == "Claim":
            scope.set(tenancy=unbooted(scope.tenancy), boot_window=None)

    patch.setattr(boot, "_succeeded", again)
    patch.setattr(reserved, "record_success", nothing)


@bug(stories.spent_token, "password or token")
def tells_a_token_in_an_event(patch: pytest.MonkeyPatch) -> None:
    """W23: what is refused is quoted."""

    def quote(expected: str, token: str) -> None:
        if not expected or expected != boot_window.digest(token):
            raise Refused("TokenSpent", f"the token {token} was used before")

    patch.setattr(boot_window, "_require_token", quote)
    patch.setattr(boot_window, "require_open", lambda window, _: window)


@bug(stories.old_report, "ReportLost|is Error|is Discovery|without a report")
def believes_whatever_report_is_stored(patch: pytest.MonkeyPatch) -> None:
    """W10: fresh enough is good enough; whose boot it was is not asked."""
    patch.setattr(discovery, "has_succeeded", lambda *_: True)
    patch.setattr(discovery, "boot", SimpleNamespace(network_boot=nothing))

    async def stored(scope: Scope) -> dict[str, object]:
        return {}

    patch.setattr(discovery, "read_report", stored)
