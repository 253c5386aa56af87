"""The live table that `metalctl up` shows on a terminal."""

import asyncio
import contextlib
from collections.abc import Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from metal.api.server import Server
from metal.cli.support.table import render, rows
from metal.kube.cache.informer import Informer
from metal.kube.meta.clock import system_clock

_REFRESH = 0.5


@contextlib.contextmanager
def table(servers: Informer[Server], footer: str) -> Iterator[asyncio.Task[None]]:
    """Show a table of all servers on the terminal during the block."""
    console = Console()
    with Live(console=console, auto_refresh=False, transient=False) as live:
        task = asyncio.get_running_loop().create_task(_refresh(servers, live, console, footer))
        try:
            yield task
        finally:
            task.cancel()


async def _refresh(servers: Informer[Server], live: Live, console: Console, footer: str) -> None:
    while True:
        limit = max(4, console.size.height - footer.count("\n") - 5)
        entries = rows(servers.items(), system_clock())
        shown = render(entries, limit=limit) if entries else Text("waiting for the first server …", style="dim")
        live.update(Group(shown, Text(footer, style="dim")), refresh=True)
        await asyncio.sleep(_REFRESH)
