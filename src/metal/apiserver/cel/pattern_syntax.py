"""Compiles regular expressions in the syntax of RE2 to instructions for `search`.

Supported: literals, escapes, `.`, classes (also `[[:alpha:]]`, `\\d \\s \\w`), groups, flags `i m s`, alternatives,
greedy and lazy repetition, and `^ $ \\A \\z \\b \\B`. RE2 has no lookaround and no backreferences; Unicode classes
(`\\p`) are refused.
"""

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

LARGEST = 2_000
"""Instructions of a pattern; repetitions such as (a{100}){100} multiply."""
_MOST_REPEATS = 1_000
_DEEPEST = 50
Accepts = Callable[[str], bool]


class PatternError(ValueError):
    """The pattern is malformed, too large, or not supported."""


@dataclass(frozen=True)
class Char:
    """Consumes one character."""

    accepts: Accepts


@dataclass(frozen=True)
class Assert:
    """Holds at a position of the text, or not."""

    holds: Callable[[str, int], bool]


@dataclass(frozen=True)
class Jump:
    """Continues elsewhere."""

    to: int


@dataclass(frozen=True)
class Split:
    """Continues at two places, the first of which is preferred."""

    first: int
    second: int


@dataclass(frozen=True)
class Match:
    """The end of the pattern."""


Instruction = Char | Assert | Jump | Split | Match
Code = list[Instruction]
"""Instructions whose targets are relative to the first."""

_WORD = frozenset(string.ascii_letters + string.digits + "_")
_SETS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"d": frozenset(string.digits), "s": frozenset("\t\n\f\r "), "w": _WORD}
)
_NAMED: Mapping[str, frozenset[str]] = MappingProxyType({
    "alnum": frozenset(string.ascii_letters + string.digits), "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))), "blank": frozenset("\t "), "digit": frozenset(string.digits),
    "cntrl": frozenset(map(chr, [*range(32), 127])), "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase), "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation), "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(string.ascii_uppercase), "word": _WORD, "xdigit": frozenset(string.hexdigits),
})  # fmt: skip
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def compile_pattern(pattern: str) -> tuple[Instruction, ...]:
    """The instructions of a pattern. Raises PatternError."""
    parser = _Parser(pattern)
    code = parser.alternatives(0)
    if parser.rest:
        raise PatternError(f"unexpected ): {pattern!r}")
    return (*code, Match())


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at] in _WORD


def _at_boundary(text: str, at: int) -> bool:
    return _is_word(text, at - 1) != _is_word(text, at)


_ASSERTIONS: dict[str, Callable[[str, int], bool]] = {
    "A": lambda _, at: at == 0,
    "z": lambda text, at: at == len(text),
    "b": _at_boundary,
    "B": lambda text, at: not _at_boundary(text, at),
    "^": lambda text, at: at == 0 or text[at - 1] == "\n",
    "$": lambda text, at: at == len(text) or text[at] == "\n",
}


def _moved(code: Code, by: int) -> Code:
    """The code with its targets moved."""
    moved: Code = []
    for one in code:
        if isinstance(one, Jump):
            moved.append(Jump(one.to + by))
        elif isinstance(one, Split):
            moved.append(Split(one.first + by, one.second + by))
        else:
            moved.append(one)
    return moved


def _joined(*parts: Code) -> Code:
    code: Code = []
    for part in parts:
        code += _moved(part, len(code))
        if len(code) > LARGEST:
            raise PatternError("the pattern is too large")
    return code


def _either(first: Code, second: Code) -> Code:
    after = len(first) + 2
    return [Split(1, after), *_moved(first, 1), Jump(after + len(second)), *_moved(second, after)]


def _optional(code: Code, lazy: bool) -> Code:
    after = len(code) + 1
    return [Split(after, 1) if lazy else Split(1, after), *_moved(code, 1)]


def _star(code: Code, lazy: bool) -> Code:
    after = len(code) + 2
    return [Split(after, 1) if lazy else Split(1, after), *_moved(code, 1), Jump(0)]


def _repeated(code: Code, least: int, most: int | None, lazy: bool) -> Code:
    if most is None:
        return _joined(*[code] * least, _star(code, lazy))
    tail: Code = []
    for _ in range(most - least):
        tail = _optional(_joined(code, tail), lazy)
    return _joined(*[code] * least, tail)


