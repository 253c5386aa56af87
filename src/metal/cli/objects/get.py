"""metalctl get"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import click

from metal.cli.objects.references import Reference, kind_name, one_namespace, read
from metal.cli.objects.tables import Printed, is_empty
from metal.cli.support import plain
from metal.cli.support.completing import KIND_OR_OBJECT
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.support.output import dumped, emit, name_of, without_bookkeeping
from metal.cli.support.plain import Obj
from metal.cli.support.resources import discover
from metal.kube.client.errors import Expired, Unavailable

_AGAIN = 1.0
"""Seconds before an API that went away is watched again."""


@dataclass(frozen=True)
class _Wish:
    """The command line."""

    all_namespaces: bool
    selector: str
    watch: bool
    output: str

    @property
    def table(self) -> bool:
        return self.output in ("table", "wide")


@click.command("get", epilog=EXITS)
@click.argument("what", nargs=-1, required=True, metavar="KIND [NAME]... | KIND/NAME...", type=KIND_OR_OBJECT)
@click.option("-A", "--all-namespaces", is_flag=True, help="Of every namespace.")
@click.option("-l", "--selector", default="", help="Labels, such as rack=r7,zone!=b.")
@click.option("-w", "--watch", is_flag=True, help="Go on and print each change, until interrupted.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table", show_default=True
)
@in_namespace
async def command(desk: CommandContext, what: tuple[str, ...], **given: Any) -> None:
    """Show objects of any kind that the API has.

    KIND is a plural, singular, kind or short name, or a category such as metal for all of ours; several with commas.

    \b
    Examples:
      metalctl get servers
      metalctl get srv -l rack=r7 -o wide -w
      metalctl get server/rack1-node1-system-0 -o yaml
      metalctl get metal -A
    """
    wish = _Wish(**given)
    references = read(await discover(desk.http), what)
    one_namespace(references, everywhere=wish.all_namespaces)
    if any(reference.name for reference in references) and wish.selector:
        raise click.UsageError("give names or --selector, not both")
    if wish.watch:
        with suppress(asyncio.CancelledError):  # Ctrl-C is how a watch ends, and no failure
            await _watch(desk, references, wish)
    elif wish.table:
        await _tables(desk, references, wish)
    else:
        await _objects(desk, references, wish)


def _namespace(desk: CommandContext, wish: _Wish) -> str:
    return "" if wish.all_namespaces else desk.namespace


async def _read(desk: CommandContext, reference: Reference, wish: _Wish) -> Obj:
    if reference.name:
        return await plain.get(desk.http, reference.resource, reference.name, desk.namespace, table=wish.table)
    namespace = _namespace(desk, wish)
    return await plain.listed(desk.http, reference.resource, namespace, labels=wish.selector, table=wish.table)


def _printed(references: Sequence[Reference], reference: Reference, wish: _Wish) -> Printed:
    several = len({one.resource for one in references}) > 1
    return Printed(
        wide=wish.output == "wide",
        namespaces=wish.all_namespaces and reference.resource.namespaced,
        prefix=f"{kind_name(reference.resource)}/" if several else "",
    )


async def _tables(desk: CommandContext, references: Sequence[Reference], wish: _Wish) -> None:
    tables = await asyncio.gather(*(_read(desk, reference, wish) for reference in references))
    joined: dict[Any, Obj] = {}
    for reference, table in zip(references, tables, strict=True):
        known = joined.setdefault(reference.resource, {**table, "rows": []})
        known["rows"] = [*known["rows"], *(table.get("rows") or ())]
    blocks = []
    for resource, table in joined.items():
        if lines := _printed(references, Reference(resource), wish).whole(table):
            blocks.append("\n".join(lines))
    if is_empty(tables):
        click.echo(_nothing(desk, references, wish), err=True)
        return
    click.echo("\n\n".join(blocks))


def _nothing(desk: CommandContext, references: Sequence[Reference], wish: _Wish) -> str:
    what = ", ".join(dict.fromkeys(reference.resource.plural for reference in references))
    inside = any(reference.resource.namespaced for reference in references) and not wish.all_namespaces
    return f"no {what} found" + (f" in namespace {desk.namespace}" if inside else "")


async def _objects(desk: CommandContext, references: Sequence[Reference], wish: _Wish) -> None:
    answers = await asyncio.gather(*(_read(desk, reference, wish) for reference in references))
    objects = [
        obj
        for reference, answer in zip(references, answers, strict=True)
        for obj in ([answer] if reference.name else _items(reference, answer))
    ]
    emit(objects, wish.output, one=bool(references[0].name))


def _items(reference: Reference, answer: Obj) -> list[Obj]:
    """Members of a list have no kind of their own on some APIs."""
    typed = {"apiVersion": reference.resource.api_version, "kind": reference.resource.kind}
    return [{**typed, **item} for item in answer["items"]]


async def _watch(desk: CommandContext, references: Sequence[Reference], wish: _Wish) -> None:
    if len(references) != 1:
        raise click.UsageError("--watch follows one kind or one object")
    reference = references[0]
    printed = _printed(references, reference, wish)
    if reference.name:
        await _read(desk, reference, wish)  # raises NotFound
    async with aclosing(_changes(desk, reference, wish)) as changes:
        async for first, obj in changes:
            if not wish.table:
                _print(obj, wish.output)
                continue
            for text in printed.whole(obj) if first else printed.more(obj):
                click.echo(text)


def _print(obj: Obj, form: str) -> None:
    if form == "name":
        click.echo(name_of(obj))
    else:
        click.echo(("---\n" if form == "yaml" else "") + dumped(without_bookkeeping(obj), form), nl=form == "json")


async def _changes(desk: CommandContext, reference: Reference, wish: _Wish) -> AsyncGenerator[tuple[bool, Obj], None]:
    """What is, and each change after it: (True, the table of what is) or (False, one row or object)."""
    fields = f"metadata.name={reference.name}" if reference.name else ""
    scope: dict[str, Any] = {"labels": wish.selector, "fields": fields, "table": wish.table}
    namespace = _namespace(desk, wish)
    while True:
        now = await plain.listed(desk.http, reference.resource, namespace, **scope)
        if wish.table:
            yield True, now
        else:
            for item in _items(reference, now):
                yield False, item
        version = now["metadata"]["resourceVersion"]
        async with aclosing(_until_expired(desk, reference, namespace, version, scope)) as later:
            async for obj in later:
                yield False, obj


async def _until_expired(
    desk: CommandContext, reference: Reference, namespace: str, version: str, scope: dict[str, Any]
) -> AsyncGenerator[Obj, None]:
    while True:
        try:
            watch = plain.watched(desk.http, reference.resource, namespace, version, **scope)
            async with aclosing(watch) as events:
                async for event in events:
                    version = _version(event["object"]) or version
                    yield event["object"]
        except Expired:
            return
        except Unavailable:
            await asyncio.sleep(_AGAIN)


def _version(obj: Obj) -> str:
    rows = obj.get("rows")
    inner = rows[0].get("object") or {} if rows else obj
    return str((inner.get("metadata") or {}).get("resourceVersion", ""))
