"""The option --carriers of `metalctl sim` and `metalctl up`."""

import click
import pytest
from click.testing import CliRunner

from metal.cli.run.fleet_carriers import carriers_option
from metal.sim.options import Carrier


@click.command()
@carriers_option
def show(carriers: tuple[frozenset[Carrier], ...]) -> None:
    """Print what each machine has."""
    click.echo(" ".join("+".join(sorted(each)) or "-" for each in carriers))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], "-"),
        (["None", "VirtualMedia+AssetTag", "HttpBootUri"], "- AssetTag+VirtualMedia HttpBootUri"),
    ],
)
def test_each_value_is_one_kind_of_machine(given: list[str], shown: str) -> None:
    """In the order given; without any, no BMC carries a secret."""
    result = CliRunner().invoke(show, [word for value in given for word in ("--carriers", value)])
    assert result.output.strip() == shown


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """As a usage error."""
    result = CliRunner().invoke(show, ["--carriers", "Floppy"])
    assert result.exit_code == 2
    assert "VirtualMedia, HttpBootUri" in result.output
