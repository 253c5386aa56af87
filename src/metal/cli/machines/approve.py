"""metalctl approve"""

import click

from metal.api.claim import ServerClaim
from metal.cli.machines.batch import for_each
from metal.cli.machines.targets import decoded
from metal.cli.support import dynamic
from metal.cli.support.completing import CLAIM
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.controllers.maintenance.queue_order import APPROVED, NEEDED, REASON, is_approved


@click.command("approve", epilog=EXITS)
@click.argument("claims", nargs=-1, required=True, metavar="CLAIM...", type=CLAIM)
@output_option
@in_namespace
async def command(ctx: CommandContext, claims: tuple[str, ...], output: str | None) -> None:
    """Approve the pending maintenances of the servers of claims.

    During a maintenance the machine can be powered off or booted from another image; afterwards it boots from its own
    disk, with the power of its claim. The approval covers the pending maintenances and ends with the last of them.
    """

    async def one(name: str) -> Obj:
        obj = await dynamic.get(ctx.http, ctx.kinds.claim, name, ctx.namespace)
        obj, message = await _approve(ctx, obj, decoded(obj, ServerClaim))
        if output is None:
            click.echo(f"serverclaim/{name} {message}")
        return obj

    await for_each(claims, one, output)


async def _approve(ctx: CommandContext, obj: Obj, claim: ServerClaim) -> tuple[Obj, str]:
    """Return the updated claim and a message. Raises click.ClickException if there is nothing to approve."""
    meta, key = claim.metadata, ctx.kinds.key
    reason = meta.annotations.get(key(REASON), "")
    what = f": {reason}" if reason else ""
    if is_approved(claim, key):
        return obj, f"already approved{what}"
    if key(NEEDED) not in meta.labels:
        raise click.ClickException(f"claim {meta.name} has no maintenance to approve")
    patch = {"metadata": {"uid": meta.uid, "labels": {key(APPROVED): "true"}}}
    return await dynamic.merge(ctx.http, ctx.kinds.claim, meta.name, meta.namespace, patch), f"approved{what}"
