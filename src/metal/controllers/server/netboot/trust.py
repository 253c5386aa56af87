"""How far a network boot can be trusted, and what would raise that. Nothing else decides it before the power-on.

In: the minimum that the site and the claim require, and the MAC addresses that the BMC shows. A boot reaches `Lease`
when the script goes to an address that DHCP leased to one of these; without one it reaches only `FirstRequest`.

A machine whose boot cannot reach the minimum is not powered on: the server waits (`BootTrust`) and reads its interfaces
again, and goes to Error at the deadline. Whether a boot did reach it is decided by the boot server, request by request
(`metal.machine.boot_window`); `missing` says in the wait for that boot what is not reported yet.
"""

from metal.api.boot_window import BootWindow, Phase, Trust
from metal.controllers.server.bmc import inventory_summary
from metal.controllers.server.netboot.progress import has_lease
from metal.controllers.server.reasons import Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import interfaces
from metal.machine.boot_window import higher, reaches

_MOST = 8
"""Most MAC addresses in a message."""


def required(scope: Scope, claims: str = "") -> str:
    """The minimum trust: the site's, or the claim's spec.minimumBootTrust where it is stricter."""
    return higher(scope.settings.minimum_trust, claims)


def is_reachable(scope: Scope, minimum: str) -> bool:
    """True when a boot of this server can reach `minimum`, as far as the last reading of its BMC shows."""
    shown = interfaces.out_of_band(scope.status.network_interfaces)
    return reaches(Trust.LEASE if shown else Trust.FIRST_REQUEST, minimum)


async def before_power_on(scope: Scope, minimum: str) -> Requeue | None:
    """None when a boot can reach `minimum`; else the wait, or Error past its deadline. Raises BMCError."""
    if is_reachable(scope, minimum):
        return None
    if minimum == Trust.LEASE:
        found = await scope.connected().inventory(scope.uri)
        shown = inventory_summary.of_inventory(found, scope.status)
        scope.set(network_interfaces=shown["network_interfaces"])
        if is_reachable(scope, minimum):
            return None
    why = _UNREACHABLE[Trust(minimum)]
    if scope.overdue(WaitFor.BOOT_TRUST):
        return scope.fail(Reason.BOOT_TRUST_TOO_LOW, f"no network boot can have the trust {minimum}: {why}")
    return scope.wait(WaitFor.BOOT_TRUST, f"a way to boot with the trust {minimum}: {why}")


_UNREACHABLE = {
    Trust.OUT_OF_BAND: (
        "this server has no boot method whose token goes through its BMC. Set boot.minimumTrust to Lease in the "
        "manager's configuration; a claim with spec.minimumBootTrust OutOfBand has to be created again without it"
    ),
    Trust.LEASE: (
        "its BMC shows no MAC address of a network interface, so no DHCP lease identifies the machine. Some BMCs show "
        "them only after the machine was switched on once: operation=force-on-server; or update the BMC; or set "
        "boot.minimumTrust to FirstRequest in the manager's configuration"
    ),
}


def missing(scope: Scope, window: BootWindow) -> str:
    """What the machine lacks to be served, to be added to the wait for its boot; empty when nothing is known."""
    if window.phase == Phase.SCRIPT_SERVED and window.trust == Trust.FIRST_REQUEST:
        return (
            f"; no DHCP lease shows that {window.client_address} is this machine, so its Ignition is served only after "
            f"{scope.settings.race_window:.0f} s in which no other client requests the script; to avoid this, let the "
            "DHCP server report its leases (metalctl lease-hook)"
        )
    if window.phase != Phase.OPEN or window.minimum_trust != Trust.LEASE or has_lease(scope):
        return ""
    macs = sorted(interfaces.out_of_band(scope.status.network_interfaces))[:_MOST]
    return (
        "; nothing is served before a DHCP lease is reported for one of its MAC addresses "
        f"({', '.join(macs)}): let the DHCP server report its leases (metalctl lease-hook), or set boot.minimumTrust "
        "to FirstRequest in the manager's configuration"
    )
