"""metalctl restore"""

import asyncio
import contextlib
import sqlite3
import sys
from pathlib import Path
from typing import Any

import click

from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError, Loaded
from metal.cli.data.copies import reach
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.datadir import DataDir, Unusable, locked
from metal.kube.client.kubeconfig import Connection


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="Data folder of a control plane that does not run, instead of one that does; made when it is new.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connection_options
def command(
    file: Path,
    data: Path | None,
    dry_run: bool,
    yes: bool,
    kubeconfig: Path | None,
    context: str | None,
    api_group: str,
) -> None:
    """Put the copy FILE in place of everything that an embedded API holds, while it works.

    All of it or nothing. Watches go on. Objects made since the copy are removed, without waiting for finalizers; the
    machines themselves are what they are now, so release what was claimed since the copy before you restore it.
    CustomResourceDefinitions are only added, and Leases stay as they are.
    """
    if data is not None:
        _into_folder(data, file, dry_run=dry_run)
        return
    reached = connection(kubeconfig, context)
    plan = asyncio.run(_bring(reached, file, dry_run=True))
    click.echo(f"{plan['written']} objects to write, {plan['removed']} to remove in {reached.url}")
    if dry_run:
        return
    if not yes and not _agreed():
        raise click.ClickException("nothing was changed; give --yes to restore without a question")
    done = asyncio.run(_bring(reached, file, dry_run=False))
    click.echo(f"restored: {done['written']} written, {done['removed']} removed")


def _agreed() -> bool:
    return sys.stdin.isatty() and click.confirm("restore?")


async def _bring(reached: Connection, file: Path, *, dry_run: bool) -> dict[str, Any]:
    async with reach(reached) as copies:
        return await copies.bring(file, dry_run=dry_run)


def _into_folder(data: Path, file: Path, *, dry_run: bool) -> None:
    try:
        loaded = backup.load(file)
        if dry_run:
            click.echo(f"{len(loaded.objects)} objects to put into {data}")
            return
        with locked(data) as folder:
            kept = _replace(folder, loaded)
    except (Unusable, JournalError) as exc:
        raise click.ClickException(str(exc)) from None
    click.echo(f"restored {len(loaded.objects)} objects into {data}{f'; what was there is {kept}' if kept else ''}")


def _settle(database: Path) -> None:
    """Bring what stands in the write-ahead log into the file: killed before it is replaced, nothing is lost."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as exc:
        raise JournalError(f"{database}: {exc}; nothing was changed") from exc


def _replace(folder: DataDir, loaded: Loaded) -> Path | None:
    """Returns where the former objects are, if there were any."""
    current = folder.path / "state.db"
    draft, kept = folder.path / ".state.db.restoring", folder.path / "state.db.before-restore"
    draft.unlink(missing_ok=True)
    version = loaded.resource_version
    if current.exists():
        former = backup.load(current)
        # Versions only go up: a client that saw the former ones must not take older objects for newer ones.
        version = max(version, former.resource_version) + 1
        kept.unlink(missing_ok=True)
        backup.save_changes(kept, former.resource_version, former.objects)
        _settle(current)
    backup.save_changes(draft, version, loaded.objects)
    for beside in ("state.db-wal", "state.db-shm"):
        (folder.path / beside).unlink(missing_ok=True)
    draft.replace(current)
    return kept if kept.exists() else None
