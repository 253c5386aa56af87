"""Rules in CEL (x-kubernetes-validations): compiled once, evaluated at the place in the schema that declares them.

`check_rules` walks a value along the nodes of its schema and evaluates the rules of each place with `self` and, where
the previous version of the value can be found, `oldSelf`. Compiled programs are cached by their text. The cost of a
rule is bounded where it runs, not estimated before: by the depth of its loops and the size of the value.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

from metal.apiserver.cel import engine, loops
from metal.apiserver.cel.extensions import FUNCTIONS
from metal.apiserver.machinery import causes
from metal.apiserver.machinery.causes import Cause, path_text
from metal.apiserver.machinery.formats import parse_datetime, parse_duration
from metal.apiserver.machinery.structural import IDENTITY, Node, Rule, item_key

Path = tuple[str | int, ...]
_MISSING: Any = object()
BUDGET = 1_000_000
"""Maximum of steps of nested loops: about one second, during which no other request is served."""
LONGEST = 5_000
"""Maximum of characters of a rule: the engine recurses along a chain of operators and could overflow the stack."""
_LARGEST = 1_000_000
"""Maximum of characters that a function returns: each function in a chain can square the length."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_RESERVED = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_AT = re.compile(r"ERROR: <input>:(\d+):(\d+): [^\n]*")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


class RuleError(ValueError):
    """A rule does not compile."""


class Failure(NamedTuple):
    """Why a rule is violated. broken: its evaluation failed."""

    detail: str
    broken: bool = False


