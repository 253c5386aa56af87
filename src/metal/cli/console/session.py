"""A console session: connects with the pinned host key, then forwards keys and output."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import asyncssh
import click

from metal.bmc.errors import BMCAuthError, BMCError, BMCHostKeyChanged
from metal.bmc.shell import ShellAccess
from metal.bmc.ssh import connect
from metal.cli.console import host_key
from metal.cli.console.asciicast import Recording
from metal.cli.console.escape import HELP, Escape
from metal.cli.console.target import ConsoleTarget
from metal.cli.console.terminal import Local
from metal.cli.support.context import CommandContext

_ALIVE = 15.0
"""Interval in seconds of SSH keepalives; three unanswered ones end the session."""
_LOGIN = 40.0
"""Timeout in seconds for connecting and logging in."""
_PORTION = 65536


@asynccontextmanager
async def connected(ctx: CommandContext, console: ConsoleTarget) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Connect and log in to the BMC with the pinned host key. Raises click.ClickException and ApiError."""
    access = ShellAccess(
        console.address, console.port, console.username, console.password, await host_key.pinned(ctx, console)
    )
    try:
        connection = await connect(access, _LOGIN, keepalive=_ALIVE)
    except BMCHostKeyChanged as exc:
        raise await host_key.changed(ctx, console, access.host_key, exc) from None
    except BMCAuthError:
        raise click.ClickException(
            f"the BMC at {console.address} rejected user name and password of BMCSecret {console.secret} over SSH: "
            "check that this account may use SSH"
        ) from None
    except BMCError as exc:
        raise host_key.unreachable(console, exc) from None
    async with connection:
        await host_key.shown(ctx, console)
        yield connection


class Session:
    """An open console session. `run` ends when the BMC ends it, or with the escape sequence."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]", local: Local, recording: Recording | None) -> None:
        self._process, self._local, self._recording = process, local, recording

    def resize(self) -> None:
        """Send the size of the terminal to the BMC and to the recording."""
        size = self._local.size()
        self._process.change_terminal_size(*size)
        if self._recording is not None:
            self._recording.resized(size)

    async def run(self) -> None:
        """Forward keys and output. Raises click.ClickException when the connection breaks."""
        output = asyncio.create_task(self._output())
        keys = asyncio.create_task(self._keys())
        try:
            done, _ = await asyncio.wait({output, keys}, return_when=asyncio.FIRST_COMPLETED)
            if keys in done and not await keys:
                await output  # the input has ended, as from a file: keep showing output
            elif output in done:
                await output
        finally:
            for task in (output, keys):
                task.cancel()
            await asyncio.gather(output, keys, return_exceptions=True)

    async def _output(self) -> None:
        try:
            while data := await self._process.stdout.read(_PORTION):
                self._local.show(data)
                if self._recording is not None:
                    self._recording.shown(data)
        except asyncssh.Error as exc:
            raise click.ClickException(f"the connection broke: {exc.reason}") from None

    def _sent(self, keys: bytes) -> bool:
        """Send keys; return False when the BMC has ended the session. Its last output has the reason."""
        try:
            self._process.stdin.write(keys)
        except (BrokenPipeError, asyncssh.Error):
            return False
        return True

    async def _keys(self) -> bool:
        """Forward keys; return True when the user ended the session."""
        escape = Escape()
        async with aclosing(self._local.keys()) as typed:
            async for portion in typed:
                found = escape.feed(portion)
                if found.send and not self._sent(found.send):
                    return False
                if found.help:
                    self._local.show(HELP)
                if found.ends:
                    return True
        return False
