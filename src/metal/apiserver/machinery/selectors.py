"""Selectors of list, watch and deletecollection: labels in kubectl's syntax, fields by their path."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from metal.kube.meta.selector_syntax import SelectorError, parse

_OPERATORS = ("!=", "==", "=")


class BadSelector(ValueError):
    """A selector cannot be parsed; the message names the faulty part."""


class FieldTerm(NamedTuple):
    """One condition of a field selector."""

    path: str
    equal: bool
    value: str


def labels(text: str) -> Callable[[Mapping[str, str]], bool]:
    """A predicate on labels for `a=b,c!=d,e in (f,g),!h`. Raises BadSelector."""
    try:
        return parse(text).matches
    except SelectorError as error:
        raise BadSelector(str(error)) from None


def field_terms(text: str) -> tuple[FieldTerm, ...]:
    """The conditions of `metadata.name=a,spec.x!=b`; a backslash escapes `,`, `=` and itself. Raises BadSelector."""
    return tuple(_term(text, part) for part in sorted(_split(text)) if part)


def _split(text: str) -> Iterator[str]:
    """Parts between commas that are not escaped."""
    start, escaped = 0, False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _term(text: str, part: str) -> FieldTerm:
    for at in range(len(part)):
        for operator in _OPERATORS:
            if part.startswith(operator, at):
                return FieldTerm(part[:at], operator != "!=", _unescaped(part[at + len(operator) :]))
    raise BadSelector(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescaped(value: str) -> str:
    out, escaped = "", False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise BadSelector(f"invalid field selector: invalid escape sequence: \\{char}")
            escaped = False
            out += char
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise BadSelector(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out += char
    if escaped:
        raise BadSelector("invalid field selector: invalid escape sequence: \\")
    return out


def fields(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """A predicate on objects for a field selector. A missing field counts as the empty string. Raises BadSelector."""
    terms = field_terms(text)
    parts = [(term.path.split("."), term) for term in terms]

    def matches(obj: Mapping[str, Any]) -> bool:
        return all((_text(_lookup(obj, path)) == term.value) is term.equal for path, term in parts)

    return matches


def _lookup(obj: Any, path: list[str]) -> Any:
    for part in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(part)
    return obj


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
