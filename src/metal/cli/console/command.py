"""metalctl console"""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from metal.cli.machines.targets import target
from metal.cli.support.completing import SERVER
from metal.cli.support.context import CommandContext, on_api
from metal.cli.support.exits import EXITS
from metal.kube.meta.clock import system_clock


@click.command("console", epilog=EXITS)
@click.argument("server", metavar="SERVER", type=SERVER)
@click.option(
    "--command", "typed", default=None,
    help="What opens the console at the BMC's shell; by its manufacturer when not given. Empty: the shell itself.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), default=None, help="New file for an asciicast v2."
)
@on_api
async def command(ctx: CommandContext, server: str, typed: str | None, record: Path | None) -> None:
    """Open a server's serial console over SSH to its BMC. `~.` at the beginning of a line ends it.

    Protocol and port are spec.consoleProtocol of the BMC (or spec.bmc.consoleProtocol of the Server), SSH on port 22
    without one; the login is that of the BMCSecret. The BMC's host key is that of status.sshHostKey, where the first
    one is written; another one is refused before the password is sent, until operation=accept-host-key. A recording
    holds what was shown, not what was typed.
    """
    from metal.cli.console.target import find

    console = await find(ctx, await target(ctx, server))
    await _converse(ctx, server, console, console.command if typed is None else typed, record)


async def _converse(ctx: CommandContext, server: str, console: Any, opens: str, record: Path | None) -> None:
    from metal.cli.console import session
    from metal.cli.console.terminal import Terminal

    async with session.connected(ctx, console) as connection:
        terminal = Terminal()
        with _recording(record, server, terminal.size()) as recording:
            process = await connection.create_process(
                opens or None, term_type="xterm-256color", term_size=terminal.size(), encoding=None
            )
            click.echo(f"console of {server} at {console.address}; ~. ends it", err=True)
            live = session.Session(process, terminal, recording)
            with terminal.raw(live.resize):
                await live.run()
    click.echo(f"console of {server} closed", err=True)


@contextmanager
def _recording(path: Path | None, server: str, size: tuple[int, int]) -> Iterator[Any]:
    from metal.cli.console.asciicast import Recording

    if path is None:
        yield None
        return
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        recording = Recording(path, f"console {server}", size, system_clock(), lambda: loop.time() - begun)
    except OSError as exc:
        raise click.UsageError(f"--record {path}: {exc.strerror}; choose another file") from None
    with closing(recording):
        yield recording
