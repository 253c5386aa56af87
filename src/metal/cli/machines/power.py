"""metalctl power"""

from datetime import datetime, timedelta

import click

from metal.api.names import FORCE_OFF, FORCE_ON, GRACEFUL_RESTART, HARD_RESTART, POWER_CYCLE
from metal.api.server import Server
from metal.cli.machines import operations
from metal.cli.machines.batch import for_each, servers_argument
from metal.cli.machines.targets import Target, all_servers, claim_of, decoded, in_error, target
from metal.cli.support import dynamic
from metal.cli.support.columns import aligned
from metal.cli.support.completing import SERVER
from metal.cli.support.context import CommandContext, each, on_api
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import emit, output_option
from metal.cli.support.progress import Progress
from metal.cli.support.table import rows
from metal.cli.support.waiting import Awaited, timeout_option, wait_for, wait_option
from metal.kube.meta.clock import system_clock
from metal.kube.meta.objects import key_of


@click.group("power")
def command() -> None:
    """Change or show the power of claimed servers, or restart them.

    The claim controls the power: `on` and `off` set spec.power of the ServerClaim that holds the server. A server
    without a claim is powered off. In maintenance, the ServerMaintenance controls the power.
    """


@command.command("on", epilog=EXITS)
@servers_argument
@click.option("--force", is_flag=True, help="Also request it from the BMC at once (operation force-on-server).")
@wait_option
@timeout_option
@output_option
@on_api
async def on(ctx: CommandContext, servers: tuple[str, ...], **given: object) -> None:
    """Set spec.power of the claims of servers to On."""
    await _switch(ctx, servers, "On", FORCE_ON, **given)  # type: ignore[arg-type]  # click's own types


@command.command("off", epilog=EXITS)
@servers_argument
@click.option("--force", is_flag=True, help="Cut the power without a shutdown (operation force-off-server).")
@wait_option
@timeout_option
@output_option
@on_api
async def off(ctx: CommandContext, servers: tuple[str, ...], **given: object) -> None:
    """Set spec.power of the claims of servers to Off.

    The operating systems are shut down, unless --force is set.
    """
    await _switch(ctx, servers, "Off", FORCE_OFF, **given)  # type: ignore[arg-type]  # click's own types


@command.command("reset", epilog=EXITS)
@servers_argument
@click.option("--hard", "how", flag_value=HARD_RESTART, help="Reset without a shutdown of the operating system.")
@click.option("--cycle", "how", flag_value=POWER_CYCLE, help="Cut the power, then power on again.")
@wait_option
@timeout_option
@output_option
@on_api
async def reset(
    ctx: CommandContext, servers: tuple[str, ...], how: str | None, wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Restart servers, gracefully by default. They boot from their disks."""
    progress = Progress()

    async def one(name: str) -> Obj:
        found = await target(ctx, name)
        await claim_of(ctx, found)
        operation, before = how or GRACEFUL_RESTART, await operations.rejections(ctx, found.obj)
        obj = await operations.request(ctx, found, operation)
        if wait:
            obj = await operations.wait_until_started(ctx, obj, before, timeout, progress)
        if output is None:
            click.echo(f"server/{found.name} {operation} {'completed' if wait else 'requested'}")
        return obj

    await for_each(servers, one, output)


@command.command("status", epilog=EXITS)
@click.argument("servers", nargs=-1, metavar="[SERVER]...", type=SERVER)
@output_option
@on_api
async def status(ctx: CommandContext, servers: tuple[str, ...], output: str | None) -> None:
    """Show the power of servers and what controls it.

    Also shows the state and the wait of each server. Defaults to all servers.
    """

    async def one(name: str) -> Target:
        return await target(ctx, name)

    found = await each(servers, one) if servers else await all_servers(ctx)
    if output is not None:
        emit([item.obj for item in found], output, one=bool(servers))
        return
    if not found:
        click.echo("no servers found", err=True)
        return
    for line in _table([item.server for item in found], system_clock()):
        click.echo(line)


def _table(servers: list[Server], now: datetime) -> list[str]:
    owners = {server.metadata.name: _owner(server) for server in servers}
    cells = [
        [row.server, row.power, owners[row.server], row.state, row.age, row.waiting_for] for row in rows(servers, now)
    ]
    return aligned(["SERVER", "POWER", "OWNER", "STATE", "SINCE", "WAITING FOR"], cells)


def _owner(server: Server) -> str:
    maintenance, claim = server.spec.server_maintenance_ref, server.spec.server_claim_ref
    if maintenance is not None:
        return f"maintenance {maintenance.namespace}/{maintenance.name}"
    return f"claim {claim.namespace}/{claim.name}" if claim is not None else "none"


async def _switch(
    ctx: CommandContext,
    servers: tuple[str, ...],
    power: str,
    operation: str,
    *,
    force: bool,
    wait: bool,
    timeout: timedelta,
    output: str | None,
) -> None:
    progress = Progress()

    async def one(name: str) -> Obj:
        found = await target(ctx, name)
        before = await operations.rejections(ctx, found.obj)
        summary = await _set_claim_power(ctx, found, power)
        obj = await operations.request(ctx, found, operation) if force else found.obj
        if force and wait:
            await operations.wait_until_started(ctx, obj, before, timeout, progress)
        if wait:
            kind = ctx.kinds.server
            obj = await wait_for(ctx.http, kind, found.name, "", _reached(power), timeout, progress) or obj
        if output is None:
            click.echo(f"server/{found.name} is {power} ({summary})" if wait else f"server/{found.name} {summary}")
        return obj

    await for_each(servers, one, output)


async def _set_claim_power(ctx: CommandContext, found: Target, power: str) -> str:
    """Patch the power of the claim, after printing so. Raises click.ClickException if no claim holds the server."""
    claim = await claim_of(ctx, found)
    where = f"claim {key_of(claim)}"
    if claim.spec.power == power:
        return f"power {power} is already set in {where}"
    click.echo(f"setting spec.power of {where}, which controls the power of {found.name}, to {power}", err=True)
    patch = {"metadata": {"uid": claim.metadata.uid}, "spec": {"power": power}}
    await dynamic.merge(ctx.http, ctx.kinds.claim, claim.metadata.name, claim.metadata.namespace, patch)
    return f"power {power} requested in {where}"


def _reached(power: str) -> Awaited:
    def awaited(obj: Obj | None) -> str:
        if obj is None:
            raise click.ClickException("the server was deleted")
        server: Server = decoded(obj, Server)
        if server.status.power_state == power and server.status.power_request is None:
            return ""
        if problem := in_error(server):
            raise click.ClickException(problem)
        return server.status.waiting_for or f"power {power}"

    return awaited
