"""Validation of options that several commands have."""

from typing import TypeVar

import click

from metal.config.check import problem, split_listen

T = TypeVar("T")


def address(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of an option: address:port or None."""
    if value is not None:
        try:
            split_listen(value)
        except ValueError as exc:
            raise click.BadParameter(str(exc), param=parameter) from None
    return value


def api_group(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of an option: the name of an API group or None."""
    wrong = problem("Config", "api_group", value) if value is not None else ""
    if wrong:
        raise click.BadParameter(wrong, param=parameter)
    return value


def inherited(ctx: click.Context, parameter: click.Parameter, value: T | None) -> T | None:
    """Callback of an option that may also stand before the command, as with kubectl; after it, it takes precedence."""
    return value if value is not None else ctx.find_root().params.get(parameter.name or "")
