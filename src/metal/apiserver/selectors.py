"""Selectors of list, watch and deletecollection: labels in kubectl's syntax, fields by their path."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from metal.kube import selectors as label_selectors

_TERM = re.compile(r"\s*(?P<path>[A-Za-z_][\w.\-/]*)\s*(?P<op>==|!=|=)\s*(?P<value>(?:\\.|[^,\\=])*)")
_ESCAPED = re.compile(r"\\(.)")


class BadSelector(ValueError):
    """A selector cannot be read; the sentence says what is wrong, and where."""


class FieldTerm(NamedTuple):
    """One condition of a field selector."""

    path: str
    equal: bool
    value: str


def labels(text: str) -> Callable[[Mapping[str, str]], bool]:
    """A test of labels for `a=b,c!=d,e in (f,g),!h`. Raises BadSelector."""
    try:
        selector = label_selectors.parse(text)
    except ValueError as error:
        raise BadSelector(f"unable to parse requirement: {error}") from None
    return selector.matches


def field_terms(text: str) -> tuple[FieldTerm, ...]:
    """The conditions of `metadata.name=a,spec.x!=b`; a backslash escapes `,`, `=` and itself. Raises BadSelector."""
    terms: list[FieldTerm] = []
    position = 0
    while position < len(text) and text[position:].strip():
        match = _TERM.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            at = position if match is None else match.end()
            raise BadSelector(f"field selector {text!r}: cannot read {text[at:]!r} at position {at}: write path=value")
        value = _ESCAPED.sub(r"\1", match["value"]).strip()
        terms.append(FieldTerm(match["path"], match["op"] != "!=", value))
        position = match.end() + 1
    return tuple(terms)


def fields(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """A test of objects for a field selector. A missing field is the empty string. Raises BadSelector."""
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
