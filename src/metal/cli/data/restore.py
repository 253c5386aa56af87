"""metalctl restore"""

import asyncio
import contextlib
import sqlite3
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from metal.api.core import CONFIG_MAP
from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError, Loaded
from metal.apiserver.storage.store import GAP
from metal.cli.data.snapshot import snapshot_client
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.datadir import DataDir, Unusable, locked
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection
from metal.kube.meta.objects import key_of
from metal.move.pause import MARK


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="Data folder of a stopped control plane, created if missing. Defaults to a running API server.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing anything.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Replace all objects of an embedded API by the backup FILE, also while it is running.

    The replacement is atomic. resourceVersions leave a gap: every watch ends with 410 Expired, and its client lists
    again. Objects created since the backup are removed without waiting for finalizers. The machines themselves do not
    change: release servers that were claimed since the backup before you restore it. CustomResourceDefinitions are
    only added, and Leases are not changed.
    """
    if data is not None:
        _into_folder(data, file, dry_run=dry_run)
        return
    reached = connection(kubeconfig, context)
    asyncio.run(_require_no_pause(reached))
    plan = asyncio.run(_upload(reached, file, dry_run=True))
    click.echo(f"{plan['written']} objects to write, {plan['removed']} to remove in {reached.url}")
    if dry_run:
        return
    if not yes and not _agreed():
        raise click.ClickException("nothing was changed; use --yes to restore without confirmation")
    asyncio.run(_require_no_pause(reached))
    done = asyncio.run(_upload(reached, file, dry_run=False))
    click.echo(f"restored: {done['written']} written, {done['removed']} removed")


def _agreed() -> bool:
    return sys.stdin.isatty() and click.confirm("restore?")


async def _require_no_pause(reached: Connection) -> None:
    client = HTTPClient(reached)
    try:
        found = (await client.list(CONFIG_MAP, fields=f"metadata.name={MARK}")).items
    except ApiError as exc:
        raise click.ClickException(f"the API server did not show whether it is paused: {exc}") from None
    finally:
        await client.aclose()
    for mark in found:
        _refuse_paused(f"this API (if the other one no longer exists, delete the ConfigMap {key_of(mark)})")


def _refuse_paused(where: str) -> NoReturn:
    raise click.ClickException(
        f"the objects of {where} are being moved, or were moved to another API: a restore would end the pause of its "
        "managers, and managers of both would act on the same machines. Finish or cancel the move with metalctl move"
    )


async def _upload(reached: Connection, file: Path, *, dry_run: bool) -> dict[str, Any]:
    async with snapshot_client(reached) as client:
        return await client.upload(file, dry_run=dry_run)


def _into_folder(data: Path, file: Path, *, dry_run: bool) -> None:
    try:
        loaded = backup.load(file)
        if dry_run:
            click.echo(f"{len(loaded.objects)} objects to restore into {data}")
            return
        with locked(data) as folder:
            kept = _replace(folder, loaded)
    except (Unusable, JournalError) as exc:
        raise click.ClickException(str(exc)) from None
    click.echo(
        f"restored {len(loaded.objects)} objects into {data}{f'; the previous objects are in {kept}' if kept else ''}"
    )


def _settle(database: Path) -> None:
    """Checkpoint the write-ahead log into the file, so that nothing is lost if the process is killed."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as exc:
        raise JournalError(f"{database}: {exc}; nothing was changed") from exc


def _replace(folder: DataDir, loaded: Loaded) -> Path | None:
    """Replace the database; return the file with the previous objects, if any."""
    current = folder.path / "state.db"
    draft, kept = folder.path / ".state.db.restoring", folder.path / "state.db.before-restore"
    draft.unlink(missing_ok=True)
    version = loaded.resource_version + GAP
    # A client that has seen versions after the backup must list again, and never meet one of them a second time.
    if current.exists():
        previous = backup.load(current)
        if any((one.plural, one.name) == (CONFIG_MAP.plural, MARK) for one in previous.objects):
            _refuse_paused(str(folder.path))
        version = max(version, previous.resource_version + GAP)
        kept.unlink(missing_ok=True)
        backup.save_changes(kept, previous.resource_version, previous.objects)
        _settle(current)
    backup.save_changes(draft, version, loaded.objects)
    for beside in ("state.db-wal", "state.db-shm"):
        (folder.path / beside).unlink(missing_ok=True)
    draft.replace(current)
    return kept if kept.exists() else None
