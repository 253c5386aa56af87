"""The SSH host key that the status of a BMC holds, for consoles as for controllers (controllers.hostkey).

At first use the key is read without a login and written there; another one is refused before the password is sent, and
the status says so until somebody accepts it.
"""

from collections.abc import Callable

import click
import msgspec

from metal.api.bmc import Pin
from metal.bmc.errors import BMCError, BMCHostKeyChanged
from metal.bmc.ssh import SSHShell
from metal.cli.console.target import ConsoleTarget
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import failure
from metal.controllers.shared.host_key import ACCEPT
from metal.kube.client.errors import ApiError, Conflict
from metal.kube.meta.clock import system_clock

CONNECT = 10.0
"""Seconds that a BMC may take to show its key."""
_TRIES = 5
"""Writes of a status that controllers write, too."""


async def pinned(ctx: CommandContext, console: ConsoleTarget) -> str:
    """SHA-256 of the key that the BMC must have. Raises click.ClickException and ApiError."""
    known = _pin(console.keeper)
    if known is not None:
        return known.sha256
    first = Pin(sha256=await _presented(console), since=system_clock().replace(microsecond=0))
    pin = await _update(ctx, console, lambda known: known or first)
    if pin == first:
        click.echo(f"the host key of {_name(console)} is {first.sha256} from now on", err=True)
    return (pin or first).sha256


async def shown(ctx: CommandContext, console: ConsoleTarget) -> None:
    """The pinned key was shown: one that was refused before is not told of any longer. Raises ApiError."""
    known = _pin(console.keeper)
    if known is not None and known.refused:
        await _update(ctx, console, lambda pin: _refusing(pin, ""))


async def changed(
    ctx: CommandContext, console: ConsoleTarget, pin: str, exc: BMCHostKeyChanged
) -> click.ClickException:
    """What to say of another key, which is written down, to be accepted or not."""
    operation = f"{ctx.kinds.key('operation')}={ACCEPT}"
    out = f"kubectl annotate {console.keeper_kind.plural} {console.keeper['metadata']['name']} {operation}"
    try:
        await _update(ctx, console, lambda known: _refusing(known, exc.seen))
    except ApiError as error:
        out = f"somebody has to write it into its status.sshHostKey first ({failure(error).format_message()})"
    return click.ClickException(
        f"the host key of {_name(console)} has changed: {pin} is known, {exc.seen} was shown. The password was not sent. "
        f"When the BMC was exchanged or reset: {out}"
    )


def unreachable(console: ConsoleTarget, exc: BMCError) -> click.ClickException:
    """What to say when there is no SSH."""
    return click.ClickException(f"no SSH at {console.address} port {console.port}: {exc} Is it enabled on the BMC?")


async def _presented(console: ConsoleTarget) -> str:
    try:
        return await SSHShell(connect_timeout=CONNECT).host_key(console.address, console.port)
    except BMCError as exc:
        raise unreachable(console, exc) from None


async def _update(
    ctx: CommandContext, console: ConsoleTarget, change: Callable[[Pin | None], Pin | None]
) -> Pin | None:
    """Change the pin as it is in the API by now; others write the status, too. Raises ApiError."""
    name = console.keeper["metadata"]["name"]
    for left in reversed(range(_TRIES)):
        keeper = await dynamic.get(ctx.http, console.keeper_kind, name, "")
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
    """What is trusted by now is not refused."""
    if pin is None or pin.sha256 == refused:
        return pin
    return msgspec.structs.replace(pin, refused=refused)


def _name(console: ConsoleTarget) -> str:
    return f"{console.keeper['kind']} {console.keeper['metadata']['name']}"
