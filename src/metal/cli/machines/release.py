"""metalctl release"""

from datetime import timedelta

import click

from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.cli.machines.several import for_each
from metal.cli.machines.targets import decoded, failed_since, target
from metal.cli.support import plain
from metal.cli.support.completing import CLAIM
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.plain import Obj
from metal.cli.support.progress import Progress
from metal.cli.support.until import Awaited, timeout_option, until, until_gone, wait_option
from metal.controllers.server.states.traits import traits_of
from metal.kube.client.errors import NotFound


@click.command("release", epilog=EXITS)
@click.argument("claims", nargs=-1, required=True, metavar="CLAIM...", type=CLAIM)
@wait_option
@timeout_option
@output_option
@in_namespace
async def command(
    desk: CommandContext, claims: tuple[str, ...], wait: bool, timeout: timedelta, output: str | None
) -> None:
    """Give servers back: their claims are deleted, the machines switched off and cleaned up.

    With --wait: until each server can be claimed again (Available, or Released where its reclaim policy is Retain).
    """
    progress = Progress()

    async def one(name: str) -> Obj:
        obj = await plain.get(desk.http, desk.kinds.claim, name, desk.namespace)
        claim: ServerClaim = decoded(obj, ServerClaim)
        server = await _server(desk, claim)
        await plain.delete(desk.http, desk.kinds.claim, name, desk.namespace, uid=claim.metadata.uid)
        freed = ""
        if wait:
            await until_gone(desk.http, desk.kinds.claim, obj, timeout, progress)
        if wait and server is not None:
            freed = f"; {await _freed(desk, server, _free(claim.metadata.uid, server), timeout, progress)}"
        if output is None:
            click.echo(f"serverclaim/{name} deleted{freed}")
        return obj

    await for_each(claims, one, output)


async def _server(desk: CommandContext, claim: ServerClaim) -> Server | None:
    """The server that the claim has, if it has one."""
    ref = claim.spec.server_ref
    if ref is None or claim.status.phase != "Bound":
        return None
    try:
        return (await target(desk, ref.name)).server
    except NotFound:
        return None


async def _freed(desk: CommandContext, server: Server, awaited: Awaited, timeout: timedelta, progress: Progress) -> str:
    name = server.metadata.name
    last = await until(desk.http, desk.kinds.server, name, "", awaited, timeout, progress)
    return f"server {name} is {last['status']['state'] if last else 'gone, too'}"


def _free(claim_uid: str, before: Server) -> Awaited:
    def awaited(obj: Obj | None) -> str:
        if obj is None:
            return ""
        server: Server = decoded(obj, Server)
        if problem := failed_since(server, before):
            raise click.ClickException(problem)
        others = server.status.tenant not in ("", claim_uid)  # another claim has it already
        is_free = server.status.tenant == "" or server.status.state == State.RELEASED
        if others or (is_free and traits_of(server.status.state).released):
            return ""
        return server.status.waiting_for or f"server {server.metadata.name} to be cleaned up"

    return awaited
