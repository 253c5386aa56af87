"""KIND NAME…, KIND/NAME… and KIND,KIND as people type them."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from metal.cli.support.context import CommandContext
from metal.cli.support.exits import Missing
from metal.cli.support.resources import discover, find
from metal.kube.client.resources import Resource


@dataclass(frozen=True)
class Reference:
    """A kind, and one of its objects; without name all of them."""

    resource: Resource
    name: str = ""

    def __str__(self) -> str:
        return f"{kind_name(self.resource)}/{self.name}"


def kind_name(resource: Resource) -> str:
    """The kind as `-o name` writes it: singular.group."""
    return f"{resource.singular}.{resource.group}" if resource.group else resource.singular


def read(known: Sequence[Resource], words: Sequence[str]) -> list[Reference]:
    """What the words name. Raises click.UsageError, and Missing for a kind that the API does not have."""
    if any("/" in word for word in words):
        return [_slashed(known, word) for word in words]
    kinds, *names = words
    found = [resource for word in kinds.split(",") for resource in find(known, word)]
    if names and len(found) > 1:
        raise click.UsageError(f"{kinds} are several kinds; name objects of one kind, or write KIND/NAME")
    return [Reference(resource, name) for resource in found for name in names or ("",)]


def one_namespace(references: Sequence[Reference], *, everywhere: bool) -> None:
    """Raise click.UsageError for a name that is looked for in every namespace."""
    if everywhere and any(reference.name and reference.resource.namespaced for reference in references):
        raise click.UsageError("a name is looked for in one namespace: give -n instead of -A")


async def named(ctx: CommandContext, words: Sequence[str]) -> list[Reference]:
    """Objects that the words name, each with its name. Raises click.UsageError and Missing."""
    references = read(await discover(ctx.http), words)
    if not all(reference.name for reference in references):
        raise click.UsageError("name the objects: KIND NAME or KIND/NAME")
    return references


def _slashed(known: Sequence[Resource], word: str) -> Reference:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise click.UsageError(f"{word!r} is not KIND/NAME; write all of them so, or none")
    found = find(known, kind)
    if len(found) > 1:
        raise Missing(f"{kind} are several kinds: name one")
    return Reference(found[0], name)