class _Parser:
    """Recursive descent over the text of a pattern."""

    def __init__(self, pattern: str) -> None:
        self.rest, self._pattern, self._flags = pattern, pattern, frozenset[str]()

    def _error(self, why: str) -> PatternError:
        return PatternError(f"error parsing regexp: {why}: {self._pattern[:100]!r}")

    def _take(self, text: str) -> bool:
        if not self.rest.startswith(text):
            return False
        self.rest = self.rest[len(text) :]
        return True

    def _next(self) -> str:
        if not self.rest:
            raise self._error("unexpected end")
        char, self.rest = self.rest[0], self.rest[1:]
        return char

    def _until(self, end: str) -> str:
        head, found, rest = self.rest.partition(end)
        if not found:
            raise self._error(f"missing {end}")
        self.rest = rest
        return head

    def alternatives(self, depth: int) -> Code:
        """Up to the end of the group."""
        if depth > _DEEPEST:
            raise self._error("nested too deeply")
        flags = self._flags
        branches = [self._branch(depth)]
        while self._take("|"):
            branches.append(self._branch(depth))
        self._flags = flags
        code = branches.pop()
        while branches:
            code = _joined(_either(branches.pop(), code))
        return code

    def _branch(self, depth: int) -> Code:
        parts: list[Code] = []
        size = 0
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._repetition(self._atom(depth)))
            size += len(parts[-1])
            if size > LARGEST:
                raise self._error("the pattern is too large")
        return _joined(*parts)

    def _repetition(self, code: Code) -> Code:
        least, most = 1, 1
        bounds: tuple[int, int | None] | None = None
        if self.rest[:1] in ("*", "+", "?") and self.rest:
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._next()]
        elif self.rest.startswith("{"):
            bounds = self._counted()
        if bounds is None:
            return _repeated(code, least, most, lazy=False)
        lazy = self._take("?")
        if self.rest[:1] in ("*", "+", "?") and self.rest:
            raise self._error("invalid nested repetition operator")
        return _repeated(code, *bounds, lazy=lazy)

    def _counted(self) -> tuple[int, int | None] | None:
        inner, closed, rest = self.rest[1:].partition("}")
        low, comma, high = inner.partition(",")
        if not closed or not _is_number(low) or (high and not _is_number(high)):
            return None  # a literal brace
        least = int(low)
        most = least if not comma else int(high) if high else None
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self._error("invalid repeat count")
        self.rest = rest
        return least, most

    def _atom(self, depth: int) -> Code:
        char = self._next()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return [Char(self._class())]
        if char == ".":
            return [Char((lambda _: True) if "s" in self._flags else (lambda one: one != "\n"))]
        if char in "^$":
            key = char if "m" in self._flags else {"^": "A", "$": "z"}[char]
            return [Assert(_ASSERTIONS[key])]
        if char in "*+?":
            raise self._error("missing argument to repetition operator")
        if char == "\\":
            return self._escape()
        return [Char(self._any_of(frozenset(char)))]

    def _group(self, depth: int) -> Code:
        outer = self._flags
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                self._until(">")
            elif self._set_flags():
                return []  # for the rest of the enclosing group
        code = self.alternatives(depth + 1)
        self._flags = outer
        if not self._take(")"):
            raise self._error("missing closing )")
        return code

    def _set_flags(self) -> bool:
        """Read flags up to : or ); True when they are the whole group."""
        on, flags = True, set(self._flags)
        while (char := self._next()) not in ":)":
            if char == "-":
                on = False
            elif char in "ims":
                (flags.add if on else flags.discard)(char)
            else:
                raise self._error("invalid or unsupported Perl syntax")
        self._flags = frozenset(flags)
        return char == ")"

    def _any_of(self, chars: frozenset[str]) -> Accepts:
        if "i" in self._flags:
            chars = frozenset(form for char in chars for form in (char, char.lower(), char.upper()))
        return chars.__contains__

    def _escape(self) -> Code:
        if self.rest[:1] in ("A", "z", "b", "B") and self.rest:
            return [Assert(_ASSERTIONS[self._next()])]
        chars, inverted = self._escaped()
        accepts = self._any_of(chars)
        return [Char((lambda one: not accepts(one)) if inverted else accepts)]

    def _escaped(self) -> tuple[frozenset[str], bool]:
        """The characters of an escape, and whether it means all others."""
        char = self._next()
        if char.lower() in _SETS:
            return _SETS[char.lower()], char.isupper()
        if char in _CONTROL:
            return frozenset(_CONTROL[char]), False
        if char == "x":
            digits = self._until("}") if self._take("{") else self._next() + self._next()
            try:
                return frozenset(chr(int(digits, 16))), False
            except (ValueError, OverflowError):
                raise self._error("invalid escape sequence") from None
        if char.isalnum():
            raise self._error(f"invalid or unsupported escape \\{char}")
        return frozenset(char), False

    def _class(self) -> Accepts:
        inverted, first = self._take("^"), True
        tests: list[Accepts] = []
        while first or not self.rest.startswith("]"):
            first = False
            tests.append(self._class_item())
        self.rest = self.rest[1:]
        return lambda char: any(test(char) for test in tests) != inverted

    def _class_item(self) -> Accepts:
        if self._take("[:"):
            name = self._until(":]")
            chars = _NAMED.get(name.removeprefix("^"))
            if chars is None:
                raise self._error(f"invalid character class [:{name}:]")
            accepts = self._any_of(chars)
            return (lambda one: not accepts(one)) if name.startswith("^") else accepts
        chars, inverted = self._class_char()
        if inverted or len(chars) > 1:
            return (lambda one: one not in chars) if inverted else self._any_of(chars)
        if not self.rest.startswith("-") or self.rest.startswith("-]"):
            return self._any_of(chars)
        self.rest = self.rest[1:]
        last, all_others = self._class_char()
        low, high = min(chars), min(last)
        if all_others or len(last) > 1 or high < low:
            raise self._error("invalid character class range")
        if "i" in self._flags:
            return lambda one: any(low <= form <= high for form in (one, one.lower(), one.upper()))
        return lambda one: low <= one <= high

    def _class_char(self) -> tuple[frozenset[str], bool]:
        return self._escaped() if self._take("\\") else (frozenset(self._next()), False)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6
