"""Exit codes of the commands that read and change objects, and the exceptions that stand for them."""

from collections.abc import Sequence
from typing import IO, Any

import click

from metal.kube.client.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized, Unavailable

EXITS = "Exit codes: 0 done, 1 failed or rejected (with a message), 2 usage error, 3 not found, 4 timed out."


class Missing(click.ClickException):
    """A named object or kind does not exist."""

    exit_code = 3


class TimedOut(click.ClickException):
    """The timeout of a wait expired."""

    exit_code = 4


class MultipleFailures(click.ClickException):
    """The failures of several names. The exit code is the common one, else 1."""

    def __init__(self, failures: Sequence[click.ClickException]) -> None:
        super().__init__("; ".join(failure.format_message() for failure in failures))
        self.failures = failures

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click's is a class variable
        """Return the common exit code of all failures, else 1."""
        codes = {failure.exit_code for failure in self.failures}
        return codes.pop() if len(codes) == 1 else 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print one line for each failure."""
        for failure in self.failures:
            failure.show(file)


def failure(exc: ApiError, group: str = "") -> click.ClickException:
    """Return the exception with the exit code of an API error. `group` is the API group of the request."""
    if isinstance(exc, NotFound) and exc.details.get("name"):
        return Missing(f"{exc.details.get('kind') or 'object'} {exc.details['name']} not found")
    if isinstance(exc, NotFound):
        return Missing(f"the API server has no such kind{f' in group {group}' if group else ''}: {exc.message}")
    if isinstance(exc, Conflict):
        return click.ClickException(f"{exc.message}. Another client changed the object; run the command again")
    if isinstance(exc, Unauthorized | Forbidden):
        return click.ClickException(f"access denied: {exc.message}")
    return _unanswered_or_rejected(exc)


def read_failure(exc: ApiError, group: str) -> click.ClickException:
    """Return the exception of a command that lists kinds of a group: the exit code is always 1."""
    if isinstance(exc, NotFound):
        return click.ClickException(f"the API server has no kinds of group {group}; set --api-group")
    return _unanswered_or_rejected(exc)


def _unanswered_or_rejected(exc: ApiError) -> click.ClickException:
    if isinstance(exc, Unavailable):
        return click.ClickException(
            f"the API server did not answer: {exc.message}. Check that `metalctl up` is running"
        )
    return click.ClickException(f"the API server rejected the request: {exc.message}")
