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
    help="Command that opens the console in the shell of the BMC. Defaults by manufacturer; empty opens the shell.",
)  # fmt: skip
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Record the output into a new file (asciicast v2).",
)
@on_api
async def command(ctx: CommandContext, server: str, typed: str | None, record: Path | None) -> None:
    """Open the serial console of a server over SSH to its BMC. `~.` at the beginning of a line ends the session.

    Protocol and port are spec.consoleProtocol of the BMC (or spec.bmc.consoleProtocol of the Server), by default SSH on
    port 22. The login is that of the BMCSecret. The SSH host key is pinned in status.sshHostKey at first use; a
    different key is rejected before the password is sent, until it is accepted with operation=accept-host-key. A
    recording has the output, not the typed keys.
    """
    from metal.cli.console.target import find  # as below: asyncssh is loaded only for a console

    console = await find(ctx, await target(ctx, server))
    await _run_session(ctx, server, console, console.command if typed is None else typed, record)


async def _run_session(ctx: CommandContext, server: str, console: Any, opens: str, record: Path | None) -> None:
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
    started = loop.time()
    try:
        recording = Recording(path, f"console {server}", size, system_clock(), lambda: loop.time() - started)
    except OSError as exc:
        raise click.UsageError(f"--record {path}: {exc.strerror}; choose another file") from None
    with closing(recording):
        yield recording
