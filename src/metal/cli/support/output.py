"""Output of objects for programs: JSON, YAML or names."""

import json
from collections.abc import Sequence
from typing import Any

import click
import yaml

from metal.cli.support.dynamic import Obj
from metal.cli.support.table import printable

FORMATS = ("json", "yaml", "name")

output_option = click.option(
    "-o", "--output", type=click.Choice(FORMATS), default=None, help="Output format for programs."
)
"""Adds -o to a command whose default output is sentences."""


def emit(objects: Sequence[Obj], form: str, *, one: bool) -> None:
    """Print objects. With `one`, a single object is printed instead of a List."""
    if form == "name":
        for obj in objects:
            click.echo(name_of(obj))
        return
    tidy = [without_managed_fields(obj) for obj in objects]
    whole = tidy[0] if one and len(tidy) == 1 else {"apiVersion": "v1", "kind": "List", "items": tidy}
    click.echo(dumped(whole, form), nl=form == "json")


def dumped(value: Any, form: str) -> str:
    """Return the value as JSON or YAML."""
    if form == "json":
        return json.dumps(value, indent=2, ensure_ascii=True)
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=False, default_flow_style=False)
    return text


def name_of(obj: Obj) -> str:
    """Return kind.group/name, as kubectl prints it."""
    group, _, _ = obj.get("apiVersion", "").rpartition("/")
    kind = obj.get("kind", "").lower()
    return printable(f"{kind}.{group}/{obj['metadata']['name']}" if group else f"{kind}/{obj['metadata']['name']}")


def without_managed_fields(obj: Obj) -> Obj:
    """Return the object without managedFields."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}
