"""The subset of kubectl's JSONPath for printer columns: dotted names, ['quoted'], [0], [*] and [?(@.x=="y")]."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"\.?((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"\[(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\")\]")
_INDEX = re.compile(r"\[(-?\d+)\]")
_ALL = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(r"\[\?\(\s*@\.([^\s=!<>]+)\s*(?:(==|!=|<=|>=|<|>)\s*('[^']*'|\"[^\"]*\"|[^\s)]+))?\s*\)\]")


class BadPath(ValueError):
    """The path is not supported."""


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """A reader of the values at a path such as `.status.conditions[?(@.type=="Ready")].status`. Raises BadPath."""
    steps = _steps(text.strip().removeprefix("{").removesuffix("}").removeprefix("$"))

    def read(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = [value for item in found for value in step(item)]
        return found

    return read


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        for pattern, make in _GRAMMAR:
            if match := pattern.match(text, position):
                steps.append(make(match))
                position = match.end()
                break
        else:
            if text == ".":
                break
            raise BadPath(f"JSONPath {text!r}: cannot read {text[position:]!r}")
    return steps


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _index(match: re.Match[str]) -> Step:
    position = int(match[1])

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            yield value[position]

    return step


def _every(match: re.Match[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, Mapping):
            yield from value.values()

    return step


def _filter(match: re.Match[str]) -> Step:
    read = compile_path("." + match[1])
    operator, wanted = match[2], None if match[3] is None else _literal(match[3])

    def holds(item: Any) -> bool:
        found = read(item)
        return bool(found) and (operator is None or _compare(operator, found[0], wanted))

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if holds(item))

    return step


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _compare(operator: str, found: Any, wanted: Any) -> bool:
    if operator in ("==", "!="):
        return bool(found == wanted) is (operator == "==")
    try:
        tests = {"<": found < wanted, ">": found > wanted, "<=": found <= wanted, ">=": found >= wanted}
    except TypeError:
        return False
    return bool(tests[operator])


_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_ALL, _every),
    (_INDEX, _index),
    (_QUOTED, lambda match: _field(_unescape(match[1] if match[1] is not None else match[2]))),
    (_FILTER, _filter),
    (_NAME, lambda match: _field(_unescape(match[1]))),
)
