"""The grammar of CEL (cel-spec, "Syntax") as a tree with places, for what can be said of a rule without running it."""

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>(?:[rR]?[bB]?|[bB][rR])(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))


class NotUnderstoodError(ValueError):
    """The text is no CEL, or CEL of a newer kind."""


@dataclass(frozen=True)
class Literal:
    """A constant; type: its type in CEL."""

    at: int
    type: str


@dataclass(frozen=True)
class Name:
    """A variable, or the first word of a function with a namespace."""

    at: int
    name: str


@dataclass(frozen=True)
class Select:
    """`of.name`; test: within has()."""

    at: int
    of: "Expr"
    name: str
    test: bool = False


@dataclass(frozen=True)
class Index:
    """`of[key]`."""

    at: int
    of: "Expr"
    key: "Expr"


@dataclass(frozen=True)
class Call:
    """`of.name(args)`, `name(args)`, or an operator: `_==_` and its like."""

    at: int
    name: str
    args: tuple["Expr", ...]
    of: "Expr | None" = None


@dataclass(frozen=True)
class Items:
    """A list of `keys`, or with `values` a map."""

    at: int
    keys: tuple["Expr", ...]
    values: tuple["Expr", ...] | None = None


Expr: TypeAlias = "Literal | Name | Select | Index | Call | Items"


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(source: str) -> Expr:
    """The tree of an expression; `at` is an offset into it. Raises NotUnderstoodError."""
    parser = _Parser(list(_tokens(source)))
    tree = parser.expression()
    if parser.peek().kind != "end":
        raise NotUnderstoodError(f"trailing {parser.peek().text!r}")
    return tree


def _tokens(source: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None:
            raise NotUnderstoodError(f"character {source[at]!r}")
        if match.lastgroup != "space":
            tokens.append(_Token(match.lastgroup, match[0], at))
        at = match.end()
    return [*tokens, _Token("end", "", len(source))]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._next = tokens, 0

    def peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self.peek()
        self._next += token.kind != "end"
        return token

    def _took(self, text: str) -> _Token | None:
        token = self.peek()
        return self._take() if token.kind in ("op", "name") and token.text == text else None

    def _need(self, text: str) -> _Token:
        if (token := self._took(text)) is None:
            raise NotUnderstoodError(f"{self.peek().text!r} in place of {text!r}")
        return token

    def expression(self) -> Expr:
        condition = self._binary(0)
        if (mark := self._took("?")) is None:
            return condition
        then = self._binary(0)
        self._need(":")
        return Call(mark.at, "_?_:_", (condition, then, self.expression()))

    def _binary(self, level: int) -> Expr:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (token := self.peek()).kind in ("op", "name") and token.text in _LEVELS[level]:
            self._take()
            name = "@in" if token.text == "in" else f"_{token.text}_"
            left = Call(token.at, name, (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Expr:
        for operator in ("!", "-"):
            if token := self._took(operator):
                return Call(token.at, f"{operator}_", (self._unary(),))
        return self._member()

    def _member(self) -> Expr:
        tree = self._primary()
        while True:
            if dot := self._took("."):
                name = self._take()
                if name.kind != "name":
                    raise NotUnderstoodError(f"{name.text!r} as a field")
                if opened := self._took("("):
                    tree = Call(opened.at, name.text, self._list(")"), tree)
                else:
                    tree = Select(dot.at, tree, name.text)
            elif bracket := self._took("["):
                tree = Index(bracket.at, tree, self.expression())
                self._need("]")
            else:
                return tree

    def _primary(self) -> Expr:
        token = self._take()
        if token.kind == "text":
            bytes_ = "b" in re.split("['\"]", token.text)[0].lower()
            return Literal(token.at, "bytes" if bytes_ else "string")
        if token.kind in ("int", "uint", "float"):
            return Literal(token.at, "double" if token.kind == "float" else token.kind)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            tree = self.expression()
            self._need(")")
            return tree
        if token.text == "[":
            return Items(token.at, self._list("]"))
        if token.text == "{":
            return self._map(token.at)
        raise NotUnderstoodError(f"{token.text!r} in place of an expression")

    def _named(self, token: _Token) -> Expr:
        if token.text in ("true", "false"):
            return Literal(token.at, "bool")
        if token.text == "null":
            return Literal(token.at, "null")
        if (opened := self._took("(")) is None:
            return Name(token.at, token.text)
        args = self._list(")")
        if token.text == "has" and len(args) == 1 and isinstance(args[0], Select):
            return Select(opened.at, args[0].of, args[0].name, test=True)
        return Call(opened.at, token.text, args)

    def _list(self, end: str) -> tuple[Expr, ...]:
        found: list[Expr] = []
        while self._took(end) is None:
            found.append(self.expression())
            if self._took(",") is None:
                self._need(end)
                break
        return tuple(found)

    def _map(self, at: int) -> Items:
        keys: list[Expr] = []
        values: list[Expr] = []
        while self._took("}") is None:
            keys.append(self.expression())
            self._need(":")
            values.append(self.expression())
            if self._took(",") is None:
                self._need("}")
                break
        return Items(at, tuple(keys), tuple(values))
