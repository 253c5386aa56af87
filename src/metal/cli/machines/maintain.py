"""metalctl maintain"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from metal.api.maintenance import ServerMaintenance
from metal.api.meta import Kind
from metal.api.names import MAINTENANCE_REASON
from metal.api.server import Server, State
from metal.cli.machines.batch import for_each, servers_argument
from metal.cli.machines.targets import decoded, failed_since, target
from metal.cli.machines.unchanged import merge_if_unchanged
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS, Missing
from metal.cli.support.output import output_option
from metal.cli.support.progress import Progress
from metal.cli.support.waiting import Awaited, timeout_option, wait_for, wait_option, wait_until_deleted
from metal.kube.client.errors import NotFound


@dataclass(frozen=True)
class _Options:
    """Options of the command."""

    reason: str
    policy: str
    priority: int
    power: str | None
    end: bool
    wait: bool
    timeout: timedelta
    output: str | None

    @property
    def changes(self) -> Obj:
        """Return the changes to an existing maintenance."""
        spec: Obj = {"serverPower": self.power.capitalize()} if self.power else {}
        return spec


@click.command("maintain", epilog=EXITS)
@servers_argument
@click.option("--reason", default="", help="Reason of the maintenance. Required to start one.")
@click.option(
    "--policy", type=click.Choice(["Enforced", "OwnerApproval"]), default="OwnerApproval", show_default=True,
    help="OwnerApproval waits for `metalctl approve CLAIM`; Enforced does not, in namespaces that the manager allows.",
)  # fmt: skip
@click.option(
    "--priority",
    type=click.IntRange(-(2**31), 2**31 - 1),
    default=0,
    help="Priority among maintenances of a server; the highest comes first. Defaults to 0.",
)
@click.option(
    "--power",
    type=click.Choice(["on", "off"]),
    default=None,
    help="Power state during the maintenance. Not changed by default.",
)
@click.option("--end", is_flag=True, help="End the maintenance and restore the previous state.")
@wait_option
@timeout_option
@output_option
@in_namespace
async def command(ctx: CommandContext, servers: tuple[str, ...], **given: Any) -> None:
    """Start, change or end the maintenance of servers.

    Creates a ServerMaintenance with the name of the server in the namespace. Of an existing one only --power and
    --reason are changed; --policy and --priority have no effect. With --wait: until the server is in maintenance, or
    with --end until it has left it.

    \b
    Examples:
      metalctl maintain rack1-node1-system-0 --reason "new DIMM" --power off --wait
      metalctl maintain rack1-node1-system-0 --end
    """
    options, progress = _Options(**given), Progress()
    kind = ctx.kinds.maintenance

    async def one(name: str) -> Obj:
        try:
            work = _end if options.end else _begin
            return await work(ctx, kind, name, options, progress)
        except NotFound as exc:
            if not exc.details.get("name"):
                raise _unknown(kind) from None
            raise

    await for_each(servers, one, options.output)


def _unknown(kind: Kind[ServerMaintenance]) -> Missing:
    return Missing(
        f"the API server has no kind {kind.kind} ({kind.api_version}): apply the CRDs of this version "
        "(config/crd), or set --api-group"
    )


async def _begin(
    ctx: CommandContext, kind: Kind[ServerMaintenance], name: str, options: _Options, progress: Progress
) -> Obj:
    found = await target(ctx, name)
    there = await _there(ctx, kind, found.name)
    note = {"annotations": {ctx.kinds.key(MAINTENANCE_REASON): options.reason}} if options.reason else {}
    if there is None and not options.reason:
        raise click.UsageError("--reason is required: the owner of the claim needs it")
    if there is None:
        spec = {
            "serverRef": {"name": found.name},
            "policy": options.policy,
            "priority": options.priority,
            **options.changes,
        }
        body = {"metadata": {"name": found.name, "namespace": ctx.namespace, **note}, "spec": spec}
        obj, change_made = await dynamic.create(ctx.http, kind, body), "created"
    else:
        change = {"metadata": note, "spec": options.changes}
        obj, change_made = await merge_if_unchanged(ctx.http, kind, there, change, _require_of(found.name)), "changed"
    if options.output is None:
        click.echo(f"servermaintenance/{found.name} {change_made}")
    if options.wait:
        obj = await wait_for(ctx.http, kind, found.name, ctx.namespace, _begun, options.timeout, progress) or obj
        if options.output is None:
            click.echo(f"server/{found.name} is in maintenance")
    return obj


async def _there(ctx: CommandContext, kind: Kind[ServerMaintenance], name: str) -> Obj | None:
    try:
        return await dynamic.get(ctx.http, kind, name, ctx.namespace)
    except NotFound as exc:
        if exc.details.get("name"):
            return None
        raise


def _require_of(server: str) -> Callable[[Obj], None]:
    """Refuse a maintenance of another server, which can have this server's name, and one that ends."""

    def check(obj: Obj) -> None:
        meta, held = obj["metadata"], (obj["spec"].get("serverRef") or {}).get("name")
        who = f"servermaintenance {meta['namespace']}/{meta['name']}"
        if held != server:
            raise click.ClickException(f"{who} is of server {held}: metalctl maintain {held}")
        if meta.get("deletionTimestamp"):
            raise click.ClickException(f"{who} is being deleted: run the command again when it is gone")

    return check


