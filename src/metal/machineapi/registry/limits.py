"""Limits on the size and depth of a report, and the parser that enforces them."""

from dataclasses import dataclass
from typing import Any

import msgspec


class Malformed(ValueError):
    """The body is not acceptable JSON; str() says why, without quoting it."""


class TooLarge(ValueError):
    """The report is larger than can be stored."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a report, far above what any machine reports."""

    body: int = 2 * 1024 * 1024
    """Bytes of a request's body."""
    kept: int = 900_000
    """Bytes of a report in compact JSON; a ConfigMap holds 1 MiB with everything."""
    depth: int = 20
    """Levels of nesting."""
    entries: int = 4096
    """Entries of a list or an object."""
    text: int = 65536
    """Characters of a string."""
    nodes: int = 200_000
    """Values in total."""


def read(body: bytes, limits: Limits) -> dict[str, Any]:
    """The object in a body. Raises Malformed."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed("the body is not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("the body must be a JSON object")
    _check(value, limits)
    return value


def _check(value: Any, limits: Limits) -> None:
    level: list[Any] = [value]
    nodes = 0
    for _ in range(limits.depth):
        nodes += len(level)
        if nodes > limits.nodes:
            raise Malformed(f"more than {limits.nodes} values")
        level = [child for node in level for child in _children(node, limits)]
        if not level:
            return
    raise Malformed(f"nested deeper than {limits.depth} levels")


def _children(node: Any, limits: Limits) -> list[Any]:
    if isinstance(node, str) and len(node) > limits.text:
        raise Malformed(f"a string of more than {limits.text} characters")
    if not isinstance(node, list | dict):
        return []
    if len(node) > limits.entries:
        raise Malformed(f"a list or object of more than {limits.entries} entries")
    if isinstance(node, dict):
        return [*node, *node.values()]
    return node
