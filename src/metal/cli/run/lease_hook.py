"""metalctl lease-hook: called by a DHCP server for each lease."""

import asyncio
from pathlib import Path

import click

from metal.api.kinds import Kinds, kinds
from metal.cli.support.connection import connect, connection_options
from metal.kube.client.errors import ApiError
from metal.kube.client.protocol import Client
from metal.machine.leases import lease_ended, lease_given

_IGNORED = ("init", "tftp", "arp-add", "arp-del", "relay-snoop")
"""Further actions that dnsmasq calls its dhcp-script for."""


# No options after the first argument: the last ones come from a DHCP client, such as a host name of --kubeconfig=/x.
@click.command("lease-hook", context_settings={"allow_interspersed_args": False})
@click.argument("action")
@click.argument("mac", default="")
@click.argument("ip", default="")
@click.argument("hostname", default="")
@connection_options
def command(
    action: str, mac: str, ip: str, hostname: str, kubeconfig: Path | None, context: str | None, api_group: str
) -> None:
    """Report a DHCP lease to the control plane: ACTION is add, old or del, followed by MAC and IP.

    For dnsmasq, use --dhcp-script=FILE with this content:

    \b
      #!/bin/sh
      exec /PATH/TO/metalctl lease-hook --kubeconfig /PATH/TO/kubeconfig "$@"

    Report the leases of hosts too, not only of BMCs: boot scripts are then served only to addresses that were leased to
    the network interfaces of the server.
    """
    if action in _IGNORED:
        return
    if action not in ("add", "old", "del"):
        raise click.UsageError(f"ACTION is {action!r}: use add, old or del")
    try:
        asyncio.run(_report(action, mac, ip, kubeconfig, context, kinds(api_group)))
    except ValueError as exc:
        raise click.UsageError(str(exc)) from None
    except ApiError as exc:
        raise click.ClickException(f"the lease {mac} {ip} was not recorded: {exc.message}") from None


async def _report(action: str, mac: str, ip: str, kubeconfig: Path | None, context: str | None, names: Kinds) -> None:
    client: Client = connect(kubeconfig, context)
    try:
        if action == "del":
            await lease_ended(client, names, mac, ip)
        else:
            await lease_given(client, names, mac, ip)
    finally:
        await client.aclose()
