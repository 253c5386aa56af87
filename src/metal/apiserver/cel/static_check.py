"""Types of a rule in CEL: what cel-go's checker refuses, told as it tells it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from metal.apiserver.cel.parser import Call, Expr, Index, Items, Literal, Name, NotUnderstoodError, Select, parse
from metal.apiserver.cel.signatures import DYN, SIGNATURES, Signature, Type
from metal.apiserver.cel.loops import unescaped
from metal.apiserver.machinery.structural import Node

_FORMATS = {"date-time": "timestamp", "date": "timestamp", "duration": "duration", "byte": "bytes"}
_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_TYPE_NAMES = frozenset(("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"))
_MACROS = frozenset(("all", "exists", "exists_one", "existsOne", "map", "filter"))
_TEXT = Node(type="string")
_METADATA = Node(type="object", fields={"name": _TEXT, "generateName": _TEXT})
_IDENTITY = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}


class Fault(NamedTuple):
    """What is wrong at an offset of the source."""

    at: int
    message: str


@dataclass(frozen=True)
class Object:
    """The type of an object whose fields a schema declares. whole: a resource, which has an identity."""

    node: Node
    name: str
    whole: bool = False

    def field(self, name: str) -> Type | None:
        """The type of a field, or None when there is none of this name."""
        sub = self.node.fields.get(name)
        if self.whole and name in _IDENTITY:
            sub = _IDENTITY[name]
        return None if sub is None else type_of(sub, f"{self.name}.{name}")


def type_of(node: Node, name: str = "selfType", *, whole: bool = False) -> Type:
    """The type that values of a schema have in CEL; whole: the schema is that of a resource."""
    if node.type == "object":
        if node.extra is not None:
            return ("map", "string", type_of(node.extra, f"{name}.@elem"))
        open_ended = node.preserve and not node.fields
        return DYN if open_ended and not node.embedded else Object(node, name, whole or node.embedded)
    if node.nullable or node.int_or_string:
        return DYN
    if node.type == "array":
        return ("list", type_of(node.items, f"{name}.@idx") if node.items else DYN)
    scalar = _SCALARS.get(node.type, DYN)
    return _FORMATS.get(node.format, scalar) if scalar == "string" else scalar


def check(source: str, variables: Mapping[str, Type], known: frozenset[str]) -> tuple[Type, list[Fault]]:
    """The type of an expression, and what is wrong with it in the order of its text.

    variables: their types by name. known: functions that exist, whether or not their signatures are known.
    Raises NotUnderstoodError for what the parser does not know.
    """
    checker = _Checker(known)
    try:
        found = checker.type(parse(source), dict(variables))
    except RecursionError:
        raise NotUnderstoodError("it is nested too deeply") from None
    return found, sorted(set(checker.faults))


def located(source: str, fault: Fault) -> str:
    """`ERROR: <input>:1:5: message` with the line of the source and a pointer below it."""
    before = source[: fault.at]
    line, column = before.count("\n") + 1, fault.at - (before.rfind("\n") + 1)
    text = source.splitlines()[line - 1] if source else ""
    return f"ERROR: <input>:{line}:{column + 1}: {fault.message}\n | {text}\n | {'.' * column}^"


def shown(kind: Type) -> str:
    """A type as messages name it."""
    if isinstance(kind, Object):
        return kind.name
    if isinstance(kind, tuple):
        return f"{kind[0]}({', '.join(shown(part) for part in kind[1:])})"
    return str(kind)


class _Checker:
    def __init__(self, known: frozenset[str]) -> None:
        self.faults: list[Fault] = []
        self._known = known

    def _fault(self, at: int, message: str) -> Type:
        self.faults.append(Fault(at, message))
        return DYN

    def type(self, tree: Expr, names: Mapping[str, Type]) -> Type:
        match tree:
            case Literal(type=kind):
                return kind
            case Name():
                return self._name(tree, names)
            case Select():
                return self._select(tree, self.type(tree.of, names))
            case Index(of=of, key=key):
                return self._overload(tree.at, "_[_]", [self.type(of, names), self.type(key, names)])
            case Items():
                return self._items(tree, names)
        return self._call(tree, names)

    def _name(self, tree: Name, names: Mapping[str, Type]) -> Type:
        if tree.name in names:
            return names[tree.name]
        if tree.name in _TYPE_NAMES:
            return "type"
        return self._fault(tree.at, f"undeclared reference to '{tree.name}' (in container '')")

    def _select(self, tree: Select, of: Type) -> Type:
        inner = of[1] if isinstance(of, tuple) and of[0] == "optional_type" else of
        found: Type | None = DYN
        if isinstance(inner, Object):
            found = inner.field(unescaped(tree.name))
        elif isinstance(inner, tuple) and inner[0] == "map":
            found = inner[2]
        elif inner != DYN:
            return self._fault(tree.at, f"type '{shown(inner)}' does not support field selection")
        if found is None:
            return self._fault(tree.at, f"undefined field '{tree.name}'")
        if tree.test:
            return "bool"
        return found if inner is of else ("optional_type", found)

    def _items(self, tree: Items, names: Mapping[str, Type]) -> Type:
        keys = self._alike(tree.keys, names)
        return ("list", keys) if tree.values is None else ("map", keys, self._alike(tree.values, names))

    def _alike(self, trees: tuple[Expr, ...], names: Mapping[str, Type]) -> Type:
        common: Type | None = None
        for tree in trees:
            kind = self.type(tree, names)
            joined = kind if common is None else join(common, kind)
            if joined is None:
                self._fault(tree.at, f"expected type '{shown(common)}' but found '{shown(kind)}'")
            else:
                common = joined
        return DYN if common is None else common

    def _call(self, tree: Call, names: Mapping[str, Type]) -> Type:
        if tree.name in ("_&&_", "_||_"):
            for arg in tree.args:
                self._expect_bool(arg, self.type(arg, names))
            return "bool"
        if tree.of is not None and tree.name in _MACROS and len(tree.args) > 1 and isinstance(tree.args[0], Name):
            return self._macro(tree, tree.of, tree.args[0].name, names)
        of = None if tree.of is None else self.type(tree.of, names)
        args = [self.type(arg, names) for arg in tree.args]
        return self._overload(tree.at, tree.name, args, of)

    def _expect_bool(self, tree: Expr, kind: Type) -> None:
        if kind not in ("bool", DYN):
            self._fault(tree.at, f"expected type 'bool' but found '{shown(kind)}'")

    def _macro(self, tree: Call, of: Expr, variable: str, names: Mapping[str, Type]) -> Type:
        over = self.type(of, names)
        if over != DYN and not (isinstance(over, tuple) and over[0] in ("list", "map")):
            told = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._fault(of.at, f"expression of type '{shown(over)}' {told}")
            over = DYN
        item = DYN if over == DYN else over[1]
        inside = {**names, variable: item}
        kinds = [self.type(arg, inside) for arg in tree.args[1:]]
        if tree.name in ("all", "exists"):
            self._expect_bool(tree.args[1], kinds[0])
            return "bool"
        if tree.name in ("exists_one", "existsOne"):
            self._overload(tree.at, "_?_:_", [kinds[0], "int", "int"])
            return "bool"
        made: Type = ("list", kinds[-1] if tree.name == "map" else item)
        if tree.name == "filter" or len(kinds) > 1:
            self._overload(tree.at, "_?_:_", [kinds[0], made, made])
        return made

    def _overload(self, at: int, name: str, args: list[Type], of: Type | None = None) -> Type:
        several = SIGNATURES.get(name)
        if several is None:
            if name in self._known:
                return DYN
            return self._fault(at, f"undeclared reference to '{name}' (in container '')")
        results = [given for signature in several if (given := _result(signature, args, of)) is not None]
        if not results:
            told = f"{'' if of is None else shown(of) + '.'}({', '.join(map(shown, args))})"
            return self._fault(at, f"found no matching overload for '{name}' applied to '{told}'")
        return results[0] if all(one == results[0] for one in results) else DYN


def _result(signature: Signature, args: list[Type], of: Type | None) -> Type | None:
    """What a call gives, or None when the signature is not that of these types."""
    if len(args) != len(signature.args) or (of is None) != (signature.of is None):
        return None
    bound: dict[str, Type] = {}
    pairs = [*zip(signature.args, args, strict=True), *([] if of is None else [(signature.of, of)])]
    return _filled(signature.gives, bound) if all(_fits(wanted, kind, bound) for wanted, kind in pairs) else None


def _fits(wanted: Type, kind: Type, bound: dict[str, Type]) -> bool:
    if isinstance(wanted, str) and len(wanted) == 1:
        joined = join(bound[wanted], kind) if wanted in bound else kind
        bound[wanted] = joined
        return joined is not None
    if kind == DYN:
        return True
    if isinstance(wanted, tuple) and isinstance(kind, tuple):
        same = wanted[0] == kind[0] and len(wanted) == len(kind)
        return same and all(_fits(a, b, bound) for a, b in zip(wanted[1:], kind[1:], strict=True))
    return bool(wanted == kind)


def _filled(kind: Type, bound: Mapping[str, Type]) -> Type:
    if isinstance(kind, tuple):
        return (kind[0], *(_filled(part, bound) for part in kind[1:]))
    return bound.get(kind, DYN) if len(kind) == 1 else kind


def join(one: Type, other: Type) -> Type | None:
    """The type that values of both have, or None when there is none."""
    if DYN in (one, other):
        return DYN
    if isinstance(one, Object) and isinstance(other, Object):
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and (one[0], len(one)) == (other[0], len(other)):
        parts = [join(a, b) for a, b in zip(one[1:], other[1:], strict=True)]
        return None if None in parts else (one[0], *parts)
    for kind, maybe in ((one, other), (other, one)):
        if maybe == "null" and (isinstance(kind, Object) or kind in ("timestamp", "duration")):
            return kind
    return one if one == other else None
