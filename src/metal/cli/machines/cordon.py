"""metalctl cordon and uncordon"""

import click

from metal.cli.machines.batch import for_each, servers_argument
from metal.cli.machines.targets import target
from metal.cli.machines.unchanged import merge_if_unchanged
from metal.cli.support.context import CommandContext, on_api
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option


@click.command("cordon", epilog=EXITS)
@servers_argument
@output_option
@on_api
async def cordon(ctx: CommandContext, servers: tuple[str, ...], output: str | None) -> None:
    """Mark servers as unclaimable for new claims. Bound claims are not affected."""
    await _mark(ctx, servers, True, output)


@click.command("uncordon", epilog=EXITS)
@servers_argument
@output_option
@on_api
async def uncordon(ctx: CommandContext, servers: tuple[str, ...], output: str | None) -> None:
    """Mark servers as claimable."""
    await _mark(ctx, servers, False, output)


async def _mark(ctx: CommandContext, servers: tuple[str, ...], unclaimable: bool, output: str | None) -> None:
    word = "cordoned" if unclaimable else "uncordoned"

    async def one(name: str) -> Obj:
        found = await target(ctx, name)
        if found.server.spec.unclaimable is unclaimable:
            obj, message = found.obj, f"already {word}"
        else:
            patch = {"spec": {"unclaimable": unclaimable}}
            obj, message = await merge_if_unchanged(ctx.http, ctx.kinds.server, found.obj, patch), word
        if output is None:
            click.echo(f"server/{found.name} {message}")
        return obj

    await for_each(servers, one, output)
