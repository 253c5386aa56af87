"""Tables for `kubectl get` (meta.k8s.io/v1 Table): columns of custom and built-in kinds, cells, ages."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from metal.apiserver.machinery.columns import Column
from metal.apiserver.machinery.formats import parse_datetime
from metal.apiserver.printing.jsonpath import BadPath, compile_path

Obj = Mapping[str, Any]


def _name(obj: Obj, now: datetime) -> Any:
    return obj.get("metadata", {}).get("name", "")


def _created(obj: Obj, now: datetime) -> Any:
    created = obj.get("metadata", {}).get("creationTimestamp")
    return age(created, now) if created else "<unknown>"


NAME = Column(
    "Name", "string", _name, format="name", description="Name, unique among objects of a kind in a namespace."
)
AGE = Column("Age", "string", _created, description="Time since the object was created.")
_CRD_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns_for(crd_version: Mapping[str, Any]) -> tuple[Column, ...]:
    """Columns of a CRD version: Name, then additionalPrinterColumns, or Age when there are none."""
    return columns_from(crd_version.get("additionalPrinterColumns") or ())


def columns_from(entries: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns from CustomResourceColumnDefinitions, after Name. An unsupported path gives empty cells."""
    return (NAME, *(_custom(entry) for entry in entries or (_CRD_AGE,)))


def _custom(entry: Mapping[str, Any]) -> Column:
    path, kind = str(entry.get("jsonPath") or ""), str(entry.get("type") or "string")
    try:
        read = compile_path(path)
    except BadPath:
        read = _nothing

    def cell(obj: Obj, now: datetime) -> Any:
        found = read(obj)
        return _typed(kind, found[0], now) if found and found[0] is not None else None

    return Column(
        name=str(entry.get("name") or ""),
        type=kind,
        cell=cell,
        format=str(entry.get("format") or ""),
        description=str(entry.get("description") or f"Custom resource definition column (in JSONPath format): {path}"),
        priority=int(entry.get("priority") or 0),
    )


def _nothing(obj: Any) -> list[Any]:
    return []


def _typed(kind: str, value: Any, now: datetime) -> Any:
    if kind == "string":
        return _text(value)
    if kind == "date":
        return age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def age(text: str, now: datetime) -> str:
    """Age in the format of kubectl: `5s`, `3m20s`, `2d`; `<invalid>` for a malformed or future time."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return "<invalid>"
    return human_duration(now - moment)


def human_duration(span: timedelta) -> str:
    """A duration in at most three digits or two units, as kubectl prints it."""
    seconds = int(span.total_seconds())
    if span.total_seconds() <= -2:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"


def render(
    columns: Sequence[Column],
    objects: Iterable[Obj],
    *,
    include: str = "Metadata",
    now: datetime,
    metadata: Mapping[str, Any] | None = None,
    headers: bool = True,
) -> dict[str, Any]:
    """A Table. `include`: content of each row: Metadata, Object or None. `metadata`: of the list."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata or {}),
        "columnDefinitions": [column.definition() for column in columns] if headers else None,
        "rows": [_row(columns, obj, include, now) for obj in objects],
    }


def _row(columns: Sequence[Column], obj: Obj, include: str, now: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include == "None":
        row["object"] = None
    else:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj.get("metadata", {}),
        }
    return row
