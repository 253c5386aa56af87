"""Waits until an object has reached a state.

A command passes a function that returns what is still awaited of the object. The object is listed and watched; after
each change the function is called, and its text is shown as progress. The wait ends when the text is empty, when the
function raises, or when the timeout expires. An API server that restarts in the meantime is contacted again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import click

from metal.cli.support import dynamic
from metal.cli.support.durations import Duration, spoken
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import TimedOut
from metal.cli.support.progress import Progress
from metal.kube.client.errors import Expired, Unavailable
from metal.kube.client.http import HTTPClient

_RETRY = 1.0
"""Seconds before an API server that closed the connection is contacted again."""

Awaited = Callable[[Obj | None], str]
"""Returns what is awaited of an object (None if it does not exist), or an empty text. May raise
click.ClickException."""

wait_option = click.option("--wait", is_flag=True, help="Wait until the command has completed, and show progress.")
timeout_option = click.option(
    "--timeout", type=Duration(), default="30m", show_default=True, help="Maximum time of --wait; then exit code 4."
)


async def versions(http: HTTPClient, kind: Any, name: str, namespace: str = "") -> AsyncGenerator[Obj | None, None]:
    """Yield the object now and after each change; None while it does not exist. Never ends."""
    fields = f"metadata.name={name}"
    where = namespace if kind.namespaced else ""
    while True:
        now = await dynamic.listed(http, kind, where, fields=fields)
        yield now["items"][0] if now["items"] else None
        try:
            watch = dynamic.watched(http, kind, where, now["metadata"]["resourceVersion"], fields=fields)
            async with aclosing(watch) as events:
                async for event in events:
                    yield None if event["type"] == "DELETED" else event["object"]
        except (Expired, Unavailable):
            await asyncio.sleep(_RETRY)


async def wait_for(
    http: HTTPClient, kind: Any, name: str, namespace: str, awaited: Awaited, timeout: timedelta, progress: Progress
) -> Obj | None:
    """Return the object when nothing is awaited any more. Raises TimedOut, and what `awaited` raises."""
    label = f"{kind.kind.lower()}/{name}"
    last = "the API"
    try:
        async with (
            asyncio.timeout(timeout.total_seconds()),
            aclosing(_reconnecting(http, kind, name, namespace)) as seen,
        ):
            async for obj in seen:
                last = awaited(obj)
                if not last:
                    return obj
                progress.show(label, last)
    except TimeoutError:
        raise TimedOut(f"{label}: not completed within {spoken(timeout)}; still waiting for {last}") from None
    finally:
        progress.done(label)
    raise AssertionError("a watch goes on without end")


async def _reconnecting(http: HTTPClient, kind: Any, name: str, namespace: str) -> AsyncGenerator[Obj | None, None]:
    """Yield versions, also across a restart of the API server once it has answered."""
    answered = False
    while True:
        try:
            async with aclosing(versions(http, kind, name, namespace)) as seen:
                async for obj in seen:
                    answered = True
                    yield obj
        except Unavailable:
            if not answered:
                raise
            await asyncio.sleep(_RETRY)


async def wait_until_deleted(http: HTTPClient, kind: Any, obj: Obj, timeout: timedelta, progress: Progress) -> None:
    """Return when this object, identified by its UID, no longer exists. Raises TimedOut."""
    meta = obj["metadata"]

    def awaited(now: Obj | None) -> str:
        if now is None or now["metadata"]["uid"] != meta["uid"]:
            return ""
        holders = ", ".join(now["metadata"].get("finalizers") or ())
        return f"its deletion (finalizers {holders})" if holders else "its deletion"

    await wait_for(http, kind, meta["name"], meta.get("namespace", ""), awaited, timeout, progress)
