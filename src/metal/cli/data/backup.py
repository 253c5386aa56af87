"""metalctl backup"""

import asyncio
from pathlib import Path

import click

from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError
from metal.cli.data.snapshot import snapshot_client
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.datadir import Unusable, locked
from metal.kube.client.kubeconfig import Connection


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="Data folder of a stopped control plane. Defaults to a running API server.",
)  # fmt: skip
@connection_options
def command(file: Path, data: Path | None, kubeconfig: Path | None, context: str | None, api_group: str) -> None:
    """Write a backup of all objects of an embedded API to FILE, also while it is running.

    The backup is consistent. It has every Secret, so only its owner can read it; keys, tokens and cached images are not
    included. `metalctl restore FILE` restores it.
    """
    if file.exists():
        raise click.ClickException(f"{file} exists; choose another file")
    size = _of_folder(data, file) if data else asyncio.run(_download(connection(kubeconfig, context), file))
    click.echo(f"{file}: {size / 1e6:.1f} MB")


async def _download(connection: Connection, file: Path) -> int:
    async with snapshot_client(connection) as client:
        return await client.download(file)


def _of_folder(data: Path, file: Path) -> int:
    if not (data / "state.db").exists():
        raise click.ClickException(
            f"{data} is not the data folder of a control plane (no state.db); choose it with --data"
        )
    try:
        with locked(data):
            loaded = backup.load(data / "state.db")
            backup.save_changes(file, loaded.resource_version, loaded.objects)
    except (Unusable, JournalError) as exc:
        raise click.ClickException(str(exc)) from None
    return file.stat().st_size
