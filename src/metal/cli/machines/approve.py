"""metalctl approve"""

import click

from metal.api.claim import ServerClaim
from metal.api.names import APPROVAL
from metal.cli.machines.batch import for_each
from metal.cli.machines.targets import decoded
from metal.cli.machines.unchanged import merge_if_unchanged
from metal.cli.support import dynamic
from metal.cli.support.completing import CLAIM
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.controllers.maintenance.queue_order import APPROVED, NEEDED, REASON, is_approved
from metal.controllers.shared.access import enrolment_policy

_BMC = "bmc/"


@click.command("approve", epilog=EXITS)
@click.argument("names", nargs=-1, required=True, metavar="CLAIM|bmc/NAME...", type=CLAIM)
@output_option
@in_namespace
async def command(ctx: CommandContext, names: tuple[str, ...], output: str | None) -> None:
    """Approve the pending maintenances of the servers of claims, or the enrolment of BMCs (bmc/NAME).

    During a maintenance the machine can be powered off or booted from another image; afterwards it boots from its own
    disk, with the power of its claim. The approval covers the pending maintenances and ends with the last of them.

    A BMC that was found by its DHCP lease waits in state PendingApproval when the configuration requires an approval
    (enrolment.approval, enrolment.expected). Once it is approved, passwords are sent to its address.
    """

    async def one(name: str) -> Obj:
        if name.startswith(_BMC):
            obj, message = await _approve_bmc(ctx, name.removeprefix(_BMC))
        else:
            obj = await dynamic.get(ctx.http, ctx.kinds.claim, name, ctx.namespace)
            obj, message = await _approve(ctx, obj, decoded(obj, ServerClaim))
        if output is None:
            click.echo(f"{name if name.startswith(_BMC) else f'serverclaim/{name}'} {message}")
        return obj

    await for_each(names, one, output)


async def _approve_bmc(ctx: CommandContext, name: str) -> tuple[Obj, str]:
    """Return the updated BMC and a message."""
    obj = await dynamic.get(ctx.http, ctx.kinds.bmc, name, "")
    meta, annotation = obj["metadata"], ctx.kinds.key(APPROVAL)
    waiting = (enrolment_policy.PENDING, enrolment_policy.SERIAL_NUMBER)
    if meta.get("annotations", {}).get(annotation) not in waiting:
        return obj, "needs no approval"
    patch = {"metadata": {"annotations": {annotation: enrolment_policy.APPROVED}}}
    return await merge_if_unchanged(ctx.http, ctx.kinds.bmc, obj, patch, _spec), "approved"


def _spec(obj: Obj) -> object:
    """Return what an approval is for: it has the password of the BMC sent to the address in the spec."""
    return obj.get("spec")


async def _approve(ctx: CommandContext, obj: Obj, claim: ServerClaim) -> tuple[Obj, str]:
    """Return the updated claim and a message. Raises click.ClickException if there is nothing to approve."""
    meta, key = claim.metadata, ctx.kinds.key
    reason = meta.annotations.get(key(REASON), "")
    what = f": {reason}" if reason else ""
    if is_approved(claim, key):
        return obj, f"already approved{what}"
    if key(NEEDED) not in meta.labels:
        raise click.ClickException(f"claim {meta.name} has no maintenance to approve")

    def pending(obj: Obj) -> object:
        meta = obj["metadata"]
        return (meta.get("labels") or {}).get(key(NEEDED)), (meta.get("annotations") or {}).get(key(REASON), "")

    patch = {"metadata": {"labels": {key(APPROVED): "true"}}}
    return await merge_if_unchanged(ctx.http, ctx.kinds.claim, obj, patch, pending), f"approved{what}"
