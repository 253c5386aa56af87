"""Runs a command for several names."""

from collections.abc import Awaitable, Callable, Iterable

import click

from metal.cli.support.completing import SERVER
from metal.cli.support.context import each
from metal.cli.support.dynamic import Obj
from metal.cli.support.output import emit

servers_argument = click.argument("servers", nargs=-1, required=True, metavar="SERVER...", type=SERVER)


async def for_each(names: Iterable[str], work: Callable[[str], Awaitable[Obj]], output: str | None) -> None:
    """Do the work for each name, then print the objects if `output` is set; otherwise the work prints messages.

    Raises click.ClickException for all failures, after all work has ended.
    """
    done = await each(names, work)
    if output is not None:
        emit(done, output, one=True)
