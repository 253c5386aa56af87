"""Durations on the command line: 90s, 30m, 1h30m."""

import re
from datetime import timedelta
from typing import Any

import click

_FORM = re.compile(r"(?:(?P<hours>\d{1,4})h)?(?:(?P<minutes>\d{1,6})m)?(?:(?P<seconds>\d{1,8})s)?")


class Duration(click.ParamType[timedelta]):
    """Hours, minutes and seconds, as a timedelta of at least one second."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Raises click.BadParameter."""
        if isinstance(value, timedelta):
            return value
        found = _FORM.fullmatch(value)
        parts = {name: int(digits) for name, digits in (found.groupdict() if found else {}).items() if digits}
        if not any(parts.values()):
            self.fail(f"{value!r} is not a duration: use a format such as 90s, 30m or 1h30m", param, ctx)
        return timedelta(**parts)


def spoken(duration: timedelta) -> str:
    """Return the duration in the format of the command line."""
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
