"""One session on a console: connect with the host key that is known, then pass keys and output on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import asyncssh
import click

from metal.bmc.errors import BMCAuthError, BMCError, BMCHostKeyChanged
from metal.bmc.protocols import ShellAccess
from metal.bmc.ssh import connect
from metal.cli.console import host_key
from metal.cli.console.asciicast import Recording
from metal.cli.console.escape import HELP, Escape
from metal.cli.console.target import ConsoleTarget
from metal.cli.console.terminal import Local
from metal.cli.support.context import CommandContext

_ALIVE = 15.0
"""Seconds of silence after which the BMC is asked whether it is still there; three times, then the session ends."""
_LOGIN = 40.0
"""Seconds that a BMC may take from the first packet to the login."""
_PORTION = 65536


@asynccontextmanager
async def connected(ctx: CommandContext, console: ConsoleTarget) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection that was logged in, to the host key that is pinned. Raises click.ClickException and ApiError."""
    access = ShellAccess(
        console.address, console.port, console.username, console.password, await host_key.pinned(ctx, console)
    )
    try:
        connection = await connect(access, _LOGIN, keepalive=_ALIVE)
    except BMCHostKeyChanged as exc:
        raise await host_key.changed(ctx, console, access.host_key, exc) from None
    except BMCAuthError:
        raise click.ClickException(
            f"the BMC at {console.address} refused user name and password of BMCSecret {console.secret} over SSH: may this "
            "account use SSH?"
        ) from None
    except BMCError as exc:
        raise host_key.unreachable(console, exc) from None
    async with connection:
        await host_key.shown(ctx, console)
        yield connection


class Session:
    """A console that is open. `run` ends when the other side does, or with the escape."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]", local: Local, recording: Recording | None) -> None:
        self._process, self._local, self._recording = process, local, recording

    def resize(self) -> None:
        """Tell the other side, and the recording, the size of the terminal."""
        size = self._local.size()
        self._process.change_terminal_size(*size)
        if self._recording is not None:
            self._recording.resized(size)

    async def run(self) -> None:
        """Pass keys and output on. Raises click.ClickException when the connection breaks."""
        output = asyncio.create_task(self._output())
        keys = asyncio.create_task(self._keys())
        try:
            done, _ = await asyncio.wait({output, keys}, return_when=asyncio.FIRST_COMPLETED)
            if keys in done and not await keys:
                await output  # nothing more will be typed, as from a file: look on
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
        """False when the other side has ended; what it said last says why."""
        try:
            self._process.stdin.write(keys)
        except (BrokenPipeError, asyncssh.Error):
            return False
        return True

    async def _keys(self) -> bool:
        """True when the session was ended here."""
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
