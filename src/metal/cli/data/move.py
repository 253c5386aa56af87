"""metalctl move"""

import asyncio
import json
import socket
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from metal.api.kinds import Kinds, kinds
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage.journal import JournalError
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.datadir import Unusable, locked
from metal.codegen.crd import crds
from metal.kube.client.errors import ApiError, Unavailable
from metal.kube.client.http import HTTPClient
from metal.kube.meta.clock import system_clock
from metal.move.homes import Home, Refused
from metal.move.inventory import Inventory
from metal.move.lock import run_locked
from metal.move.mover import Mover

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@dataclass(frozen=True)
class _Options:
    """The command line."""

    to_kubeconfig: Path | None
    to_data: Path | None
    to_context: str | None
    data: Path | None
    namespace: str
    dry_run: bool
    output: str
    yes: bool
    kubeconfig: Path | None
    context: str | None
    api_group: str


@click.command("move")
@click.option("--to-kubeconfig", type=_FILE, help="Kubeconfig of the target API server.")
@click.option("--to-data", type=_FOLDER, help="Data folder of a stopped `metalctl up` as the target.")
@click.option("--to-context", default=None, help="Context of --to-kubeconfig. Defaults to its current context.")
@click.option(
    "--data",
    type=_FOLDER,
    default=None,
    help="Data folder of a stopped `metalctl up` as the source, instead of --kubeconfig.",
)
@click.option("--namespace", default="metal-system", show_default=True, help="Namespace of the managers.")
@click.option(
    "--dry-run", is_flag=True, help="Check both API servers and print what would be moved, without changing anything."
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@connection_options
def command(**given: Any) -> None:
    """Move all objects from one API server to another: from `metalctl up` into a cluster, or back.

    The managers of both sides stop; objects, their status and the Secrets that they need are copied and verified; then
    the managers of the target start, and those of the source stay paused. No machine is powered or booted. After an
    interruption, the same command continues; with source and target exchanged it cancels an unfinished move, or moves
    back.

    \b
    Examples:
      metalctl move --to-kubeconfig cluster.yaml --dry-run
      metalctl move --kubeconfig .metal/kubeconfig --to-kubeconfig cluster.yaml
      metalctl move --kubeconfig cluster.yaml --to-data .metal

    Exit codes: 0 done, 1 failed or not possible (with a message), 2 usage error.
    """
    options = _Options(**given)
    if (options.to_kubeconfig is None) == (options.to_data is None):
        raise click.UsageError("use exactly one of --to-kubeconfig and --to-data")
    if options.data is not None and options.kubeconfig is not None:
        raise click.UsageError("--kubeconfig and --data cannot be combined")
    names = kinds(options.api_group)
    source = _home(options.kubeconfig, options.context, options.data, names, options.namespace)
    target = _home(options.to_kubeconfig, options.to_context, options.to_data, names, options.namespace)
    show = _Output(options.output, dry_run=options.dry_run, yes=options.yes)
    try:
        asyncio.run(_run(source, target, show))
    except Refused as exc:
        raise click.ClickException(str(exc)) from None
    except Unavailable as exc:
        raise click.ClickException(f"an API server did not answer: {exc.message}. Run the same command again") from None
    except ApiError as exc:
        raise click.ClickException(
            f"an API server rejected a request: {exc.message}. Run the same command again"
        ) from None
    except (Unusable, JournalError, OSError) as exc:
        raise click.ClickException(str(exc)) from None


def _home(kubeconfig: Path | None, context: str | None, data: Path | None, names: Kinds, namespace: str) -> Any:
    """Return a context that opens a home: over its kubeconfig, or in its folder, which is locked."""
    if data is not None:
        return _in_folder(data, names, namespace)
    return _over_api(kubeconfig, context, names, namespace)


@asynccontextmanager
async def _over_api(kubeconfig: Path | None, context: str | None, names: Kinds, namespace: str) -> AsyncIterator[Home]:
    reached = connection(kubeconfig, context)
    client = HTTPClient(reached)
    try:
        name = str(kubeconfig or reached.url)  # for a default kubeconfig the URL is clearer
        yield Home(f"{name} ({context})" if context else name, client, names, namespace)
    finally:
        await client.aclose()


@asynccontextmanager
async def _in_folder(folder: Path, names: Kinds, namespace: str) -> AsyncIterator[Home]:
    with locked(folder) as held:
        held.keep_group(names.group)
        api = EmbeddedAPI(folder, system_clock)
        await api.start()
        try:
            await api.install_crds(crds(names))
            yield Home(str(folder), api.client(), names, namespace, exclusive=True)
        finally:
            await api.stop()


class _Output:
    """Output for humans, or JSON for programs."""

    def __init__(self, output: str, *, dry_run: bool, yes: bool) -> None:
        self.json, self.dry_run, self.yes = output == "json", dry_run, yes

    def step(self, sentence: str) -> None:
        """Print a completed step."""
        click.echo(sentence, err=self.json)

    def plan(self, mover: Mover, found: Inventory) -> None:
        """Print what would be moved."""
        if self.json:
            click.echo(json.dumps({
                "from": mover.source.name, "to": mover.target.name, "objects": found.counts(),
                "loseOwners": [str(one) for one in found.orphaned()],
            }, indent=2))  # fmt: skip
            return
        click.echo(f"from {mover.source.name} to {mover.target.name}:")
        for kind, count in found.counts().items():
            click.echo(f"  {count:6} {kind}")
        for one in found.orphaned():
            click.echo(f"  {one} loses an owner that is not moved")


def _agreed(here: Home, there: Home) -> bool:
    return sys.stdin.isatty() and click.confirm(f"Move all objects from {here.name} to {there.name}?", err=True)


async def _run(source: Any, target: Any, show: _Output) -> None:
    async with source as here, target as there:
        mover = Mover(here, there, show.step)
        if show.dry_run:
            show.plan(mover, await mover.plan())
            return
        if not show.yes and not await asyncio.to_thread(_agreed, here, there):
            raise click.ClickException("nothing was changed; use --yes to move without confirmation")
        for home in (here, there):
            for other in await home.other_versions():
                show.step(f"warning: the manager {other} at {home.name} has another version than metalctl")
        me = f"{socket.gethostname()}_{uuid.uuid4()}"
        outcome = await run_locked((here, there), mover.run, identity=me, clock=system_clock)
        if show.json:
            click.echo(json.dumps({
                "move": outcome.id, "from": here.name, "to": there.name, "objects": outcome.moved,
                "stopped": outcome.stopped, "loseOwners": outcome.orphaned,
            }, indent=2))  # fmt: skip
