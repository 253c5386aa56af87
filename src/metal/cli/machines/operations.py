"""Requests operations by annotation: the manager removes the annotation, and rejects an operation with an Event."""

import asyncio
from datetime import timedelta

import click

from metal.api.names import OPERATION
from metal.cli.machines.targets import Target
from metal.cli.machines.unchanged import merge_if_unchanged
from metal.cli.objects import events
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import wait_for

REJECTIONS = ("UnsupportedOperation", "ParkedOperationDropped", "OperationRefused")
"""Reasons of the Events that reject an operation."""
Rejections = set[tuple[str, int]]
"""Message and count of each such Event. Times are not compared: the API server has its own clock."""
_EVENT_READS = 4
_PAUSE = 0.4
"""Seconds between two reads of the Events: they are written after the annotation is removed."""


async def request(ctx: CommandContext, found: Target, operation: str) -> Obj:
    """Set the annotation and return the server. Raises click.ClickException while another operation is pending, and
    when another claim or maintenance has the server meanwhile."""

    def basis(obj: Obj) -> object:
        _require_none_pending(ctx, obj, operation)
        spec = obj.get("spec") or {}
        return spec.get("serverClaimRef"), spec.get("serverMaintenanceRef")

    patch = {"metadata": {"annotations": {ctx.kinds.key(OPERATION): operation}}}
    return await merge_if_unchanged(ctx.http, ctx.kinds.server, found.obj, patch, basis)


def _require_none_pending(ctx: CommandContext, obj: Obj, operation: str) -> None:
    name, annotations = obj["metadata"]["name"], obj["metadata"].get("annotations") or {}
    waiting = annotations.get(ctx.kinds.key(OPERATION))
    if waiting not in (None, operation):
        raise click.ClickException(
            f"server {name}: operation {waiting} is pending; the manager has not started it yet. "
            f"Check that a manager is running. Details: metalctl why server/{name}"
        )


async def wait_until_started(
    ctx: CommandContext, requested: Obj, before: Rejections, timeout: timedelta, progress: Progress
) -> Obj:
    """Return the server when the manager has started the operation. Raises TimedOut, or click.ClickException if it
    rejected it."""
    key, meta = ctx.kinds.key(OPERATION), requested["metadata"]

    def awaited(obj: Obj | None) -> str:
        if obj is None or obj["metadata"]["uid"] != meta["uid"]:
            raise click.ClickException(f"server {meta['name']} was deleted")
        wanted = (obj["metadata"].get("annotations") or {}).get(key)
        return f"the manager to start the operation {wanted}" if wanted else ""

    obj = await wait_for(ctx.http, ctx.kinds.server, meta["name"], "", awaited, timeout, progress)
    if obj is None:
        raise AssertionError("awaited() refuses an object that is gone")
    await _raise_if_rejected(ctx, obj, before)
    return obj


async def rejections(ctx: CommandContext, obj: Obj) -> Rejections:
    """Return the rejections recorded so far; later ones belong to a later operation."""
    return {(event.message, event.count) for event in await events.of(ctx.http, obj) if event.reason in REJECTIONS}


async def _raise_if_rejected(ctx: CommandContext, obj: Obj, before: Rejections) -> None:
    for _ in range(_EVENT_READS):
        for message, _count in await rejections(ctx, obj) - before:
            raise click.ClickException(f"server {obj['metadata']['name']}: {message}")
        await asyncio.sleep(_PAUSE)
