"""metalctl describe"""

import asyncio
from datetime import datetime
from typing import Any

import click

from metal.cli.objects import events
from metal.cli.objects.events import EventSummary, moment
from metal.cli.objects.references import Reference, named
from metal.cli.support import dynamic
from metal.cli.support.columns import aligned
from metal.cli.support.completing import KIND_OR_OBJECT
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS
from metal.cli.support.output import dumped
from metal.cli.support.table import age, printable
from metal.kube.meta.clock import system_clock

_SECRET_FIELDS = ("data", "stringData")
_SEPARATE_SECTIONS = ("apiVersion", "kind", "metadata", "status")


@click.command("describe", epilog=EXITS)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME...", type=KIND_OR_OBJECT)
@in_namespace
async def command(ctx: CommandContext, what: tuple[str, ...]) -> None:
    """Show the details of objects: metadata, spec, status, conditions and Events.

    Of Secrets only the length of each value is shown.
    """
    references = await named(ctx, what)
    texts = await asyncio.gather(*(_described(ctx, reference) for reference in references))
    click.echo("\n\n".join(texts))


async def _described(ctx: CommandContext, reference: Reference) -> str:
    obj = await dynamic.get(ctx.http, reference.resource, reference.name, ctx.namespace)
    return "\n".join(text(obj, await events.of(ctx.http, obj), system_clock()))


def text(obj: Obj, recorded: list[EventSummary], now: datetime) -> list[str]:
    """Return the lines that describe an object."""
    status = dict(obj.get("status") or {})
    conditions = status.pop("conditions", None) or []
    lines = _metadata(obj, now)
    for key in (key for key in obj if key not in _SEPARATE_SECTIONS):
        lines += _section(key, _without_secrets(obj, key))
    lines += _section("status", status)
    if conditions:
        lines += ["Conditions:", *_indented(_conditions(conditions, now))]
    return [*lines, *(["Events:", *_indented(events.lines(recorded, now))] if recorded else ["Events: none"])]


def _metadata(obj: Obj, now: datetime) -> list[str]:
    meta = obj["metadata"]
    owners = [f"{owner['kind']}/{owner['name']}" for owner in meta.get("ownerReferences") or ()]
    facts: dict[str, Any] = {
        "Name": meta["name"],
        "Namespace": meta.get("namespace"),
        "Kind": f"{obj['kind']} ({obj['apiVersion']})",
        "UID": meta.get("uid"),
        "Created": _when(meta.get("creationTimestamp"), now),
        "Deleted": _when(meta.get("deletionTimestamp"), now),
        "Owners": ", ".join(owners),
        "Finalizers": ", ".join(meta.get("finalizers") or ()),
    }
    lines = [f"{name + ':':<13}{printable(str(value))}" for name, value in facts.items() if value]
    for name in ("labels", "annotations"):
        lines += _section(name, meta.get(name) or {})
    return lines


def _when(stamp: str | None, now: datetime) -> str:
    return f"{stamp} ({age(moment(stamp), now)} ago)" if stamp else ""


def _section(name: str, value: Any) -> list[str]:
    if value in (None, {}, [], ""):
        return []
    title = f"{name[:1].upper()}{name[1:]}:"
    if not isinstance(value, dict | list):
        return [f"{title:<13}{printable(str(value))}"]
    return [title, *_indented(dumped(value, "yaml").splitlines())]


def _without_secrets(obj: Obj, key: str) -> Any:
    value = obj[key]
    if not obj["kind"].endswith("Secret") or key not in _SECRET_FIELDS or not isinstance(value, dict):
        return value
    return {name: f"({len(str(content))} characters, hidden)" for name, content in value.items()}


def _conditions(conditions: list[Obj], now: datetime) -> list[str]:
    rows = [
        [
            c["type"],
            c["status"],
            age(moment(c.get("lastTransitionTime")), now),
            c.get("reason", ""),
            c.get("message", ""),
        ]
        for c in conditions
    ]
    return aligned(["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"], rows)


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
