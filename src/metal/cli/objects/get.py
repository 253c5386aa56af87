"""metalctl get"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import click

from metal.cli.objects.references import Reference, kind_name, one_namespace, read
from metal.cli.objects.tables import TablePrinter, is_empty
from metal.cli.support import dynamic
from metal.cli.support.completing import KIND_OR_OBJECT
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import dumped, emit, name_of, without_managed_fields
from metal.cli.support.resources import api_resources
from metal.kube.client.errors import Expired, Unavailable

_AGAIN = 1.0
"""Seconds before a watch that was closed is restarted."""


@dataclass(frozen=True)
class _Options:
    """Options of the command."""

    all_namespaces: bool
    selector: str
    watch: bool
    output: str

    @property
    def table(self) -> bool:
        return self.output in ("table", "wide")


@click.command("get", epilog=EXITS)
@click.argument("what", nargs=-1, required=True, metavar="KIND [NAME]... | KIND/NAME...", type=KIND_OR_OBJECT)
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of all namespaces.")
@click.option("-l", "--selector", default="", help="Label selector, such as rack=r7,zone!=b.")
@click.option("-w", "--watch", is_flag=True, help="Watch for changes until interrupted.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@in_namespace
async def command(ctx: CommandContext, what: tuple[str, ...], **given: Any) -> None:
    """List objects of any kind of the API server.

    KIND is a plural, singular, kind or short name, or a category such as metal. Several are separated by commas.

    \b
    Examples:
      metalctl get servers
      metalctl get srv -l rack=r7 -o wide -w
      metalctl get server/rack1-node1-system-0 -o yaml
      metalctl get metal -A
    """
    options = _Options(**given)
    references = read(await api_resources(ctx.http), what)
    one_namespace(references, everywhere=options.all_namespaces)
    if any(reference.name for reference in references) and options.selector:
        raise click.UsageError("names and --selector cannot be combined")
    if options.watch:
        with suppress(asyncio.CancelledError):  # Ctrl-C is how a watch ends, and no failure
            await _watch(ctx, references, options)
    elif options.table:
        await _tables(ctx, references, options)
    else:
        await _objects(ctx, references, options)


def _namespace(ctx: CommandContext, options: _Options) -> str:
    return "" if options.all_namespaces else ctx.namespace


async def _read(ctx: CommandContext, reference: Reference, options: _Options) -> Obj:
    if reference.name:
        return await dynamic.get(ctx.http, reference.resource, reference.name, ctx.namespace, table=options.table)
    namespace = _namespace(ctx, options)
    return await dynamic.listed(ctx.http, reference.resource, namespace, labels=options.selector, table=options.table)


def _printed(references: Sequence[Reference], reference: Reference, options: _Options) -> TablePrinter:
    several = len({one.resource for one in references}) > 1
    return TablePrinter(
        wide=options.output == "wide",
        namespaces=options.all_namespaces and reference.resource.namespaced,
        prefix=f"{kind_name(reference.resource)}/" if several else "",
    )


async def _tables(ctx: CommandContext, references: Sequence[Reference], options: _Options) -> None:
    tables = await asyncio.gather(*(_read(ctx, reference, options) for reference in references))
    joined: dict[Any, Obj] = {}
    for reference, table in zip(references, tables, strict=True):
        known = joined.setdefault(reference.resource, {**table, "rows": []})
        known["rows"] = [*known["rows"], *(table.get("rows") or ())]
    blocks = []
    for resource, table in joined.items():
        if lines := _printed(references, Reference(resource), options).whole(table):
            blocks.append("\n".join(lines))
    if is_empty(tables):
        click.echo(_nothing(ctx, references, options), err=True)
        return
    click.echo("\n\n".join(blocks))


def _nothing(ctx: CommandContext, references: Sequence[Reference], options: _Options) -> str:
    what = ", ".join(dict.fromkeys(reference.resource.plural for reference in references))
    inside = any(reference.resource.namespaced for reference in references) and not options.all_namespaces
    return f"no {what} found" + (f" in namespace {ctx.namespace}" if inside else "")


async def _objects(ctx: CommandContext, references: Sequence[Reference], options: _Options) -> None:
    answers = await asyncio.gather(*(_read(ctx, reference, options) for reference in references))
    objects = [
        obj
        for reference, answer in zip(references, answers, strict=True)
        for obj in ([answer] if reference.name else _items(reference, answer))
    ]
    emit(objects, options.output, one=bool(references[0].name))


def _items(reference: Reference, answer: Obj) -> list[Obj]:
    """Return the members of a list with their kind, which some API servers omit."""
    typed = {"apiVersion": reference.resource.api_version, "kind": reference.resource.kind}
    return [{**typed, **item} for item in answer["items"]]


async def _watch(ctx: CommandContext, references: Sequence[Reference], options: _Options) -> None:
    if len(references) != 1:
        raise click.UsageError("--watch supports one kind or one object")
    reference = references[0]
    printed = _printed(references, reference, options)
    if reference.name:
        await _read(ctx, reference, options)  # raises NotFound
    async with aclosing(_changes(ctx, reference, options)) as changes:
        async for first, obj in changes:
            if not options.table:
                _print(obj, options.output)
                continue
            for text in printed.whole(obj) if first else printed.more(obj):
                click.echo(text)


def _print(obj: Obj, form: str) -> None:
    if form == "name":
        click.echo(name_of(obj))
    else:
        click.echo(("---\n" if form == "yaml" else "") + dumped(without_managed_fields(obj), form), nl=form == "json")


async def _changes(
    ctx: CommandContext, reference: Reference, options: _Options
) -> AsyncGenerator[tuple[bool, Obj], None]:
    """Yield (True, table) for the current objects, then (False, row or object) for each change."""
    fields = f"metadata.name={reference.name}" if reference.name else ""
    scope: dict[str, Any] = {"labels": options.selector, "fields": fields, "table": options.table}
    namespace = _namespace(ctx, options)
    while True:
        now = await dynamic.listed(ctx.http, reference.resource, namespace, **scope)
        if options.table:
            yield True, now
        else:
            for item in _items(reference, now):
                yield False, item
        version = now["metadata"]["resourceVersion"]
        async with aclosing(_until_expired(ctx, reference, namespace, version, scope)) as later:
            async for obj in later:
                yield False, obj


async def _until_expired(
    ctx: CommandContext, reference: Reference, namespace: str, version: str, scope: dict[str, Any]
) -> AsyncGenerator[Obj, None]:
    while True:
        try:
            watch = dynamic.watched(ctx.http, reference.resource, namespace, version, **scope)
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
