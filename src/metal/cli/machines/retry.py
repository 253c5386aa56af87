"""metalctl retry"""

from datetime import timedelta

import click

from metal.api.names import RETRY
from metal.api.server import Server
from metal.cli.machines import operations
from metal.cli.machines.batch import for_each, servers_argument
from metal.cli.machines.targets import decoded, in_error, target
from metal.cli.support.context import CommandContext, on_api
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import timeout_option, wait_option


@click.command("retry", epilog=EXITS)
@servers_argument
@wait_option
@timeout_option
@output_option
@on_api
async def command(
    ctx: CommandContext, servers: tuple[str, ...], wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Retry servers in state Error, and confirm servers adopted from another operator.

    `metalctl why server/NAME` shows what failed and what to correct first. With --wait: until a manager has retried.
    """
    progress = Progress()

    async def one(name: str) -> Obj:
        found = await target(ctx, name)
        before = await operations.rejections(ctx, found.obj)
        obj = await operations.request(ctx, found, RETRY)
        if wait:
            obj = await operations.wait_until_started(ctx, obj, before, timeout, progress)
            if problem := in_error(decoded(obj, Server)):
                raise click.ClickException(problem)
        if output is None:
            click.echo(f"server/{name} {f'is {_state(obj)} now' if wait else 'retry requested'}")
        return obj

    await for_each(servers, one, output)


def _state(obj: Obj) -> str:
    return str((obj.get("status") or {}).get("state") or "new")
