"""What a claim on the command line says: selector, tolerations, Ignition."""

import sys
from pathlib import Path
from typing import Any

import click

from metal.boot.errors import IgnitionError
from metal.boot.ignition import validate
from metal.cli.support.dynamic import Obj
from metal.kube.meta import selectors
from metal.kube.meta.selectors import Operator

EFFECTS = ("NoBind", "Evict")
_MOST = 1024 * 1024
"""Bytes that a Secret may hold."""


class Selector(click.ParamType[Obj]):
    """Labels in kubectl's syntax; a metav1.LabelSelector."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Obj:
        """Raises click.BadParameter."""
        if isinstance(value, dict):
            return value
        try:
            requirements = selectors.parse(value).requirements
        except ValueError as exc:
            self.fail(str(exc), param, ctx)
        if not requirements:
            self.fail("the selector is empty: leave it out, and any server fits", param, ctx)
        for requirement in requirements:
            if requirement.operator in (Operator.GREATER, Operator.LESS):
                self.fail(f"{requirement}: a claim compares with =, !=, in, notin, KEY or !KEY only", param, ctx)
        return _label_selector(requirements)


def _label_selector(requirements: tuple[selectors.Requirement, ...]) -> Obj:
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
    """KEY, KEY=VALUE, and :EFFECT behind it; a toleration of the API."""

    name = "KEY[=VALUE][:EFFECT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Obj:
        """Raises click.BadParameter."""
        if isinstance(value, dict):
            return value
        rest, colon, effect = value.rpartition(":") if ":" in value else (value, "", "")
        if colon and effect not in EFFECTS:
            self.fail(f"{value!r} ends with effect {effect!r}: it is {' or '.join(EFFECTS)}", param, ctx)
        key, equals, wanted = rest.partition("=")
        if not key:
            self.fail(f"{value!r} names no taint: write KEY, KEY=VALUE or KEY=VALUE:NoBind", param, ctx)
        how = {"operator": "Equal", "value": wanted} if equals else {"operator": "Exists"}
        return {"key": key, **how, **({"effect": effect} if effect else {})}


def ignition(file: str) -> str:
    """The Ignition config in a file (- for standard input). Raises click.UsageError that names place and fix."""
    name = "standard input" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as exc:
        raise click.UsageError(f"{file} cannot be read: {exc.strerror}") from None
    if len(raw) > _MOST:
        raise click.UsageError(f"{name} has {len(raw)} bytes; a Secret holds {_MOST}: let Ignition fetch large parts")
    try:
        validate(raw)
        return raw.decode()
    except (IgnitionError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"{name} is no Ignition config (JSON, spec 3): {exc}") from None
