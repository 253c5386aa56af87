"""metalctl status"""

import asyncio
import json
from pathlib import Path

import click
from rich.console import Console

from metal.api.kinds import kinds
from metal.api.server import Server
from metal.cli.connection import connect, connection_options
from metal.cli.table import render, rows
from metal.kube.clock import system_clock
from metal.kube.errors import ApiError

WIDE = 200
"""Columns when the output is no terminal."""


@click.command("status")
@connection_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(kubeconfig: Path | None, context: str | None, api_group: str, output: str) -> None:
    """Show every server: state, since when, power, claim, and what it waits for.

    Reads the API once. With -o json: a list of objects with server, state, since, power, claim and waitingFor.
    """
    try:
        servers = asyncio.run(_servers(kubeconfig, context, api_group))
    except ApiError as exc:
        raise click.ClickException(f"the API did not answer: {exc.message}. Is `metalctl up` running?") from None
    found = rows(servers, system_clock())
    if output == "json":
        click.echo(json.dumps([row.as_json() for row in found], indent=2))
    elif not found:
        click.echo("no servers yet: they appear when a BMC gets a DHCP lease, or a BMC object is created")
    else:
        console = Console()
        console.width = console.width if console.is_terminal else WIDE  # a pipe has no edge to wrap at
        console.print(render(found))


async def _servers(kubeconfig: Path | None, context: str | None, api_group: str) -> tuple[Server, ...]:
    client = connect(kubeconfig, context)
    try:
        return (await client.list(kinds(api_group).server)).items
    finally:
        await client.aclose()
