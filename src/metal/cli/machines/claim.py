"""metalctl claim"""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from metal.api.claim import ServerClaim
from metal.api.core import SECRET
from metal.cli.machines.batch import for_each
from metal.cli.machines.claim_options import Selector, Toleration, ignition
from metal.cli.machines.targets import decoded, target
from metal.cli.support import dynamic
from metal.cli.support.completing import SERVER
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import output_option
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import Awaited, timeout_option, wait_for, wait_option
from metal.kube.client.errors import ApiError
from metal.kube.meta import conditions
from metal.kube.meta.ownership import controller_reference

_HOPELESS = ("InvalidSelector", "NamespaceReserved", "ServerLost")
"""Reasons of the condition Bound that no waiting changes."""


@dataclass(frozen=True)
class _Options:
    """The command line."""

    image: str
    server: str
    selector: Obj | None
    ignition: str
    power: str
    tolerate: tuple[Obj, ...]
    wait: bool
    timeout: timedelta
    output: str | None

    def spec(self, secret: str) -> Obj:
        """spec of the claim."""
        wanted: Obj = {"image": self.image, "power": self.power.capitalize()}
        given = {
            "serverRef": {"name": self.server} if self.server else None,
            "serverSelector": self.selector,
            "ignitionSecretRef": {"name": secret} if secret else None,
            "tolerations": list(self.tolerate),
        }
        return wanted | {key: value for key, value in given.items() if value}


@click.command("claim", epilog=EXITS)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--image", required=True, help="OCI reference of the operating system image.")
@click.option("--server", default="", type=SERVER, help="This server and no other.")
@click.option("-l", "--selector", type=Selector(), default=None, help="Labels that the server must have.")
@click.option(
    "--ignition", "ignition", default="", metavar="FILE", help="Ignition config (JSON; - for standard input)."
)
@click.option(
    "--power", type=click.Choice(["on", "off"]), default="on", show_default=True, help="Power of the machine."
)
@click.option("--tolerate", type=Toleration(), multiple=True, help="A taint that keeps it not away. Repeatable.")
@wait_option
@timeout_option
@output_option
@in_namespace
async def command(ctx: CommandContext, names: tuple[str, ...], **given: Any) -> None:
    """Claim a server for each NAME (a new one by default), boot the image on it, and keep its power as told.

    The Ignition goes into a Secret NAME-ignition that is deleted with the claim. With --wait: until the image runs.

    \b
    Examples:
      metalctl claim web --image registry.example.com/os:1 --ignition web.ign --wait
      metalctl claim a b c --image registry.example.com/os:1 -l rack=r7 -o json
    """
    options = _Options(**given)
    if options.server and options.selector:
        raise click.UsageError("give --server or --selector, not both")
    if options.server and len(names) > 1:
        raise click.UsageError("one server takes one claim: give one NAME with --server")
    config = ignition(options.ignition) if options.ignition else ""
    if options.server:
        await target(ctx, options.server)  # a name that is mistyped is told now
    progress = Progress()

    async def one(name: str) -> Obj:
        obj = await _create(ctx, name, options, config)
        if options.output is None:
            click.echo(f"serverclaim/{name} created")
        return await _ready(ctx, name, options, progress) or obj if options.wait else obj

    await for_each(names or (f"claim-{uuid.uuid4().hex[:8]}",), one, options.output)


async def _create(ctx: CommandContext, name: str, options: _Options, config: str) -> Obj:
    """The Secret comes first, so that the claim never waits for it; then it is made the claim's."""
    secret = f"{name}-ignition" if config else ""
    metadata = {"name": name, "namespace": ctx.namespace}
    if secret:
        body = {"metadata": {**metadata, "name": secret}, "stringData": {"ignition": config}}
        await dynamic.create(ctx.http, SECRET, body)
    try:
        obj = await dynamic.create(ctx.http, ctx.kinds.claim, {"metadata": metadata, "spec": options.spec(secret)})
    except ApiError:
        if secret:
            await dynamic.delete(ctx.http, SECRET, secret, ctx.namespace)
        raise
    if secret:
        owner = controller_reference(decoded(obj, ServerClaim), ctx.kinds.claim)
        await dynamic.merge(ctx.http, SECRET, secret, ctx.namespace, {"metadata": {"ownerReferences": [owner]}})
    return obj


async def _ready(ctx: CommandContext, name: str, options: _Options, progress: Progress) -> Obj | None:
    awaited = _running if options.power == "on" else _bound
    obj = await wait_for(ctx.http, ctx.kinds.claim, name, ctx.namespace, awaited, options.timeout, progress)
    if obj is not None and options.output is None:
        claim: ServerClaim = decoded(obj, ServerClaim)
        server = claim.spec.server_ref.name if claim.spec.server_ref else ""
        click.echo(f"serverclaim/{name} {'runs on' if options.power == 'on' else 'has'} server {server}")
    return obj


def _not_in_error(claim: ServerClaim) -> None:
    ready = conditions.find(claim.status.conditions, "Ready")
    if ready is not None and ready.status != "True" and ready.reason == "ServerInError":
        server = claim.spec.server_ref.name if claim.spec.server_ref else ""
        raise click.ClickException(
            f"claim {claim.metadata.name} waits for {ready.message.rstrip('.')}. It goes on when the server does. "
            f"More: metalctl why server/{server}"
        )


def _awaiting(done: str) -> Awaited:
    """Awaits a condition of a claim."""

    def awaited(obj: Obj | None) -> str:
        if obj is None:
            raise click.ClickException("the claim was deleted")
        claim: ServerClaim = decoded(obj, ServerClaim)
        bound = conditions.find(claim.status.conditions, "Bound")
        if bound is not None and bound.status != "True" and bound.reason in _HOPELESS:
            raise click.ClickException(f"claim {claim.metadata.name} gets no server: {bound.message}")
        if conditions.is_true(claim.status.conditions, done):
            return ""
        _not_in_error(claim)
        unbound = f"a server ({bound.message})" if bound is not None and bound.status != "True" else ""
        return unbound or claim.status.waiting_for or "the manager to look at the claim"

    return awaited


_running, _bound = _awaiting("Ready"), _awaiting("Bound")
