"""Exit codes of the commands that look at and change objects, and the failures that stand for them."""

from collections.abc import Sequence
from typing import IO, Any

import click

from metal.kube.client.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized, Unavailable

EXITS = "Exit codes: 0 done, 1 refused or failed (with a sentence), 2 wrong command line, 3 not found, 4 timed out."


class Missing(click.ClickException):
    """What was named is not there."""

    exit_code = 3


class TimedOut(click.ClickException):
    """What was awaited did not come in time."""

    exit_code = 4


class MultipleFailures(click.ClickException):
    """What failed of several names; the exit code is theirs when all agree, else 1."""

    def __init__(self, failures: Sequence[click.ClickException]) -> None:
        super().__init__("; ".join(failure.format_message() for failure in failures))
        self.failures = failures

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click's is a class variable
        """The code that all have, else 1."""
        codes = {failure.exit_code for failure in self.failures}
        return codes.pop() if len(codes) == 1 else 1

    def show(self, file: IO[Any] | None = None) -> None:
        """One line for each."""
        for failure in self.failures:
            failure.show(file)


def failure(exc: ApiError, group: str = "") -> click.ClickException:
    """What an API's refusal means for who typed the command. `group` is the API group that was asked for."""
    if isinstance(exc, Unavailable):
        return click.ClickException(f"the API did not answer: {exc.message}. Is `metalctl up` running?")
    if isinstance(exc, NotFound) and exc.details.get("name"):
        return Missing(f"{exc.details.get('kind') or 'object'} {exc.details['name']} not found")
    if isinstance(exc, NotFound):
        return Missing(f"the API has no such kind{f' in group {group}' if group else ''}: {exc.message}")
    if isinstance(exc, Conflict):
        return click.ClickException(f"{exc.message}. Somebody else changed it meanwhile; run the command again")
    if isinstance(exc, Unauthorized | Forbidden):
        return click.ClickException(f"not allowed: {exc.message}")
    return click.ClickException(f"the API refused: {exc.message}")
