"""The option --carriers: what the BMCs of a simulated fleet offer to carry boot secrets."""

import click

from metal.sim.options import Carrier, Options, carriers


def _parsed(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[frozenset[Carrier], ...]:
    try:
        return tuple(map(carriers, values)) or Options().carriers
    except ValueError:
        names = ", ".join(Carrier)
        raise click.BadParameter(f"write None, or names joined by +: {names}", param=parameter) from None


carriers_option = click.option(
    "--carriers", multiple=True, callback=_parsed, metavar="NAME+NAME",
    help=f"What simulated BMCs offer to carry boot secrets: None, or names of {', '.join(Carrier)}. Repeat it to mix.",
)  # fmt: skip
