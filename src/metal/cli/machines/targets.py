"""The server that a command is about, and the claim that holds it."""

from dataclasses import dataclass
from typing import Any

import click
import msgspec

from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.kube.client.errors import NotFound


@dataclass(frozen=True)
class Target:
    """A server, as the API gave it and as its struct."""

    obj: Obj
    server: Server

    @property
    def name(self) -> str:
        """Name of the server."""
        return self.server.metadata.name


def decoded(obj: Obj, struct: type[Any]) -> Any:
    """The struct of an object. Raises click.ClickException for one of another version."""
    try:
        return msgspec.convert(obj, struct)
    except msgspec.ValidationError as exc:
        raise click.ClickException(f"{obj['metadata'].get('name')} cannot be read: {exc}") from None


async def target(ctx: CommandContext, name: str) -> Target:
    """The server of this name. Raises NotFound."""
    obj = await dynamic.get(ctx.http, ctx.kinds.server, name.removeprefix("server/"), "")
    return Target(obj, decoded(obj, Server))


async def all_servers(ctx: CommandContext) -> list[Target]:
    """Every server, by name."""
    items = (await dynamic.listed(ctx.http, ctx.kinds.server, ""))["items"]
    typed = {"apiVersion": ctx.kinds.server.api_version, "kind": ctx.kinds.server.kind}
    found = [Target({**typed, **item}, decoded(item, Server)) for item in items]
    return sorted(found, key=lambda one: one.name)


async def claim_of(ctx: CommandContext, found: Target) -> ServerClaim:
    """The claim whose power the server's is. Raises click.ClickException that says whose it is instead."""
    server, ref = found.server, found.server.spec.server_claim_ref
    maintenance = server.spec.server_maintenance_ref
    if maintenance is not None:
        raise click.ClickException(
            f"server {found.name} is in maintenance {maintenance.namespace}/{maintenance.name}, whose its power is: "
            f"metalctl maintain {found.name} -n {maintenance.namespace} --power on|off"
        )
    if server.status.state == State.PARKED:
        raise click.ClickException(
            f"server {found.name} is parked, and nobody here touches it: switch it at its BMC, or take it back with "
            f"metalctl unpark {found.name}"
        )
    if ref is None:
        raise click.ClickException(
            f"server {found.name} is not claimed, so it is kept off: claim it (metalctl claim --server {found.name} "
            f"--image IMAGE), or park it and switch it yourself (metalctl park {found.name})"
        )
    try:
        claim: ServerClaim = decoded(await dynamic.get(ctx.http, ctx.kinds.claim, ref.name, ref.namespace), ServerClaim)
    except NotFound:
        claim = ServerClaim()
    if not claim.metadata.name or claim.metadata.deletion_timestamp is not None:
        raise click.ClickException(
            f"the claim {ref.namespace}/{ref.name} of server {found.name} is gone or being deleted: its machine is "
            "switched off, and cleaned up"
        )
    return claim


def in_error(server: Server) -> str:
    """What failed and where to read more, for a server in Error; else nothing."""
    if server.status.state != State.ERROR:
        return ""
    failure, name = server.status.failure, server.metadata.name
    told = f"{failure.reason}: {failure.message}" if failure else "nothing is known of the failure"
    return f"server {name} is in Error: {told.rstrip('.')}. More: metalctl why server/{name}"


def failed_since(server: Server, before: Server) -> str:
    """What failed for a server that is in Error, and was not with this very failure before; else nothing.

    A failure that was there before is often what the command that waits ends.
    """
    now, then = server.status, before.status
    return "" if (now.state, now.failure, now.since) == (then.state, then.failure, then.since) else in_error(server)
