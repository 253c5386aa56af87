"""What commands on an API share: options, one connection, exit codes, several names at once."""

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
"""Seconds of silence after which a watch is looked at again."""
_LAST = 0.01


@dataclass(frozen=True)
class CommandContext:
    """What a command works with: the API, the names of our kinds, and the namespace for what lives in one."""

    http: HTTPClient
    kinds: Kinds
    namespace: str


def on_api(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An async command `function(ctx, **options)` with the options of a connection; failures become exit codes."""

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
    """Like `on_api`, with -n for the namespace of the ctx; the context's by default."""

    @click.option(
        "-n", "--namespace", default="", type=NAMESPACE, help="Namespace; that of the kubeconfig's context by default."
    )
    @functools.wraps(function)
    async def command(ctx: CommandContext, namespace: str, **given: Any) -> None:
        await function(replace(ctx, namespace=namespace or ctx.namespace), **given)

    return on_api(command)


def with_exit_code(work: Callable[[], Awaitable[None]], group: str = "") -> None:
    """Run a command to its end. Raises click.ClickException with the exit code that fits."""

    async def whole() -> None:
        await work()

    try:
        asyncio.run(whole())
    except ApiError as exc:
        raise failure(exc, group) from None
    except KeyboardInterrupt:
        raise click.Abort from None


async def each(names: Iterable[str], work: Callable[[str], Awaitable[T]]) -> list[T]:
    """Do it for all of them at the same time; what failed is told once everything ended.

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
