"""Shell completion of kinds and names: read from the API within a short deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from metal.api import core
from metal.api.kinds import METAL_GROUP, Kinds, kinds
from metal.cli.support import dynamic
from metal.cli.support.connection import connection
from metal.cli.support.resources import api_resources, find
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.resources import Resource

DEADLINE = 1.0
"""Maximum time in seconds that a shell waits for candidates."""
_MOST = 1000
"""Maximum number of candidates."""
_Ask = Callable[[HTTPClient, str], Awaitable[list[str]]]


def offered(ctx: click.Context, incomplete: str, ask: _Ask) -> list[CompletionItem]:
    """Return the results of `ask` with the given prefix; none when the API is unreachable, slow or denies access."""
    params = ctx.params
    try:
        reached = connection(params.get("kubeconfig"), params.get("context"))
        found = asyncio.run(_asked(reached, params.get("namespace") or reached.namespace, ask))
    except (click.ClickException, ApiError, TimeoutError, OSError):
        return []
    return [CompletionItem(name) for name in sorted(set(found)) if name.startswith(incomplete)][:_MOST]


async def _asked(reached: Any, namespace: str, ask: _Ask) -> list[str]:
    http = HTTPClient(reached, connect=DEADLINE, total=DEADLINE)
    try:
        async with asyncio.timeout(DEADLINE):
            return await ask(http, namespace)
    finally:
        await http.aclose()


async def _names(http: HTTPClient, kind: Any, namespace: str) -> list[str]:
    found = await dynamic.listed(http, kind, namespace if kind.namespaced else "")
    return [item["metadata"]["name"] for item in found["items"]]


class ObjectName(click.ParamType[str]):
    """Name of an object of one of our kinds."""

    name = "name"

    def __init__(self, kind: Callable[[Kinds], Any]) -> None:
        self._kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names with the typed prefix."""
        kind = self._kind(kinds(ctx.params.get("api_group") or METAL_GROUP))
        return offered(ctx, incomplete, lambda http, namespace: _names(http, kind, namespace))


class NamespaceName(ObjectName):
    """Name of a namespace."""

    name = "text"


class KindOrObject(click.ParamType[str]):
    """KIND, KIND/NAME, or the name of an object of the kind before it."""

    name = "kind or object"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return kinds first, then names."""
        before = ctx.params.get(param.name or "") or ()
        kind, slash, _ = incomplete.partition("/")

        async def ask(http: HTTPClient, namespace: str) -> list[str]:
            known = await api_resources(http)
            if slash:
                return [f"{kind}/{name}" for name in await _names(http, find(known, kind)[0], namespace)]
            if before and "/" not in before[0]:
                return await _names(http, find(known, before[0])[0], namespace)
            return _kind_words(known)

        return offered(ctx, incomplete, ask)


class Subject(click.ParamType[str]):
    """server/NAME, claim/NAME, bmc/NAME or endpoint/NAME."""

    name = "subject"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return kinds first, then names."""
        names = kinds(ctx.params.get("api_group") or METAL_GROUP)
        word, slash, _ = incomplete.partition("/")
        known = {"server": names.server, "claim": names.claim, "bmc": names.bmc, "endpoint": names.endpoint}
        kind = known.get(word)
        if not slash or kind is None:
            return [CompletionItem(f"{one}/") for one in known if one.startswith(incomplete)]

        async def ask(http: HTTPClient, namespace: str) -> list[str]:
            return [f"{word}/{name}" for name in await _names(http, kind, namespace)]

        return offered(ctx, incomplete, ask)


def _kind_words(known: tuple[Resource, ...]) -> list[str]:
    words = [resource.plural for resource in known]
    words += [short for resource in known for short in resource.short_names]
    return words + [category for resource in known for category in resource.categories]


NAMESPACE = NamespaceName(lambda _: core.NAMESPACE)
SERVER = ObjectName(lambda names: names.server)
CLAIM = ObjectName(lambda names: names.claim)
KIND_OR_OBJECT = KindOrObject()
WHY = Subject()
