"""metalctl park and unpark"""

from datetime import timedelta

import click

from metal.api.names import PARK, UNPARK
from metal.api.server import Server, State
from metal.cli.machines import operations
from metal.cli.machines.batch import for_each, servers_argument
from metal.cli.machines.targets import decoded, in_error, target
from metal.cli.support.context import CommandContext, on_api
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import Awaited, timeout_option, wait_for, wait_option


@click.command("park", epilog=EXITS)
@servers_argument
@wait_option
@timeout_option
@output_option
@on_api
async def park(
    ctx: CommandContext, servers: tuple[str, ...], wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Stop managing servers: each is shut down once; its power is not controlled until `unpark`.

    A claim keeps its server. Servers are parked in state Discovery, Available or Reserved, or as soon as they
    reach one of these and no network boot is in progress.
    """
    await _ask(ctx, servers, parked=True, wait=wait, timeout=timeout, output=output)


@click.command("unpark", epilog=EXITS)
@servers_argument
@wait_option
@timeout_option
@output_option
@on_api
async def unpark(
    ctx: CommandContext, servers: tuple[str, ...], wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Manage parked servers again.

    A claimed server returns to Reserved; any other becomes Available, after cleanup or discovery if needed.
    """
    await _ask(ctx, servers, parked=False, wait=wait, timeout=timeout, output=output)


async def _ask(
    ctx: CommandContext, servers: tuple[str, ...], *, parked: bool, wait: bool, timeout: timedelta, output: str | None
) -> None:
    progress, word = Progress(), PARK if parked else UNPARK

    async def one(name: str) -> Obj:
        found = await target(ctx, name)
        if (found.server.status.state == State.PARKED) is parked:
            if output is None:
                click.echo(f"server/{found.name} already {word}ed")
            return found.obj
        before = await operations.rejections(ctx, found.obj)
        obj = await operations.request(ctx, found, word)
        if wait:
            await operations.wait_until_started(ctx, obj, before, timeout, progress)
            kind = ctx.kinds.server
            obj = await wait_for(ctx.http, kind, found.name, "", _is(parked), timeout, progress) or obj
        if output is None:
            click.echo(f"server/{found.name} {word}ed" if wait else f"server/{found.name} {word} requested")
        return obj

    await for_each(servers, one, output)


def _is(parked: bool) -> Awaited:
    def awaited(obj: Obj | None) -> str:
        if obj is None:
            raise click.ClickException("the server was deleted")
        server: Server = decoded(obj, Server)
        if (server.status.state == State.PARKED) is parked:
            return ""
        if problem := in_error(server):
            raise click.ClickException(problem)
        return server.status.waiting_for or f"the server to be {'' if parked else 'un'}parked"

    return awaited
