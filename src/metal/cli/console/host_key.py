"""The SSH host key that is pinned in the status of a BMC, for consoles as for controllers.

At first use the key is read without a login and written to the status. A different key is rejected before the password
is sent, and recorded in the status until it is accepted (operation accept-host-key).
"""

from collections.abc import Callable

import click
import msgspec

from metal.api.bmc import Pin
from metal.api.names import OPERATION
from metal.bmc.errors import BMCError, BMCHostKeyChanged
from metal.bmc.ssh import SSHShell
from metal.cli.console.target import ConsoleTarget
from metal.cli.machines.unchanged import require_same
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import failure
from metal.controllers.shared.access.host_key import ACCEPT
from metal.kube.client.errors import ApiError, Conflict
from metal.kube.meta.clock import system_clock

CONNECT = 10.0
"""Timeout in seconds for reading the host key of a BMC."""
_TRIES = 5
"""Attempts to patch a status that controllers patch at the same time."""


async def pinned(ctx: CommandContext, console: ConsoleTarget) -> str:
    """Return the SHA-256 of the pinned key, pinning it at first use. Raises click.ClickException and ApiError."""
    known = _pin(console.keeper)
    if known is not None:
        return known.sha256
    first = Pin(sha256=await _presented(console), since=system_clock().replace(microsecond=0))
    pin = await _update(ctx, console, lambda known: known or first)
    if pin == first:
        click.echo(f"pinned the host key of {_name(console)}: {first.sha256}", err=True)
    return (pin or first).sha256


async def shown(ctx: CommandContext, console: ConsoleTarget) -> None:
    """Clear the rejected key from the status: the BMC presents the pinned one. Raises ApiError."""
    known = _pin(console.keeper)
    if known is not None and known.refused:
        await _update(ctx, console, lambda pin: _refusing(pin, ""))


async def changed(
    ctx: CommandContext, console: ConsoleTarget, pin: str, exc: BMCHostKeyChanged
) -> click.ClickException:
    """Record a different key in the status, and return the error with the way to accept it."""
    operation = f"{ctx.kinds.key(OPERATION)}={ACCEPT}"
    way_out = f"kubectl annotate {console.keeper_kind.plural} {console.keeper['metadata']['name']} {operation}"
    try:
        await _update(ctx, console, lambda known: _refusing(known, exc.seen))
    except ApiError as error:
        way_out = f"an administrator must record it in status.sshHostKey ({failure(error).format_message()})"
    return click.ClickException(
        f"the host key of {_name(console)} has changed: {pin} is pinned, {exc.seen} was presented. The password was "
        f"not sent. If the BMC was replaced or reset: {way_out}"
    )


def unreachable(console: ConsoleTarget, exc: BMCError) -> click.ClickException:
    """Return the error of a failed SSH connection."""
    return click.ClickException(
        f"no SSH at {console.address} port {console.port}: {exc} Check that SSH is enabled on the BMC"
    )


async def _presented(console: ConsoleTarget) -> str:
    try:
        return await SSHShell(connect_timeout=CONNECT).host_key(console.address, console.port)
    except BMCError as exc:
        raise unreachable(console, exc) from None


async def _update(
    ctx: CommandContext, console: ConsoleTarget, change: Callable[[Pin | None], Pin | None]
) -> Pin | None:
    """Patch the pin in the status, again after a conflict. Raises click.ClickException and ApiError."""
    name, uid = console.keeper["metadata"]["name"], console.keeper["metadata"]["uid"]
    for left in reversed(range(_TRIES)):
        keeper = require_same(uid, await dynamic.get(ctx.http, console.keeper_kind, name, ""))
        pin = change(_pin(keeper))
        if pin is None or pin == _pin(keeper):
            return pin
        try:
            await dynamic.merge(ctx.http, console.keeper_kind, name, "", _patch(keeper, pin), status=True)
            return pin
        except Conflict:
            if not left:
                raise
    return None


def _patch(keeper: Obj, pin: Pin) -> Obj:
    written = {"refused": None, **msgspec.to_builtins(pin)}
    return {
        "metadata": {"resourceVersion": keeper["metadata"]["resourceVersion"]},
        "status": {"sshHostKey": written},
    }


def _pin(keeper: Obj) -> Pin | None:
    found = (keeper.get("status") or {}).get("sshHostKey")
    return None if found is None else msgspec.convert(found, Pin)


def _refusing(pin: Pin | None, refused: str) -> Pin | None:
    """Set the rejected key, unless it is the pinned one."""
    if pin is None or pin.sha256 == refused:
        return pin
    return msgspec.structs.replace(pin, refused=refused)


def _name(console: ConsoleTarget) -> str:
    return f"{console.keeper['kind']} {console.keeper['metadata']['name']}"
