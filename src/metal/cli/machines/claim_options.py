"""Options of a claim on the command line: selector, tolerations, Ignition."""

import sys
from pathlib import Path
from typing import Any

import click

from metal.boot.errors import IgnitionError
from metal.boot.ignition import accept
from metal.cli.support.dynamic import Obj
from metal.kube.meta.selector_syntax import parse
from metal.kube.meta.selectors import Operator, Requirement

EFFECTS = ("NoBind", "Evict")
_MOST = 1024 * 1024
"""Maximum size of a Secret in bytes."""


class Selector(click.ParamType[Obj]):
    """Label selector in the syntax of kubectl, converted to a metav1.LabelSelector."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Obj:
        """Raises click.BadParameter."""
        if isinstance(value, dict):
            return value
        try:
            requirements = parse(value).requirements
        except ValueError as exc:
            self.fail(str(exc), param, ctx)
        if not requirements:
            self.fail("the selector is empty: omit it to match any server", param, ctx)
        for requirement in requirements:
            if requirement.operator in (Operator.GREATER, Operator.LESS):
                self.fail(f"{requirement}: a claim supports only =, !=, in, notin, KEY and !KEY", param, ctx)
        return _label_selector(requirements)


def _label_selector(requirements: tuple[Requirement, ...]) -> Obj:
    labels: dict[str, str] = {}
    expressions: list[Obj] = []
    for one in requirements:
        if one.operator is Operator.IN and len(one.values) == 1 and one.key not in labels:
            labels[one.key] = one.values[0]
            continue
        values = {"values": list(one.values)} if one.values else {}
        expressions.append({"key": one.key, "operator": one.operator.value, **values})
    found: Obj = {"matchLabels": labels} if labels else {}
    return {**found, "matchExpressions": expressions} if expressions else found


class Toleration(click.ParamType[Obj]):
    """KEY or KEY=VALUE with an optional :EFFECT, converted to a toleration of the API."""

    name = "KEY[=VALUE][:EFFECT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Obj:
        """Raises click.BadParameter."""
        if isinstance(value, dict):
            return value
        rest, colon, effect = value.rpartition(":") if ":" in value else (value, "", "")
        if colon and effect not in EFFECTS:
            self.fail(f"{value!r} ends with effect {effect!r}: use {' or '.join(EFFECTS)}", param, ctx)
        key, equals, wanted = rest.partition("=")
        if not key:
            self.fail(f"{value!r} has no key: use KEY, KEY=VALUE or KEY=VALUE:NoBind", param, ctx)
        how = {"operator": "Equal", "value": wanted} if equals else {"operator": "Exists"}
        return {"key": key, **how, **({"effect": effect} if effect else {})}


def ignition(file: str) -> str:
    """Return the Ignition config in a file (- for standard input). Raises click.UsageError with the place and the
    fix."""
    name = "standard input" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as exc:
        raise click.UsageError(f"{file} cannot be read: {exc.strerror}") from None
    if len(raw) > _MOST:
        raise click.UsageError(
            f"{name} has {len(raw)} bytes; a Secret holds {_MOST}: let Ignition download large parts"
        )
    try:
        accept(raw)
        return raw.decode()
    except (IgnitionError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"{name} is not an Ignition config (JSON, spec 3 or 2): {exc}") from None
