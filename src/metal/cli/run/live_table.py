"""What people see while `metalctl up` runs: a live table on a terminal, plain lines elsewhere."""

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
    """Log a line whenever a server enters another state."""

    def tell(old: Server | None, new: Server | None) -> None:
        before = old.status.state if old is not None else ""
        if new is None:
            _log.info("server deleted", server=old.metadata.name if old else "")
        elif new.status.state and new.status.state != before:
            _log.info(
                f"server {new.status.state}", server=new.metadata.name, power=new.status.power_state or "Unknown",
                **({"was": before} if before else {}), **({"waiting_for": w} if (w := new.status.waiting_for) else {}),
            )  # fmt: skip

    servers.add_handler(tell)


@contextlib.contextmanager
def table(servers: Informer[Server], footer: str) -> Iterator[asyncio.Task[None]]:
    """Keep a table of all servers on the terminal for as long as the block runs."""
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
