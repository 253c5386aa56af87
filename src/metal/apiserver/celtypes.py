"""What can be said of a rule without running it: fields that the schema does not have, and how often it loops."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from metal.apiserver.structural import IDENTITY, Node

LOOPS = r"(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap|transformMapEntry)"
_TEXT = re.compile(r"""r?"(?:\\.|[^"\\])*"|r?'(?:\\.|[^'\\])*'""")
_BINDING = re.compile(rf"(?<![\w.])(\w+)((?:\s*\.\s*\w+)*?)\s*\.\s*{LOOPS}\s*\(\s*(\w+)\s*,")
_LOOP = re.compile(rf"\.\s*{LOOPS}\s*\(")
_SEARCH = re.compile(r"\bin\b")
_PATH = re.compile(r"(?<![\w.\]\)])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*)+)")
_PART = re.compile(r"\.\s*(\w+)")
_UNESCAPES = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_ESCAPED = re.compile("|".join(_UNESCAPES))


class Undefined(NamedTuple):
    """A field that a rule names and the schema lacks. column: that of its dot, from 1."""

    name: str
    column: int


def undefined_fields(rule: str, node: Node) -> list[Undefined]:
    """Fields of `self` and `oldSelf`, and of the items that macros walk over, which cannot exist."""
    plain = blanked(rule)
    known: dict[str, Node | None] = {"self": node, "oldSelf": node}
    for match in _BINDING.finditer(plain):
        base, path, name = match.groups()
        item = _items(_walk(known.get(base), _PART.findall(path)))
        # One name for items of two kinds: nothing is known of it.
        known[name] = item if name not in known else None
    return list(_undefined(plain, known))


def _undefined(plain: str, known: dict[str, Node | None]) -> Iterator[Undefined]:
    for match in _PATH.finditer(plain):
        node = known.get(match[1])
        parts = list(_PART.finditer(plain, match.start(2), match.end(2)))
        if plain[match.end() :].lstrip().startswith("("):
            parts.pop()
        for part in parts:
            if node is None or not _is_closed(node):
                break
            if (name := _unescaped(part[1])) not in node.fields and name not in _always(node):
                yield Undefined(part[1], part.start() + 1)
                break
            node = node.fields.get(name)


def _is_closed(node: Node) -> bool:
    """Whether only the declared fields can be named: not in maps, lists, scalars, or what keeps unknown fields."""
    return node.type == "object" and node.extra is None and not (node.preserve and not node.fields)


def _always(node: Node) -> tuple[str, ...]:
    return IDENTITY if node.embedded or "metadata" in node.fields or "spec" in node.fields else ()


def _walk(node: Node | None, names: list[str]) -> Node | None:
    for name in names:
        node = None if node is None else node.fields.get(_unescaped(name))
    return node


def _items(node: Node | None) -> Node | None:
    return None if node is None else node.items


def _unescaped(name: str) -> str:
    if name.startswith("__") and name.endswith("__") and name not in _UNESCAPES and len(name) > 4:
        return name[2:-2]
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0]], name)


def blanked(rule: str) -> str:
    """The rule with texts blanked out, every other character at its place."""
    return _TEXT.sub(lambda match: " " * len(match[0]), rule)


def depth(rule: str) -> int:
    """How many loops stand within each other; a search in a list or map counts as one."""
    plain = blanked(rule)
    starts = {match.end() - 1 for match in _LOOP.finditer(plain)}
    open_, deepest = [], 0
    for at, char in enumerate(plain):
        if char == "(":
            open_.append(at in starts)
        elif char == ")" and open_:
            open_.pop()
        deepest = max(deepest, sum(open_) + (1 if _SEARCH.match(plain, at) else 0))
    return deepest
