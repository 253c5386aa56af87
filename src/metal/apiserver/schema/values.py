"""Validation of values: jsonschema-rs finds the violations, this module words them as Kubernetes does."""

from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs

from metal.apiserver.machinery.causes import (
    Cause,
    invalid,
    not_supported,
    path_text,
    required,
    too_long,
    too_many,
    type_invalid,
)
from metal.apiserver.machinery.formats import FORMATS, INTEGERS

_KEYWORDS = (
    "type", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required",
)  # fmt: skip


LINEAR = jsonschema_rs.RegexOptions()
"""The engine of patterns; a schema whose patterns it does not know does not compile."""
SMALL = 5_000
"""Parts of a value (members and items at all levels) of which all violations are collected."""


class Values:
    """The compiled validator of one schema.

    Patterns are matched by an engine that needs linear time and knows no lookaround and no backreferences, as in
    Kubernetes. The validator makes a list of all its errors, a million for a list of a million wrong items, so it is
    asked for all of them only where the value is small; otherwise for the first.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = jsonschema_rs.Draft4Validator(
            translate(schema), formats=FORMATS, validate_formats=True, offline=True, pattern_options=LINEAR
        )

    def check(self, value: Any, root: str = "", *, accepted: Callable[[Cause], bool] = lambda _: False) -> list[Cause]:
        """Every violation in the value; `root` is prefixed to the paths.

        Of a value with more than SMALL parts, one violation that is not `accepted`, where there is one.
        """
        if self._validator.is_valid(value):
            return []
        if not _is_small(value):
            return self._first(value, root, accepted)
        return [_cause(error, root) for error in self._validator.iter_errors(value)]

    def _first(self, value: Any, root: str, accepted: Callable[[Cause], bool]) -> list[Cause]:
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            cause = _cause(error, root)
        else:
            return []
        if not accepted(cause):
            return [cause]
        return [_cause(error, root) for error in self._validator.iter_errors(value)]


def _is_small(value: Any) -> bool:
    """Whether a value has no more parts than SMALL."""
    left, level = SMALL, [value]
    while level:
        nested = level.pop()
        left -= len(nested) if isinstance(nested, dict | list) else 0
        if left < 0:
            return False
        below = nested.values() if isinstance(nested, dict) else nested if isinstance(nested, list) else ()
        level.extend(item for item in below if isinstance(item, dict | list))
    return True


def translate(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A CRD schema as JSON Schema draft 4: nullable, int-or-string and integer formats are made explicit."""
    out: dict[str, Any] = {key: schema[key] for key in _KEYWORDS if key in schema}
    if schema.get("format") in FORMATS:
        out["format"] = schema["format"]
    _translate_nested(schema, out)
    if schema.get("x-kubernetes-int-or-string"):
        out.pop("type", None)
        out["type"] = ["integer", "string"]
    bounds = INTEGERS.get(str(schema.get("format") or ""))
    if bounds and schema.get("type") == "integer":
        out.setdefault("allOf", []).append({"minimum": bounds[0], "maximum": bounds[1]})
    if schema.get("nullable"):
        _allow_null(out)
    return out


def _translate_nested(schema: Mapping[str, Any], out: dict[str, Any]) -> None:
    if isinstance(schema.get("properties"), Mapping):
        out["properties"] = {name: translate(sub) for name, sub in schema["properties"].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), Mapping):
            out[key] = translate(schema[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if schema.get(key):
            out[key] = [translate(sub) for sub in schema[key]]


def _allow_null(out: dict[str, Any]) -> None:
    types = out.get("type")
    if types:
        out["type"] = [*(types if isinstance(types, list) else [types]), "null"]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]


def type_name(value: Any) -> str:
    """The JSON type of a value, as messages name it."""
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null"


def _cause(error: jsonschema_rs.ValidationError, root: str) -> Cause:
    field = path_text(error.instance_path, root)
    kind, details = error.kind.name, error.kind.as_dict()
    if kind == "required":
        name = str(details["property"])
        return required(path_text([name], field) if field else name)
    maker = _MAKERS.get(kind)
    if maker is not None:
        return maker(field, error.instance, details)
    return invalid(field, error.instance, f"{field} in body {error.message}")


def _wrong_type(field: str, value: Any, details: Mapping[str, Any]) -> Cause:
    wanted = [name for name in details["types"] if name != "null"]
    actual = type_name(value)
    return type_invalid(field, actual, f"{field} in body must be of type {','.join(wanted)}: {_quoted(actual)}")


def _quoted(text: Any) -> str:
    return f'"{text}"'


def _wrong_format(field: str, value: Any, details: Mapping[str, Any]) -> Cause:
    return type_invalid(field, value, f"{field} in body must be of type {details['format']}: {_quoted(value)}")


def _wrong_length(field: str, value: Any, details: Mapping[str, Any]) -> Cause:
    return too_long(field, int(details["limit"]))


def _body(sentence: str) -> Callable[[str, Any, Mapping[str, Any]], Cause]:
    def make(field: str, value: Any, details: Mapping[str, Any]) -> Cause:
        return invalid(field, value, f"{field} in body " + sentence.format(**details))

    return make


def _combined(sentence: str) -> Callable[[str, Any, Mapping[str, Any]], Cause]:
    def make(field: str, value: Any, details: Mapping[str, Any]) -> Cause:
        return invalid(field, value, f"{_quoted(field)} {sentence}")

    return make


_MAKERS: dict[str, Callable[[str, Any, Mapping[str, Any]], Cause]] = {
    "type": _wrong_type,
    "format": _wrong_format,
    "enum": lambda field, value, details: not_supported(field, value, [o for o in details["options"] if o is not None]),
    "maxLength": _wrong_length,
    "maxItems": lambda field, value, details: too_many(field, len(value), int(details["limit"])),
    "maxProperties": lambda field, value, details: too_many(field, len(value), int(details["limit"])),
    "pattern": _body("should match '{pattern}'"),
    "minLength": _body("should be at least {limit} chars long"),
    "minItems": _body("should have at least {limit} items"),
    "minProperties": _body("should have at least {limit} properties"),
    "minimum": _body("should be greater than or equal to {limit}"),
    "maximum": _body("should be less than or equal to {limit}"),
    "exclusiveMinimum": _body("should be greater than {limit}"),
    "exclusiveMaximum": _body("should be less than {limit}"),
    "multipleOf": _body("should be a multiple of {multiple_of}"),
    "uniqueItems": _body("shouldn't contain duplicates"),
    "anyOf": _combined("must validate at least one schema (anyOf)"),
    "oneOf": _combined("must validate one and only one schema (oneOf)"),
    "oneOfMultipleValid": _combined("must validate one and only one schema (oneOf)"),
    "oneOfNotValid": _combined("must validate one and only one schema (oneOf). Found none valid"),
    "not": _combined("must not validate the schema (not)"),
}
