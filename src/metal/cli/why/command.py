"""metalctl why"""

import json

import click

from metal.api.claim import ServerClaim
from metal.cli.machines.status import PAUSES
from metal.cli.machines.targets import all_servers, decoded, target
from metal.cli.objects import events
from metal.cli.support import dynamic
from metal.cli.support.completing import WHY
from metal.cli.support.context import CommandContext, each, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.why import claim as of_claim
from metal.cli.why import server as of_server
from metal.cli.why.explanation import Explanation
from metal.kube.client.errors import Forbidden
from metal.kube.meta.clock import system_clock
from metal.move.pause import read_mark

_SERVERS = ("server", "servers", "srv")
_CLAIMS = ("claim", "claims", "serverclaim", "serverclaims", "scl")


@click.command("why", epilog=EXITS)
@click.argument("what", nargs=-1, required=True, metavar="server/NAME | claim/NAME...", type=WHY)
@click.option("--manager-namespace", default="metal-system", show_default=True, help="The managers' own namespace.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@in_namespace
async def command(ctx: CommandContext, what: tuple[str, ...], manager_namespace: str, output: str) -> None:
    """Say in sentences what a server or claim does: what it waits for, until when, what was tried, what you can do.

    For a claim without a server: how many servers do not fit it, and for each reason an example and what would have to
    change. With -o json: a list with subject, doing, wait {name, text, since, until}, tried, events, advice, parts.
    """
    paused = await _paused(ctx, manager_namespace)

    async def one(word: str) -> Explanation:
        kind, _, name = word.partition("/")
        if kind in _SERVERS and name:
            explanation = await _server(ctx, name)
        elif kind in _CLAIMS and name:
            explanation = await _claim(ctx, name)
        else:
            raise click.UsageError(f"{word!r}: write server/NAME or claim/NAME")
        explanation.doing[:0] = paused
        return explanation

    stories = await each(what, one)
    if output == "json":
        click.echo(json.dumps([explanation.as_json() for explanation in stories], indent=2))
        return
    now = system_clock()
    click.echo("\n\n".join("\n".join(explanation.lines(now)) for explanation in stories))


async def _server(ctx: CommandContext, name: str) -> Explanation:
    found = await target(ctx, name)
    return of_server.explain(found.server, await events.of(ctx.http, found.obj), ctx.kinds, system_clock())


async def _claim(ctx: CommandContext, name: str) -> Explanation:
    obj = await dynamic.get(ctx.http, ctx.kinds.claim, name, ctx.namespace)
    claim: ServerClaim = decoded(obj, ServerClaim)
    servers = [found.server for found in await all_servers(ctx)]
    recorded = await events.of(ctx.http, obj)
    explanation = of_claim.explain(claim, servers, recorded, ctx.kinds, system_clock())
    mine = of_claim.held(claim, servers)
    if mine is not None:
        explanation.parts.append(await _server(ctx, mine.metadata.name))
    return explanation


async def _paused(ctx: CommandContext, namespace: str) -> list[str]:
    try:
        mark = await read_mark(ctx.http, namespace)
    except Forbidden:
        return []
    if mark is None:
        return []
    text = PAUSES.get(mark.role, "paused").format(where=mark.where)
    return [f"{text[0].upper()}{text[1:]}."]
