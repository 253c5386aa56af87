"""Output of a running `metalctl up`: a live table on a terminal, else log lines."""

import asyncio
import contextlib
from collections.abc import Iterator

import structlog
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from metal.api.server import Server
from metal.cli.support.table import render, rows
from metal.kube.cache.informer import Informer
from metal.kube.meta.clock import system_clock

_log = structlog.get_logger("metal")
_REFRESH = 0.5


def log_transitions(servers: Informer[Server]) -> None:
    """Log each transition of a server to another state."""

    def log(old: Server | None, new: Server | None) -> None:
        before = old.status.state if old is not None else ""
        if new is None:
            _log.info("server deleted", server=old.metadata.name if old else "")
        elif new.status.state and new.status.state != before:
            _log.info(
                f"server {new.status.state}", server=new.metadata.name, power=new.status.power_state or "Unknown",
                **({"was": before} if before else {}), **({"waiting_for": w} if (w := new.status.waiting_for) else {}),
            )  # fmt: skip

    servers.add_handler(log)


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
