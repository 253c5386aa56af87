"""Finds the address and the login of a server's console from Server, BMC, Endpoint and BMCSecret."""

from dataclasses import dataclass, field
from typing import Any

import click

from metal.api.bmc import BMC, BMCSecret, ConsoleProtocol
from metal.api.common import LocalRef
from metal.api.endpoint import Endpoint
from metal.api.server import Server
from metal.cli.machines.targets import Target, decoded
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.controllers.shared.access.bmc_endpoint import credentials, endpoint_address
from metal.controllers.shared.access.problem import Problem
from metal.kube.client.errors import NotFound

SSH_PORT = 22
_SUPPORTED = ("SSH", "SSHLenovo")
_COMMANDS = {"Dell": "console com2", "HPE": "vsp", "Hewlett Packard": "vsp"}
"""Command that opens the serial console in the shell of the BMC, by prefix of the manufacturer."""
_USUAL = "console 1"


@dataclass(frozen=True)
class ConsoleTarget:
    """A console: its address, its login, the command that opens it, and the object whose status has the host key."""

    address: str
    port: int
    username: str = field(repr=False)
    password: str = field(repr=False)
    secret: str
    command: str
    keeper_kind: Any
    keeper: Obj = field(repr=False)


@dataclass(frozen=True)
class _Spec:
    """The fields of a BMC object, or of spec.bmc of a Server."""

    where: str
    address: str
    endpoint: LocalRef | None
    secret: str
    protocol: ConsoleProtocol | None
    manufacturer: str
    keeper_kind: Any
    keeper: Obj


async def find(ctx: CommandContext, found: Target) -> ConsoleTarget:
    """Return the console of a server. Raises click.ClickException that names the object and the fix."""
    spec = await _spec(ctx, found)
    protocol = spec.protocol
    if protocol is not None and protocol.name not in _SUPPORTED:
        raise click.ClickException(
            f"{spec.where} has the console protocol {protocol.name}; only SSH is supported: set "
            "consoleProtocol.name to SSH where the BMC has it"
        )
    address = await _address(ctx, spec)
    login = credentials(spec.secret, await _read(ctx, ctx.kinds.bmc_secret, spec.secret, BMCSecret))
    if isinstance(login, Problem):
        raise click.ClickException(login.message)
    port = (protocol.port if protocol is not None else 0) or SSH_PORT
    command = _command(protocol, spec.manufacturer)
    return ConsoleTarget(
        address, port, login.username, login.password, spec.secret, command, spec.keeper_kind, spec.keeper
    )  # fmt: skip


async def _spec(ctx: CommandContext, found: Target) -> _Spec:
    server: Server = found.server
    inline, ref = server.spec.bmc, server.spec.bmc_ref
    if ref is not None:
        obj = await _object(ctx, ctx.kinds.bmc, ref.name)
        if obj is None:
            raise click.ClickException(f"BMC {ref.name} does not exist: create it or correct spec.bmcRef")
        bmc: BMC = decoded(obj, BMC)
        address = (bmc.spec.access.ip if bmc.spec.access else "") or ""
        manufacturer = bmc.status.manufacturer or server.status.manufacturer
        return _Spec(
            f"BMC {ref.name}", address, bmc.spec.endpoint_ref, bmc.spec.bmc_secret_ref.name, bmc.spec.console_protocol,
            manufacturer, ctx.kinds.bmc, obj,
        )  # fmt: skip
    if inline is None:
        raise click.ClickException(f"server {found.name} has no BMC: set spec.bmcRef or spec.bmc")
    return _Spec(
        f"server {found.name}", inline.address, inline.endpoint_ref, inline.bmc_secret_ref.name,
        inline.console_protocol, server.status.manufacturer, ctx.kinds.server, found.obj,
    )  # fmt: skip


async def _address(ctx: CommandContext, spec: _Spec) -> str:
    if spec.address:
        return spec.address
    if spec.endpoint is None:
        raise click.ClickException(f"{spec.where} has no address: set it")
    endpoint = await _read(ctx, ctx.kinds.endpoint, spec.endpoint.name, Endpoint)
    address = endpoint_address(spec.endpoint.name, endpoint)
    if isinstance(address, Problem):
        raise click.ClickException(address.message)
    return address


def _command(protocol: ConsoleProtocol | None, manufacturer: str) -> str:
    if protocol is not None and protocol.name == "SSHLenovo":
        return _USUAL
    return next((command for name, command in _COMMANDS.items() if manufacturer.startswith(name)), _USUAL)


async def _read(ctx: CommandContext, kind: Any, name: str, struct: type[Any]) -> Any:
    obj = await _object(ctx, kind, name) if name else None
    return None if obj is None else decoded(obj, struct)


async def _object(ctx: CommandContext, kind: Any, name: str) -> Obj | None:
    try:
        return await dynamic.get(ctx.http, kind, name, "")
    except NotFound as exc:
        if not exc.details.get("name"):
            raise
        return None
