"""What all commands on an API share: options, one connection, exit codes, several names at once."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from metal.api.kinds import Kinds, kinds
from metal.cli.support.completing import NAMESPACE
from metal.cli.support.connection import connection, connection_options
from metal.cli.support.exits import MultipleFailures, failure
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient

T = TypeVar("T")
_AGENT = "metalctl"
_SAMPLE = 120.0
"""Seconds without data after which a watch is restarted."""
_LAST = 0.01


@dataclass(frozen=True)
class CommandContext:
    """The API client, the kinds, and the namespace that a command works with."""

    http: HTTPClient
    kinds: Kinds
    namespace: str


def on_api(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turn an async function `function(ctx, **options)` into a command with connection options and exit codes."""

    @connection_options
    @functools.wraps(function)
    def command(kubeconfig: Any, context: str | None, api_group: str, **given: Any) -> None:
        reached = connection(kubeconfig, context)

        async def work() -> None:
            http = HTTPClient(reached, inactivity=_SAMPLE, user_agent=_AGENT)
            try:
                await function(CommandContext(http, kinds(api_group), reached.namespace), **given)
            finally:
                await http.aclose()
                await asyncio.sleep(_LAST)  # a watch's socket, cut short, is closed by the loop a moment later

        with_exit_code(work, api_group)

    return command


def in_namespace(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Like `on_api`, with -n for the namespace of the CommandContext. Defaults to that of the kubeconfig's context."""

    @click.option(
        "-n", "--namespace", default="", type=NAMESPACE, help="Namespace. Defaults to that of the kubeconfig's context."
    )
    @functools.wraps(function)
    async def command(ctx: CommandContext, namespace: str, **given: Any) -> None:
        await function(replace(ctx, namespace=namespace or ctx.namespace), **given)

    return on_api(command)


def with_exit_code(work: Callable[[], Awaitable[None]], group: str = "") -> None:
    """Run a command to its end. Raises click.ClickException with the matching exit code."""

    async def whole() -> None:
        await work()

    try:
        asyncio.run(whole())
    except ApiError as exc:
        raise failure(exc, group) from None


async def each(names: Iterable[str], work: Callable[[str], Awaitable[T]]) -> list[T]:
    """Do the work for all names concurrently, and report failures after all have ended.

    Raises click.ClickException.
    """
    outcomes = await asyncio.gather(*(_attempt(work, name) for name in dict.fromkeys(names)))
    failures = [outcome for outcome in outcomes if isinstance(outcome, click.ClickException)]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise MultipleFailures(failures)
    return [outcome for outcome in outcomes if not isinstance(outcome, click.ClickException)]


async def _attempt(work: Callable[[str], Awaitable[T]], name: str) -> T | click.ClickException:
    try:
        return await work(name)
    except click.ClickException as exc:
        return exc
    except ApiError as exc:
        return failure(exc)
