"""Operations by annotation: asked for once, taken by the manager, refused with an Event."""

import asyncio
from datetime import timedelta

import click

from metal.cli.machines.targets import Target, target
from metal.cli.objects import events
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import wait_for
from metal.kube.client.errors import Conflict

REFUSALS = ("UnsupportedOperation", "ParkedOperationDropped", "OperationRefused")
"""Reasons of Events that say that an operation was not done."""
Refusals = set[tuple[str, int]]
"""Sentence and count of each such Event; no clock tells which are new, as the API has its own."""
_TRIES = 5
"""How often a server is read again that its manager changes at the same time."""
_LOOKS = 4
_PAUSE = 0.4
"""Seconds between two looks for such an Event: it is written after the annotation was removed."""


async def ask(ctx: CommandContext, name: str, operation: str) -> Obj:
    """Set the annotation, and return the server. Raises click.ClickException while another operation is waiting."""
    for _ in range(_TRIES):
        found = await target(ctx, name)
        _none_waits(ctx, found, operation)
        version = found.server.metadata.resource_version
        patch = {"metadata": {"resourceVersion": version, "annotations": {ctx.kinds.key("operation"): operation}}}
        try:
            return await dynamic.merge(ctx.http, ctx.kinds.server, name, "", patch)
        except Conflict as exc:
            conflict = exc
    raise conflict


def _none_waits(ctx: CommandContext, found: Target, operation: str) -> None:
    waiting = found.server.metadata.annotations.get(ctx.kinds.key("operation"))
    if waiting not in (None, operation):
        raise click.ClickException(
            f"server {found.name}: operation {waiting} was asked for before, and the manager did not take it yet. "
            f"Is one running? metalctl why server/{found.name} tells more"
        )


async def taken(ctx: CommandContext, name: str, before: Refusals, timeout: timedelta, progress: Progress) -> Obj:
    """The server once the manager took the operation. Raises TimedOut, and click.ClickException when it was refused."""
    key = ctx.kinds.key("operation")

    def awaited(obj: Obj | None) -> str:
        if obj is None:
            raise click.ClickException(f"server {name} was deleted")
        wanted = (obj["metadata"].get("annotations") or {}).get(key)
        return f"the manager to take the operation {wanted}" if wanted else ""

    obj = await wait_for(ctx.http, ctx.kinds.server, name, "", awaited, timeout, progress)
    if obj is None:
        raise AssertionError("awaited() refuses an object that is gone")
    await _not_refused(ctx, obj, before)
    return obj


async def refusals(ctx: CommandContext, obj: Obj) -> Refusals:
    """The refusals that were told of a server so far: what comes later is about a later operation."""
    return {(event.message, event.count) for event in await events.of(ctx.http, obj) if event.reason in REFUSALS}


async def _not_refused(ctx: CommandContext, obj: Obj, before: Refusals) -> None:
    for _ in range(_LOOKS):
        for message, _count in await refusals(ctx, obj) - before:
            raise click.ClickException(f"server {obj['metadata']['name']}: {message}")
        await asyncio.sleep(_PAUSE)
