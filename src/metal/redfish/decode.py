"""Typed views of resources. A field of a wrong type counts as absent, so that one wrong value fails no inventory."""

import math
import types
import typing
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
_MISSING: Any = object()


def decode(raw: object, kind: type[T]) -> T:
    """`raw` as the Struct `kind`, whose fields all have defaults.

    Nulls, and values that cannot be read as the field's type, leave the default. Numbers in strings count as numbers.
    """
    if not isinstance(raw, dict):
        return kind()
    try:
        return msgspec.convert(raw, kind, strict=False)
    except (msgspec.ValidationError, RecursionError):
        return _field_by_field(raw, kind)


def _field_by_field(raw: dict[str, Any], kind: type[T]) -> T:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value = _coerce(raw.get(field.encode_name), field.type)
        if value is not _MISSING:
            values[field.name] = value
    return kind(**values)


def _coerce(value: object, wanted: Any) -> Any:
    if value is None:
        return _MISSING
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return decode(value, wanted) if isinstance(value, dict) else _MISSING
    if typing.get_origin(wanted) is tuple:
        return _coerce_items(value, typing.get_args(wanted)[0])
    if isinstance(wanted, types.UnionType):
        wanted = next(arm for arm in typing.get_args(wanted) if arm is not types.NoneType)
    return _coerce_scalar(value, wanted)


def _coerce_items(value: object, wanted: Any) -> Any:
    if not isinstance(value, list):
        return _MISSING
    items = (_coerce(item, wanted) for item in value)
    return tuple(item for item in items if item is not _MISSING)


def _coerce_scalar(value: object, wanted: Any) -> Any:
    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if wanted is int and isinstance(value, float) and math.isfinite(value):
        return int(value)
    try:
        return msgspec.convert(value, wanted, strict=False)
    except msgspec.ValidationError:
        return _MISSING
