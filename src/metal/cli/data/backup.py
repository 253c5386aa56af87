"""metalctl backup"""

import asyncio
from pathlib import Path

import click

from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError
from metal.cli.data.copies import reach
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.datadir import Unusable, locked
from metal.kube.client.kubeconfig import Connection


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="Data folder of a control plane that does not run, instead of asking one that does.",
)  # fmt: skip
@connection_options
def command(file: Path, data: Path | None, kubeconfig: Path | None, context: str | None, api_group: str) -> None:
    """Copy everything that an embedded API holds to FILE, while it works.

    The copy is of one moment. It holds every Secret, so only its owner may read it; keys, tokens and cached images are
    not in it. `metalctl restore FILE` brings it back.
    """
    if file.exists():
        raise click.ClickException(f"{file} is there already; name another file")
    size = _of_folder(data, file) if data else asyncio.run(_fetch(connection(kubeconfig, context), file))
    click.echo(f"{file}: {size / 1e6:.1f} MB")


async def _fetch(connection: Connection, file: Path) -> int:
    async with reach(connection) as copies:
        return await copies.fetch(file)


def _of_folder(data: Path, file: Path) -> int:
    if not (data / "state.db").exists():
        raise click.ClickException(f"{data} holds no control plane (no state.db); name its folder with --data")
    try:
        with locked(data):
            loaded = backup.load(data / "state.db")
            backup.save_changes(file, loaded.resource_version, loaded.objects)
    except (Unusable, JournalError) as exc:
        raise click.ClickException(str(exc)) from None
    return file.stat().st_size
