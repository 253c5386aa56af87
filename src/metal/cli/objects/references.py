"""Parses references to objects: KIND NAME…, KIND/NAME… and KIND,KIND."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from metal.cli.support.context import CommandContext
from metal.cli.support.exits import Missing
from metal.cli.support.resources import api_resources, find
from metal.kube.client.resources import Resource


@dataclass(frozen=True)
class Reference:
    """A kind and the name of an object; without a name, all objects of the kind."""

    resource: Resource
    name: str = ""

    def __str__(self) -> str:
        return f"{kind_name(self.resource)}/{self.name}"


def kind_name(resource: Resource) -> str:
    """Return the kind as `-o name` prints it: singular.group."""
    return f"{resource.singular}.{resource.group}" if resource.group else resource.singular


def read(known: Sequence[Resource], words: Sequence[str]) -> list[Reference]:
    """Return the references. Raises click.UsageError, or Missing for a kind that the API server does not have."""
    if any("/" in word for word in words):
        return [_slashed(known, word) for word in words]
    kinds, *names = words
    found = [resource for word in kinds.split(",") for resource in find(known, word)]
    if names and len(found) > 1:
        raise click.UsageError(f"{kinds} are several kinds: name objects of one kind, or use KIND/NAME")
    return [Reference(resource, name) for resource in found for name in names or ("",)]


def one_namespace(references: Sequence[Reference], *, everywhere: bool) -> None:
    """Raise click.UsageError for a named object together with all namespaces."""
    if everywhere and any(reference.name and reference.resource.namespaced for reference in references):
        raise click.UsageError("a named object is in one namespace: use -n instead of -A")


async def named(ctx: CommandContext, words: Sequence[str]) -> list[Reference]:
    """Return references that all have a name. Raises click.UsageError and Missing."""
    references = read(await api_resources(ctx.http), words)
    if not all(reference.name for reference in references):
        raise click.UsageError("name the objects: KIND NAME or KIND/NAME")
    return references


def _slashed(known: Sequence[Resource], word: str) -> Reference:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise click.UsageError(f"{word!r} is not KIND/NAME: use that form for all objects or for none")
    found = find(known, kind)
    if len(found) > 1:
        raise Missing(f"{kind} are several kinds: name one")
    return Reference(found[0], name)
