"""metalctl status"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from metal.api.bmc import BMC
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds, kinds
from metal.api.server import Server
from metal.cli.machines.unenrolled import unenrolled
from metal.cli.support.connection import connect, connection_options
from metal.cli.support.exits import read_failure
from metal.cli.support.table import WIDE, render, rows
from metal.kube.client.errors import ApiError, Forbidden
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock
from metal.move.pause import Mark, read_mark

PAUSES = {
    "source": "paused: the objects are being moved to {where}; no manager acts until the move ends",
    "target": "paused: the objects are being moved here from {where}; no manager acts until the move ends",
    "moved": "these objects are no longer valid: they were moved to {where}",
}
"""Meaning of a pause, by its role."""


@click.command("status")
@connection_options
@click.option("--namespace", default="metal-system", show_default=True, help="Namespace of the managers.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
def command(kubeconfig: Path | None, context: str | None, api_group: str, namespace: str, output: str) -> None:
    """Show the state of every server, its power, its claim, and what it waits for.

    With -o json: a list of objects with server, state, since, power, claim, waitingFor, waitName (name of the wait, for
    programs) and deadline; times are RFC 3339 or null. A warning on stderr shows that the objects are being moved or
    were moved (`metalctl move`).
    """
    try:
        seen = asyncio.run(_seen(kubeconfig, context, kinds(api_group), namespace, with_bmcs=output == "table"))
    except ApiError as exc:
        raise read_failure(exc, api_group) from None
    if seen.pause:
        click.echo(PAUSES.get(seen.pause.role, "paused").format(where=seen.pause.where), err=True)
    found = rows(seen.servers, system_clock())
    if output == "json":
        click.echo(json.dumps([row.as_json() for row in found], indent=2))
        return
    if found:
        console = Console()
        console.width = console.width if console.is_terminal else WIDE  # a pipe has no width to wrap at
        console.print(render(found))
    else:
        click.echo("no servers found: servers are enrolled when a BMC gets a DHCP lease or a BMC object is created")
    for line in unenrolled(seen.bmcs, seen.endpoints, seen.servers):
        click.echo(line)


@dataclass(frozen=True)
class _Seen:
    servers: tuple[Server, ...]
    bmcs: tuple[BMC, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    pause: Mark | None = None


async def _seen(
    kubeconfig: Path | None, context: str | None, names: Kinds, namespace: str, *, with_bmcs: bool
) -> _Seen:
    client = connect(kubeconfig, context)
    try:
        pause = await _pause(client, namespace)
        if not with_bmcs:
            return _Seen((await client.list(names.server)).items, pause=pause)
        bmcs, endpoints = await client.list(names.bmc), await client.list(names.endpoint)
        # Servers come last: a BMC that was listed has not lost the server that it got meanwhile.
        return _Seen((await client.list(names.server)).items, bmcs.items, endpoints.items, pause)
    finally:
        await client.aclose()


async def _pause(client: Client, namespace: str) -> Mark | None:
    try:
        return await read_mark(client, namespace)
    except Forbidden:  # an account with access to servers only can still list them
        return None
