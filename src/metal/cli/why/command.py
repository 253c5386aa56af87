"""metalctl why"""

import json

import click

from metal.api.claim import ServerClaim
from metal.cli.machines.status import PAUSES
from metal.cli.machines.targets import all_servers, decoded, target
from metal.cli.objects import events
from metal.cli.support import plain
from metal.cli.support.completing import WHY
from metal.cli.support.context import CommandContext, each, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.why import claim as of_claim
from metal.cli.why import server as of_server
from metal.cli.why.story import Story
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
async def command(desk: CommandContext, what: tuple[str, ...], manager_namespace: str, output: str) -> None:
    """Say in sentences what a server or claim does: what it waits for, until when, what was tried, what you can do.

    For a claim without a server: how many servers do not fit it, and for each reason an example and what would have to
    change. With -o json: a list with subject, doing, wait {name, text, since, until}, tried, events, advice, parts.
    """
    paused = await _paused(desk, manager_namespace)

    async def one(word: str) -> Story:
        kind, _, name = word.partition("/")
        if kind in _SERVERS and name:
            story = await _server(desk, name)
        elif kind in _CLAIMS and name:
            story = await _claim(desk, name)
        else:
            raise click.UsageError(f"{word!r}: write server/NAME or claim/NAME")
        story.doing[:0] = paused
        return story

    stories = await each(what, one)
    if output == "json":
        click.echo(json.dumps([story.as_json() for story in stories], indent=2))
        return
    now = system_clock()
    click.echo("\n\n".join("\n".join(story.lines(now)) for story in stories))


async def _server(desk: CommandContext, name: str) -> Story:
    found = await target(desk, name)
    return of_server.explain(found.server, await events.of(desk.http, found.obj), desk.kinds, system_clock())


async def _claim(desk: CommandContext, name: str) -> Story:
    obj = await plain.get(desk.http, desk.kinds.claim, name, desk.namespace)
    claim: ServerClaim = decoded(obj, ServerClaim)
    servers = [found.server for found in await all_servers(desk)]
    happened = await events.of(desk.http, obj)
    story = of_claim.explain(claim, servers, happened, desk.kinds, system_clock())
    mine = of_claim.held(claim, servers)
    if mine is not None:
        story.parts.append(await _server(desk, mine.metadata.name))
    return story


async def _paused(desk: CommandContext, namespace: str) -> list[str]:
    try:
        mark = await read_mark(desk.http, namespace)
    except Forbidden:
        return []
    if mark is None:
        return []
    text = PAUSES.get(mark.role, "paused").format(where=mark.where)
    return [f"{text[0].upper()}{text[1:]}."]
