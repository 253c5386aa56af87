"""Whether a boot that succeeded was the machine's own. DHCP knows; where it does not say, time must tell."""

from collections.abc import Iterable
from datetime import timedelta

from metal.api.boot_window import BootWindow
from metal.api.server import Server
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import directory
from metal.machine.report import normal_mac

BY_MAC = "mac"
"""Index of Servers by their network cards."""


def mac_index(server: Server) -> Iterable[str]:
    """The MAC addresses of a server's network cards."""
    return {mac for nic in server.status.network_interfaces if (mac := normal_mac(nic.mac_address))}


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
    found = (e for mac in mac_index(scope.server) for e in scope.deps.endpoints.by_index(directory.BY_MAC, mac))
    return address in directory.addresses(found)
