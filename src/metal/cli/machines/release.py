"""metalctl release"""

from datetime import timedelta

import click

from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.cli.machines.batch import for_each
from metal.cli.machines.targets import decoded, failed_since, target
from metal.cli.support import dynamic
from metal.cli.support.completing import CLAIM
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import Awaited, timeout_option, wait_for, wait_option, wait_until_deleted
from metal.controllers.server.traits import traits_of
from metal.kube.client.errors import NotFound
from metal.machine import tenancy


@click.command("release", epilog=EXITS)
@click.argument("claims", nargs=-1, required=True, metavar="CLAIM...", type=CLAIM)
@wait_option
@timeout_option
@output_option
@in_namespace
async def command(
    ctx: CommandContext, claims: tuple[str, ...], wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Delete claims; their servers are powered off and sanitized.

    With --wait: until each server is Available, or Released if its reclaim policy is Retain.
    """
    progress = Progress()

    async def one(name: str) -> Obj:
        obj = await dynamic.get(ctx.http, ctx.kinds.claim, name, ctx.namespace)
        claim: ServerClaim = decoded(obj, ServerClaim)
        server = await _server(ctx, claim)
        await dynamic.delete(ctx.http, ctx.kinds.claim, name, ctx.namespace, uid=claim.metadata.uid)
        freed = ""
        if wait:
            await wait_until_deleted(ctx.http, ctx.kinds.claim, obj, timeout, progress)
        if wait and server is not None:
            freed = f"; {await _freed(ctx, server, _free(claim.metadata.uid, server), timeout, progress)}"
        if output is None:
            click.echo(f"serverclaim/{name} deleted{freed}")
        return obj

    await for_each(claims, one, output)


async def _server(ctx: CommandContext, claim: ServerClaim) -> Server | None:
    """Return the server that is bound to the claim, if any."""
    ref = claim.spec.server_ref
    if ref is None or claim.status.phase != "Bound":
        return None
    try:
        return (await target(ctx, ref.name)).server
    except NotFound:
        return None


async def _freed(ctx: CommandContext, server: Server, awaited: Awaited, timeout: timedelta, progress: Progress) -> str:
    name = server.metadata.name
    last = await wait_for(ctx.http, ctx.kinds.server, name, "", awaited, timeout, progress)
    return f"server {name} is {last['status']['state'] if last else 'deleted'}"


def _free(claim_uid: str, before: Server) -> Awaited:
    def awaited(obj: Obj | None) -> str:
        if obj is None:
            return ""
        server: Server = decoded(obj, Server)
        if problem := failed_since(server, before):
            raise click.ClickException(problem)
        tenant = tenancy.of(server).uid
        others = tenant not in ("", claim_uid)  # another claim is bound to it already
        is_free = tenant == "" or server.status.state == State.RELEASED
        if others or (is_free and traits_of(server.status.state).released):
            return ""
        return server.status.waiting_for or f"server {server.metadata.name} to be sanitized"

    return awaited
