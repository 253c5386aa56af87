"""metalctl config"""

from pathlib import Path

import click

from metal.config import ConfigError, load
from metal.config.describe import documented


@click.command("config")
@click.option(
    "--check",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Validate this file instead.",
)
def command(check: Path | None) -> None:
    """Print a configuration file with every option, its description, unit and default; or validate a file."""
    if check is None:
        click.echo(documented(), nl=False)
        return
    try:
        load(check)
    except ConfigError as exc:
        raise click.UsageError(str(exc)) from None
    click.echo(f"{check}: valid")
