"""Whether a boot that succeeded was the machine's own. DHCP knows; where it does not say, time must tell."""

from collections.abc import Iterable
from datetime import timedelta
from ipaddress import ip_address

from metal.api.boot_window import BootWindow
from metal.api.endpoint import Endpoint
from metal.api.report import normal_mac
from metal.api.server import Server
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

BY_MAC = "mac"
"""Index of Servers by their network cards."""
LEASES = "lease-mac"
"""Index of Endpoints by their MAC address."""


def mac_index(server: Server) -> Iterable[str]:
    """The MAC addresses of a server's network cards."""
    return {mac for nic in server.status.network_interfaces if (mac := normal_mac(nic.mac_address))}


def lease_index(endpoint: Endpoint) -> Iterable[str]:
    """The MAC address that an Endpoint is about."""
    mac = normal_mac(endpoint.spec.mac_address)
    return (mac,) if mac else ()


def await_proof(scope: Scope, window: BootWindow) -> Requeue | None:
    """None when the script of this boot went to an address of the machine, or nobody else claimed to be it for long.

    Before, a second request for the script contests the boot (`boot_window.serve_script`), and it starts again.
    """
    if window.script_served_at is None or _is_leased(scope, window.client_address):
        return None
    until = window.script_served_at + timedelta(seconds=scope.settings.race_window)
    if scope.now >= until:
        return None
    return scope.wait(
        "BootConfirmation",
        f"proof that {window.client_address} is this machine: DHCP reported no lease of it, so another party's boot "
        "cannot be told apart for a while (report the leases of hosts, too, and this wait is gone)",
        until=until,
    )


def _is_leased(scope: Scope, address: str) -> bool:
    leases = (e for mac in mac_index(scope.server) for e in scope.deps.endpoints.by_index(LEASES, mac))
    return any(_same(endpoint.spec.ip or "", address) for endpoint in leases)


def _same(one: str, other: str) -> bool:
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return False
