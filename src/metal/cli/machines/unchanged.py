"""Writes a decision to the object for which it was made: not to another of the same name, nor after it was changed."""

from collections.abc import Callable
from typing import Any

import click

from metal.cli.support import dynamic
from metal.cli.support.dynamic import Obj
from metal.kube.client.errors import Conflict
from metal.kube.client.http import HTTPClient

_TRIES = 5
"""Attempts to patch an object that its manager changes at the same time."""
_ADVICE = "nothing was changed; look at it before you run the command again"


async def merge_if_unchanged(
    http: HTTPClient, kind: Any, obj: Obj, patch: Obj, basis: Callable[[Obj], object] = lambda _: None
) -> Obj:
    """Send a JSON merge patch for an object as it was read; if it was changed since, only when its basis is the same.

    `basis` returns what the decision depends on, and may raise. Raises click.ClickException, NotFound, Conflict.
    """
    first = basis(obj)
    for _ in range(_TRIES):
        meta = obj["metadata"]
        precondition = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **precondition}}
        try:
            return await dynamic.merge(http, kind, meta["name"], meta.get("namespace", ""), body)
        except Conflict as exc:
            conflict = exc
        obj = require_same(meta["uid"], await dynamic.get(http, kind, meta["name"], meta.get("namespace", "")))
        if basis(obj) != first:
            raise click.ClickException(f"{_who(obj)} was changed meanwhile: {_ADVICE}")
    raise conflict


def require_same(uid: str, obj: Obj) -> Obj:
    """Return an object that was read again, if it has this UID. Raises click.ClickException."""
    if obj["metadata"]["uid"] != uid:
        raise click.ClickException(f"{_who(obj)} was deleted and created again: {_ADVICE}")
    return obj


def _who(obj: Obj) -> str:
    return f"{obj['kind'].lower()} {obj['metadata']['name']}"
