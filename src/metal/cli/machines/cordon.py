"""metalctl cordon and uncordon"""

import click

from metal.cli.machines.several import for_each, servers_argument
from metal.cli.machines.targets import target
from metal.cli.support import plain
from metal.cli.support.context import CommandContext, on_api
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.plain import Obj


@click.command("cordon", epilog=EXITS)
@servers_argument
@output_option
@on_api
async def cordon(desk: CommandContext, servers: tuple[str, ...], output: str | None) -> None:
    """Keep new claims away from servers. A claim that has one keeps it."""
    await _mark(desk, servers, True, output)


@click.command("uncordon", epilog=EXITS)
@servers_argument
@output_option
@on_api
async def uncordon(desk: CommandContext, servers: tuple[str, ...], output: str | None) -> None:
    """Let claims have servers again."""
    await _mark(desk, servers, False, output)


async def _mark(desk: CommandContext, servers: tuple[str, ...], unclaimable: bool, output: str | None) -> None:
    word = "cordoned" if unclaimable else "uncordoned"

    async def one(name: str) -> Obj:
        found = await target(desk, name)
        if found.server.spec.unclaimable is unclaimable:
            obj, told = found.obj, f"is {word} already"
        else:
            patch = {"spec": {"unclaimable": unclaimable}}
            obj, told = await plain.merge(desk.http, desk.kinds.server, found.name, "", patch), word
        if output is None:
            click.echo(f"server/{found.name} {told}")
        return obj

    await for_each(servers, one, output)