class Program:
    """One compiled rule with its message expression."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._rule = _compile(rule.rule)
        self._message = _compile(rule.message_expression) if rule.message_expression else None
        text = rule.rule + " " + rule.message_expression
        self.depth = loops.depth(text)
        self.written = loops.blanked(text).count(",") + 1
        """Upper bound of the length of list literals in the rule."""
        self.splits = not {"split", "findAll"}.isdisjoint(self.called())
        self.uses_old = "oldSelf" in self._rule.variables()
        self.escaped = "__" in rule.rule or "__" in rule.message_expression

    def called(self) -> set[str]:
        """Names of the functions that the rule calls."""
        return {name for part in filter(None, (self._rule, self._message)) for name in part.functions()}

    def failure(self, context: engine.Context) -> "Failure | None":
        """Why the rule is violated, or None."""
        try:
            if self._rule.execute(context) is True:
                return None
        except Exception as error:  # the engine maps its errors to many built-in types
            message = f"{_reason(error)} evaluating rule: {self.rule.message or self.rule.rule.strip()}"
            return Failure(message, broken=True)
        return Failure(self._detail(context))

    def _detail(self, context: engine.Context) -> str:
        if self._message is not None:
            try:
                text = self._message.execute(context)
            except Exception:  # as in Kubernetes, a broken messageExpression falls back to message
                text = ""
            if isinstance(text, str) and text.strip() and "\n" not in text.strip():
                return text.strip()
        return self.rule.message or f"failed rule: {self.rule.rule.strip()}"


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no such key: {error.args[0] if error.args else ''}"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


@lru_cache(maxsize=1024)
def _compile(source: str) -> engine.Program:
    if len(source) > LONGEST:
        raise RuleError(f"a rule of {len(source)} characters does not compile: {LONGEST} are allowed")
    try:
        return engine.compile(source)
    except ValueError as error:
        raise RuleError(_engine_message(source, str(error))) from error


def _engine_message(source: str, error: str) -> str:
    """The message of the engine about an invalid expression, with the faulty line and a pointer below it."""
    match = _AT.search(error)
    if match is None:
        return f"{source!r} does not compile: {error.splitlines()[0][:300]}"
    line = source.splitlines()[int(match[1]) - 1 : int(match[1])] or [""]
    return f"{match[0]}\n | {line[0]}\n | {'.' * (int(match[2]) - 1)}^"


@lru_cache(maxsize=1024)
def program(rule: Rule) -> Program:
    """The compiled rule. Raises RuleError."""
    return Program(rule)


@lru_cache(maxsize=1)
def _functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        **engine.STANDARD_FUNCTIONS,
        **FUNCTIONS,
        "replace": _replace,
        "join": _join,
    }
    # Clusters do not have it, and its list is as long as a number in the object.
    del found["lists.range"]
    return found


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    if len(text) + times * len(new) > _LARGEST:
        raise ValueError(_OUT_OF_BUDGET)
    return text.replace(old, new, limit)


def _join(items: list[str], separator: str = "") -> str:
    if sum(len(item) for item in items) + len(items) * len(separator) > _LARGEST:
        raise ValueError(_OUT_OF_BUDGET)
    return separator.join(items)


@lru_cache(maxsize=1024)
def _functions_of(rules: tuple[Rule, ...]) -> dict[str, Callable[..., Any]]:
    """The added functions that these rules call: usually none; registering all of them costs more than most rules."""
    called = {name for rule in rules for name in program(rule).called()}
    return {name: function for name, function in _functions().items() if name in called}


def check_rules(node: Node, value: Any, old: Any = _MISSING, path: Path = ()) -> Iterator[Cause]:
    """Failures of every rule at this place and below. Pass no `old` on create, or where there is no previous value."""
    if not node.any_rules or value is None:
        return
    if node.rules:
        yield from _own_rules(node, value, old, path)
    if isinstance(value, dict):
        for key, item in value.items():
            if (sub := node.child(key)) is not None and sub.any_rules:
                before = old.get(key, _MISSING) if isinstance(old, dict) and not node.atomic else _MISSING
                part = key if key in node.fields else causes.Key(key)
                yield from check_rules(sub, item, before, (*path, part))
    elif isinstance(value, list) and node.items is not None and node.items.any_rules:
        previous = _by_key(node, old)
        for index, item in enumerate(value):
            before = previous.get(item_key(node, item), _MISSING) if previous else _MISSING
            yield from check_rules(node.items, item, before, (*path, index))


def _by_key(node: Node, old: Any) -> dict[Any, Any]:
    if node.list_type != "map" or not isinstance(old, list):
        return {}
    return {key: item for item in old if (key := item_key(node, item)) is not None}


def _own_rules(node: Node, value: Any, old: Any, path: Path) -> Iterator[Cause]:
    comparable = old is not _MISSING and old is not None
    unchanged = comparable and old == value
    context = None
    for rule in node.rules:
        compiled = program(rule)
        largest = max(_largest(value, texts=compiled.splits), compiled.written) if compiled.depth > 1 else 1
        if largest**compiled.depth > BUDGET:
            yield causes.invalid(path_text(path) or "<nil>", causes.OMITTED, _OUT_OF_BUDGET)
            return
        if rule.optional_old_self:
            given = engine.OptionalValue.of(_convert(node, old, compiled.escaped)) if comparable else None
            variables = {"self": _convert(node, value, compiled.escaped)}
            variables["oldSelf"] = given or engine.OptionalValue.none()
            failure = compiled.failure(engine.Context(variables=variables, functions=_functions_of(node.rules)))
            if failure is not None:
                yield _failed(rule, path, value, failure, node.type)
            continue
        if unchanged if not compiled.uses_old else not comparable:
            continue
        if context is None or compiled.escaped:
            context = _context(node, value, old if comparable else _MISSING, compiled.escaped)
        failure = compiled.failure(context)
        if failure is not None:
            yield _failed(rule, path, value, failure, node.type)


def _largest(value: Any, *, texts: bool) -> int:
    """The size of the largest list or map within a value; and of characters where strings become lists."""
    if isinstance(value, str) and texts:
        return len(value)
    if not isinstance(value, dict | list):
        return 1
    items = value.values() if isinstance(value, dict) else value
    return max(len(value), 1, *(_largest(item, texts=texts) for item in items if isinstance(item, dict | list | str)))


def _context(node: Node, value: Any, old: Any, escaped: bool) -> engine.Context:
    variables = {"self": _convert(node, value, escaped)}
    if old is not _MISSING:
        variables["oldSelf"] = _convert(node, old, escaped)
    return engine.Context(variables=variables, functions=_functions_of(node.rules))


def _failed(rule: Rule, path: Path, value: Any, failure: Failure, kind: str) -> Cause:
    field, detail = path_text(path), failure.detail
    if failure.broken:
        return causes.invalid(field or "<nil>", kind, detail)
    if rule.field_path:
        tail = re.sub(r"\['([^']*)'\]", r".\1", rule.field_path).lstrip(".")
        field = f"{field}.{tail}" if field else tail
    field = field or "<nil>"
    # A message does not repeat whole objects and lists.
    shown = causes.OMITTED if isinstance(value, dict | list) else value
    if rule.reason == causes.FORBIDDEN:
        return causes.forbidden(field, detail)
    if rule.reason == causes.REQUIRED:
        return causes.required(field, detail)
    if rule.reason == causes.DUPLICATE:
        return causes.duplicate(field, shown)
    return causes.invalid(field, shown, detail)


def escape(name: str) -> str:
    """The name of a property as CEL escapes it: `a-b` is `a__dash__b`, `namespace` is `__namespace__`."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


def _convert(node: Node, value: Any, escaped: bool) -> Any:
    """A JSON value with the types that the schema gives it in CEL: doubles, timestamps, durations, bytes."""
    if not escaped and not node.any_conversions:
        return value
    if isinstance(value, dict):
        return _convert_mapping(node, value, escaped)
    if isinstance(value, list):
        items = node.items
        return value if items is None else [_convert(items, item, escaped) for item in value]
    return _convert_scalar(node, value)


def _convert_mapping(node: Node, value: Mapping[str, Any], escaped: bool) -> dict[str, Any]:
    out = {}
    for key, item in value.items():
        sub = node.child(key)
        converted = item if sub is None or key in IDENTITY else _convert(sub, item, escaped)
        out[key] = converted
        if escaped and key in node.fields and (alias := escape(key)) != key:
            out[alias] = converted
    return out


def _convert_scalar(node: Node, value: Any) -> Any:
    if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return value
    try:
        return _BY_FORMAT[node.format](value) if node.format in _BY_FORMAT else value
    except ValueError:
        return value


_BY_FORMAT: dict[str, Callable[[str], Any]] = {
    "date-time": parse_datetime,
    "date": lambda text: parse_datetime(date.fromisoformat(text).isoformat() + "T00:00:00Z"),
    "duration": parse_duration,
    "byte": base64.b64decode,
}
