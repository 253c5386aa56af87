"""metalctl lease-hook: called by a DHCP server for each lease."""

import asyncio
import os
from pathlib import Path

import click

from metal.api.kinds import Kinds, kinds
from metal.cli.support.connection import connect, connection_options
from metal.kube.client.errors import ApiError
from metal.kube.client.protocol import Client
from metal.machine.lease_calls import LeaseChange, changes
from metal.machine.leases import lease_ended, lease_given


# No options after the first argument: the last ones come from a DHCP client, such as a host name of --kubeconfig=/x.
@click.command("lease-hook", context_settings={"allow_interspersed_args": False})
@click.argument("action")
@click.argument("arguments", nargs=-1)
@connection_options
def command(
    action: str, arguments: tuple[str, ...], kubeconfig: Path | None, context: str | None, api_group: str
) -> None:
    """Report a DHCP lease to the control plane, as dnsmasq and Kea call it.

    \b
    dnsmasq (dhcp-script) gives add, old or del, followed by MAC and IP.
    Kea (libdhcp_run_script.so) gives the name of a hook point, and the lease in the environment.

    `metalctl dhcp-config` prints configurations of both, and the script that they call.

    Report the leases of hosts too, not only of BMCs: boot scripts are then served only to addresses that were leased to
    the network interfaces of the server.
    """
    try:
        found = changes((action, *arguments), os.environ)
        if found:
            asyncio.run(_report(found, kubeconfig, context, kinds(api_group)))
    except ValueError as exc:
        raise click.UsageError(str(exc)) from None
    except ApiError as exc:
        what = ", ".join(f"{change.mac} {change.ip}" for change in found)
        raise click.ClickException(f"the lease {what} was not recorded: {exc.message}") from None


async def _report(changes: tuple[LeaseChange, ...], kubeconfig: Path | None, context: str | None, names: Kinds) -> None:
    client: Client = connect(kubeconfig, context)
    try:
        for change in changes:
            if not change.given:
                await lease_ended(client, names, change.mac, change.ip)
            elif change.mac:  # a DHCPv6 server that restarted knows its leases without it
                await lease_given(client, names, change.mac, change.ip)
    finally:
        await client.aclose()
