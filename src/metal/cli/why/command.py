"""metalctl why"""

import json

import click

from metal.api.bmc import BMC
from metal.api.claim import ServerClaim
from metal.api.endpoint import Endpoint
from metal.cli.machines.status import PAUSES
from metal.cli.machines.targets import all_servers, decoded, target
from metal.cli.objects import events
from metal.cli.support import dynamic
from metal.cli.support.completing import WHY
from metal.cli.support.context import CommandContext, each, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.why import claim as of_claim
from metal.cli.why import device as of_device
from metal.cli.why import server as of_server
from metal.cli.why.explanation import Explanation
from metal.kube.client.errors import Forbidden
from metal.kube.meta.clock import system_clock
from metal.move.pause import read_mark

_SERVERS = ("server", "servers", "srv")
_BMCS = ("bmc", "bmcs")
_ENDPOINTS = ("endpoint", "endpoints", "mep")
_CLAIMS = ("claim", "claims", "serverclaim", "serverclaims", "scl")


@click.command("why", epilog=EXITS)
@click.argument("what", nargs=-1, required=True, metavar="KIND/NAME...", type=WHY)
@click.option("--manager-namespace", default="metal-system", show_default=True, help="Namespace of the managers.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@in_namespace
async def command(ctx: CommandContext, what: tuple[str, ...], manager_namespace: str, output: str) -> None:
    """Explain what an object waits for, until when, what was tried, and what to do: server/NAME, claim/NAME, bmc/NAME
    or endpoint/NAME.

    For a claim without a server, also count the servers that do not fit, with an example and the required change for
    each reason. With -o json: a list of objects with subject, doing, wait {name, text, since, until}, tried, events,
    advice and parts; for a server also failingOperations, the operations on its BMC that fail.
    """
    paused = await _paused(ctx, manager_namespace)

    async def one(word: str) -> Explanation:
        kind, _, name = word.partition("/")
        if kind in _SERVERS and name:
            explanation = await _server(ctx, name)
        elif kind in _CLAIMS and name:
            explanation = await _claim(ctx, name)
        elif kind in _BMCS and name:
            explanation = await _bmc(ctx, name)
        elif kind in _ENDPOINTS and name:
            explanation = await _endpoint(ctx, name)
        else:
            raise click.UsageError(f"{word!r}: write server/NAME, claim/NAME, bmc/NAME or endpoint/NAME")
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
    bound = of_claim.held(claim, servers)
    if bound is not None:
        explanation.parts.append(await _server(ctx, bound.metadata.name))
    return explanation


async def _bmc(ctx: CommandContext, name: str) -> Explanation:
    obj = await dynamic.get(ctx.http, ctx.kinds.bmc, name, "")
    servers = [found.server for found in await all_servers(ctx)]
    return of_device.explain_bmc(decoded(obj, BMC), servers, await events.of(ctx.http, obj), system_clock())


async def _endpoint(ctx: CommandContext, name: str) -> Explanation:
    obj = await dynamic.get(ctx.http, ctx.kinds.endpoint, name, "")
    return of_device.explain_endpoint(decoded(obj, Endpoint), await events.of(ctx.http, obj), system_clock())


async def _paused(ctx: CommandContext, namespace: str) -> list[str]:
    try:
        mark = await read_mark(ctx.http, namespace)
    except Forbidden:
        return []
    if mark is None:
        return []
    text = PAUSES.get(mark.role, "paused").format(where=mark.where)
    return [f"{text[0].upper()}{text[1:]}."]
