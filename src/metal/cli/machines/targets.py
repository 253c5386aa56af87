"""Finds the server of a command, and the claim that holds it."""

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
from metal.machine import tenancy


@dataclass(frozen=True)
class Target:
    """A server, as JSON and as its struct."""

    obj: Obj
    server: Server

    @property
    def name(self) -> str:
        """Name of the server."""
        return self.server.metadata.name


def decoded(obj: Obj, struct: type[Any]) -> Any:
    """Return the struct of an object. Raises click.ClickException if it cannot be decoded."""
    try:
        return msgspec.convert(obj, struct)
    except msgspec.ValidationError as exc:
        raise click.ClickException(f"{obj['metadata'].get('name')} cannot be read: {exc}") from None


async def target(ctx: CommandContext, name: str) -> Target:
    """Return the server with this name. Raises NotFound."""
    obj = await dynamic.get(ctx.http, ctx.kinds.server, name.removeprefix("server/"), "")
    return Target(obj, decoded(obj, Server))


async def all_servers(ctx: CommandContext) -> list[Target]:
    """Return all servers, sorted by name."""
    items = (await dynamic.listed(ctx.http, ctx.kinds.server, ""))["items"]
    typed = {"apiVersion": ctx.kinds.server.api_version, "kind": ctx.kinds.server.kind}
    found = [Target({**typed, **item}, decoded(item, Server)) for item in items]
    return sorted(found, key=lambda one: one.name)


async def claim_of(ctx: CommandContext, found: Target) -> ServerClaim:
    """Return the claim that controls the power of the server. Raises click.ClickException naming what controls it
    instead."""
    server, ref = found.server, found.server.spec.server_claim_ref
    maintenance = server.spec.server_maintenance_ref
    if maintenance is not None:
        raise click.ClickException(
            f"server {found.name} is in maintenance {maintenance.namespace}/{maintenance.name}, which controls its "
            f"power: metalctl maintain {found.name} -n {maintenance.namespace} --power on|off"
        )
    if server.status.state == State.PARKED:
        raise click.ClickException(
            f"server {found.name} is parked; the operator does not control its power: use its BMC, or manage it again "
            f"with metalctl unpark {found.name}"
        )
    if ref is None:
        raise click.ClickException(
            f"server {found.name} is not claimed and therefore powered off: claim it (metalctl claim --server "
            f"{found.name} --image IMAGE), or park it and use its BMC (metalctl park {found.name})"
        )
    try:
        claim: ServerClaim = decoded(await dynamic.get(ctx.http, ctx.kinds.claim, ref.name, ref.namespace), ServerClaim)
    except NotFound:
        claim = ServerClaim()
    if not claim.metadata.name or claim.metadata.deletion_timestamp is not None:
        raise click.ClickException(
            f"the claim {ref.namespace}/{ref.name} of server {found.name} is deleted or being deleted: the server is "
            "powered off and sanitized"
        )
    if tenancy.of(server).uid not in ("", claim.metadata.uid):
        raise click.ClickException(
            f"the claim {ref.namespace}/{ref.name} was deleted and created again, and the server {found.name} is still "
            f"its predecessor's. Details: metalctl why server/{found.name}"
        )
    return claim


def in_error(server: Server) -> str:
    """Return the failure of a server in Error with a hint, else an empty text."""
    if server.status.state != State.ERROR:
        return ""
    failure, name = server.status.failure, server.metadata.name
    message = f"{failure.reason}: {failure.message}" if failure else "the failure is not recorded"
    return f"server {name} is in Error: {message.rstrip('.')}. Details: metalctl why server/{name}"


def failed_since(server: Server, before: Server) -> str:
    """Return the failure of a server that has failed since `before`, else an empty text.

    A failure that existed before is often what the waiting command resolves.
    """
    now, then = server.status, before.status
    return "" if (now.state, now.failure, now.since) == (then.state, then.failure, then.since) else in_error(server)
