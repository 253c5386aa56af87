"""One more network boot of a claim's machine, because its owner raised `spec.bootGeneration` of the claim.

In: a claim that has booted and requests a higher generation than any before (`claim_boot.requests_boot`).

`accept` records the number in `status.tenancy.boot.requestedGeneration` before anything is done for it; the claim is
read from the API, because an outdated copy of it could cost a tenant's system. Then the state Reserved boots as for
the first time, and `netboot.progress` records the success with the number, for which no boot is made again.

`withdraw` ends a request that the claim no longer makes, as long as it has not succeeded: a boot in progress is
stopped, the machine is switched off and then starts from its disk. `request_changed` ends an Error of such a boot when
the claim requests another one, or none.
"""

import msgspec

from metal.api.boot_window import Phase, Purpose
from metal.api.claim import ServerClaim
from metal.api.claim_boot import requests_boot
from metal.api.kinds import Kinds
from metal.api.server import Failure
from metal.api.tenancy import ClaimBoot
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.netboot.progress import is_recorded
from metal.controllers.server.reasons import Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.crds import await_crds
from metal.controllers.server.tenancy.tenancy import read_claim
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import key_of
from metal.kube.meta.permissions import Permission

_BOOT_FAILURES = (Reason.NETWORK_BOOT_FAILED, Reason.BOOT_CONTESTED, Reason.BOOT_CONFIGURATION_NOT_READY)
"""Failures that end when the boot is no longer requested."""
_CACHE_LAG = 1.0
"""Seconds until the cache should be up to date."""


async def accept(scope: Scope, claim: ServerClaim) -> Requeue | None:
    """Record the requested generation; None when its boot may start, or is in progress. Raises ApiError.

    The claim is read from the API: an outdated copy of it could cost a tenant's system.
    """
    wanted, boot = claim.spec.boot_generation, scope.tenancy.boot
    if boot is None or _is_in_progress(scope, wanted):
        return None
    if not await _is_cache_current(scope, claim):
        return Requeue(_CACHE_LAG)
    if boot.requested_generation == wanted:
        return None
    _record(scope, boot, wanted)
    await scope.commit()
    written = scope.tenancy.boot
    if written is None or written.requested_generation != wanted:
        return await_crds(scope)
    scope.record_event(
        "NetworkBootRequested",
        f"the claim {key_of(claim)} requests network boot {wanted}: its system is "
        "shut down once its boot configuration is ready",
    )
    return None


def _record(scope: Scope, boot: ClaimBoot, requested: int) -> None:
    boot = msgspec.structs.replace(boot, requested_generation=requested)
    scope.set(tenancy=msgspec.structs.replace(scope.tenancy, boot=boot))


def _is_in_progress(scope: Scope, wanted: int) -> bool:
    window = scope.status.boot_window
    if window is None or window.purpose != Purpose.CLAIM or window.boot_generation != wanted:
        return False
    return window.phase not in (Phase.CLOSED, Phase.CONTESTED)


async def _is_cache_current(scope: Scope, claim: ServerClaim) -> bool:
    """False while the cache is behind the API."""
    meta = claim.metadata
    fresh = await read_claim(scope, meta.name, meta.namespace)
    if fresh is None or fresh.metadata.uid != meta.uid or fresh.metadata.deletion_timestamp is not None:
        return False
    boot = scope.tenancy.boot
    return fresh.spec == claim.spec and requests_boot(fresh, boot) == requests_boot(claim, boot)


async def withdraw(scope: Scope, claim: ServerClaim) -> Requeue | None:
    """End a boot that is no longer requested; the machine then boots from its disk. Raises BMCError."""
    boot = scope.tenancy.boot
    if boot is None or boot.requested_generation <= boot.boot_generation:
        return None
    if not await _is_cache_current(scope, claim):
        return Requeue(_CACHE_LAG)
    if _has_started(scope):
        scope.close_window()
        busy = await power.converge(scope, PowerState.OFF, "the network boot was withdrawn")
        if busy is not None:
            return busy
        scope.set(boot_window=None, boot_attempts=0)
    _record(scope, boot, 0)
    scope.record_event("NetworkBootWithdrawn", f"network boot {boot.requested_generation} is no longer requested")
    return None


def _has_started(scope: Scope) -> bool:
    """True when the boot has started: neither the former system nor a new one runs."""
    window = scope.status.boot_window
    return window is not None and window.purpose == Purpose.CLAIM and not is_recorded(scope, window)


def request_changed(scope: Scope, claim: ServerClaim | None, failure: Failure) -> bool:
    """True when a boot that the claim requested failed, and the claim now requests another one, or none."""
    boot = scope.tenancy.boot
    if claim is None or boot is None or boot.requested_generation <= boot.boot_generation:
        return False
    return failure.reason in _BOOT_FAILURES and claim.spec.boot_generation != boot.requested_generation


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.claim, ("get",), "confirms that a claim requests another network boot"),)