def _begun(obj: Obj | None) -> str:
    if obj is None:
        raise click.ClickException("the maintenance was deleted")
    status = obj.get("status") or {}
    if status.get("state") == "Failed":
        server = obj["spec"]["serverRef"]["name"]
        message = (_message(obj) or "its status has no details").rstrip(".")
        raise click.ClickException(f"the maintenance failed: {message}. Details: metalctl why server/{server}")
    if status.get("state") == "InMaintenance":
        return ""
    return _message(obj) or "the maintenance to start"


def _message(obj: Obj) -> str:
    """Return the current message of the maintenance."""
    status = obj.get("status") or {}
    unmet = (c.get("message", "") for c in status.get("conditions") or () if c.get("status") != "True")
    return str(status.get("waitingFor") or next(filter(None, unmet), ""))


async def _end(
    ctx: CommandContext, kind: Kind[ServerMaintenance], name: str, options: _Options, progress: Progress
) -> Obj:
    found = await target(ctx, name)
    obj = await _of_server(ctx, kind, found.name)
    meta = obj["metadata"]
    await dynamic.delete(ctx.http, kind, meta["name"], ctx.namespace, uid=meta["uid"])
    if options.wait:
        await wait_until_deleted(ctx.http, kind, obj, options.timeout, progress)
        await wait_for(
            ctx.http,
            ctx.kinds.server,
            found.name,
            "",
            _left(ctx, meta["name"], found.server),
            options.timeout,
            progress,
        )
    if options.output is None:
        click.echo(
            f"servermaintenance/{meta['name']} deleted{'; the server has left maintenance' if options.wait else ''}"
        )
    return obj


async def _of_server(ctx: CommandContext, kind: Kind[ServerMaintenance], server: str) -> Obj:
    """Return the maintenance of this server in the namespace. Raises Missing, or click.ClickException for several."""
    items = (await dynamic.listed(ctx.http, kind, ctx.namespace))["items"]
    found = [item for item in items if ((item.get("spec") or {}).get("serverRef") or {}).get("name") == server]
    named = [item for item in found if item["metadata"]["name"] == server] or found
    if not named:
        raise Missing(f"server {server} has no maintenance in namespace {ctx.namespace}: set -n")
    if len(named) > 1:
        names = ", ".join(sorted(item["metadata"]["name"] for item in named))
        raise click.ClickException(
            f"server {server} has several maintenances ({names}): delete one with metalctl delete"
        )
    typed = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**typed, **named[0]}


def _left(ctx: CommandContext, name: str, before: Server) -> Awaited:
    def awaited(obj: Obj | None) -> str:
        server: Server | None = decoded(obj, Server) if obj else None
        if server is None:
            return ""
        ref = server.spec.server_maintenance_ref
        if ref is not None and (ref.namespace, ref.name) != (ctx.namespace, name):
            return ""  # the next maintenance holds it
        if problem := failed_since(server, before):
            raise click.ClickException(problem)
        if ref is None and not _is_in_maintenance(server):
            return ""
        return server.status.waiting_for or "the server to leave maintenance"

    return awaited


def _is_in_maintenance(server: Server) -> bool:
    """Return True also for a server that failed in Maintenance: it continues with the next step or fails again."""
    failure = server.status.failure
    failed = server.status.state == State.ERROR and failure is not None and failure.state == State.MAINTENANCE
    return failed or server.status.state == State.MAINTENANCE
