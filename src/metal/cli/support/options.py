"""Checks of what several commands take on the command line."""

import click

from metal.config.check import problem, split_listen


def address(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An option's callback: address:port, or nothing."""
    if value is not None:
        try:
            split_listen(value)
        except ValueError as exc:
            raise click.BadParameter(str(exc), param=parameter) from None
    return value


def api_group(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An option's callback: the name of an API group, or nothing."""
    wrong = problem("Config", "api_group", value) if value is not None else ""
    if wrong:
        raise click.BadParameter(wrong, param=parameter)
    return value
