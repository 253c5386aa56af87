"""How far the network boot of a Server has come, and whether it counts. No other module decides that.

In: `status.bootWindow`, whose phase the boot server and the registry advance as the machine fetches and reports.

A boot counts in three steps:

1. It has *succeeded* when its window is `Succeeded`: the machine has fetched its Ignition, or the probe has reported.
2. It is *verified* when the machine itself fetched the script (`await_proof`): the boot has the trust OutOfBand or
   Lease, or no second request for the script came within `race_window`.
3. The boot of a claim is then *recorded* in `status.tenancy.boot` (`record_success`), in a write of its own, before the
   server does anything else. From then on the claim *has booted* (`has_booted`), and its machine starts from its disk.

A window belongs to one version of one boot configuration and one boot generation of one claim (`belongs`). A boot is
*in progress* from the opening of its window until its result is recorded: until then resets are refused, and parking
waits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec

from metal.api import claim_boot
from metal.api.boot_window import BootWindow, Method, Phase, Purpose
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.server import Server, State
from metal.api.tenancy import ClaimBoot
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import key_of
from metal.machine import boot_window, directory, interfaces
from metal.machine.report import normal_mac

BY_INTERFACE = "interface-mac"
"""Index of Servers by the MAC addresses of their network interfaces."""


@dataclass(frozen=True)
class Tenant:
    """The claim that a boot is for, and its boot generation."""

    claim_uid: str = ""
    boot_generation: int = 0
    minimum_trust: str = field(default="", compare=False)
    """The claim's spec.minimumBootTrust, which the window keeps once it is open."""


OPERATOR = Tenant()
"""A boot of the operator itself, or of a maintenance."""


def tenant_of(window: BootWindow) -> Tenant:
    """The claim and the generation that a boot was started for."""
    return Tenant(window.claim_uid, window.boot_generation)


def belongs(window: BootWindow | None, config: ServerBootConfiguration, tenant: Tenant = OPERATOR) -> bool:
    """True when the window is a boot of this configuration as it is now (for this claim)."""
    if window is None or window.config_uid != config.metadata.uid or tenant_of(window) != tenant:
        return False
    return window.config_generation in (0, config.metadata.generation)


def has_succeeded(scope: Scope, config: ServerBootConfiguration) -> bool:
    """True when the boot of this configuration has succeeded."""
    window = scope.status.boot_window
    return window is not None and belongs(window, config) and window.phase == Phase.SUCCEEDED


def is_unfinished(scope: Scope) -> bool:
    """True when the last network boot started and did not succeed: nothing on the machine needs a shutdown."""
    window = scope.status.boot_window
    if window is None or window.phase == Phase.SUCCEEDED:
        return False
    return scope.tenancy.boot is None or window.purpose == Purpose.SANITIZATION


def is_in_progress(scope: Scope) -> bool:
    """True while a network boot is in progress, or has succeeded and is not recorded yet."""
    window = scope.status.boot_window
    if window is None or window.phase in (Phase.CLOSED, Phase.CONTESTED):
        return False
    if window.phase != Phase.SUCCEEDED:
        return True
    if window.purpose == Purpose.CLAIM:
        return not is_recorded(scope, window)
    return window.purpose == Purpose.DISCOVERY and scope.status.state == State.DISCOVERY


def is_recorded(scope: Scope, window: BootWindow) -> bool:
    """True when the claim's boot of this window is recorded as booted."""
    booted = scope.tenancy.boot
    return booted is not None and booted.booted_at is not None and booted.boot_generation >= window.boot_generation


def has_booted(scope: Scope) -> bool:
    """True when the claim has had its network boot, and the machine starts from its disk."""
    return claim_boot.has_booted(scope.tenancy.boot)


async def record_success(scope: Scope, claim: ServerClaim) -> Requeue | None:
    """Record the claim's boot before anything else is decided, also when the claim has changed since.

    Until the boot is verified, nothing is recorded and the machine is not changed: a contested boot starts again, but
    no later request stops a boot that counts as the tenant's.
    """
    window, booted = scope.status.boot_window, scope.tenancy.boot
    if window is None or window.claim_uid != claim.metadata.uid or window.phase != Phase.SUCCEEDED:
        return None
    if is_recorded(scope, window):
        return None
    unverified = await_proof(scope, window)
    if unverified is not None:
        return unverified
    boot = ClaimBoot(
        claim_uid=window.claim_uid, image=window.image, ignition_secret=window.ignition_secret, booted_at=scope.now,
        boot_generation=window.boot_generation, method=window.method, trust=window.trust,
        requested_generation=booted.requested_generation if booted is not None else 0,
    )  # fmt: skip
    scope.set(tenancy=msgspec.structs.replace(scope.tenancy, boot=boot))
    scope.record_event("Booted", f"the claim {key_of(claim)} booted {window.image} ({described(window)})")
    scope.set(boot_attempts=0)
    await scope.commit()
    return None


def described(window: BootWindow) -> str:
    """Method and trust of a boot, for messages."""
    return f"method {window.method or Method.IPXE}, trust {window.trust or 'unknown'}"


def await_proof(scope: Scope, window: BootWindow) -> Requeue | None:
    """None when the script went to an address of the machine, or no second request came within `race_window`.

    Until then, a second request for the script contests the boot (`boot_window.serve_script`), and it starts again.
    """
    left = boot_window.seconds_until_confirmed(window, scope.now, timedelta(seconds=scope.settings.race_window))
    if not left or window.client_address in _leased(scope):
        return None
    return scope.wait(
        WaitFor.BOOT_CONFIRMATION,
        f"the boot to be verified: no DHCP lease shows that {window.client_address} is this machine, so a second "
        "client may still request the script; to avoid this wait, report the leases of hosts from the DHCP server",
        until=scope.now + timedelta(seconds=left),
    )


def has_lease(scope: Scope) -> bool:
    """True when DHCP leased an address to a MAC address that the BMC shows, as far as leases are reported."""
    return bool(_leased(scope))


def _leased(scope: Scope) -> frozenset[str]:
    found = (e for mac in mac_index(scope.server) for e in scope.deps.endpoints.by_index(directory.BY_MAC, mac))
    return directory.addresses(found)


def mac_index(server: Server) -> Iterable[str]:
    """The MAC addresses that identify a server: those that its BMC shows."""
    return {mac for found in interfaces.out_of_band(server.status.network_interfaces) if (mac := normal_mac(found))}
