"""Label selectors in the syntax of kubectl: the grammar and the error messages of kube-apiserver."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from metal.kube.meta.names import key_fault, label_value_fault
from metal.kube.meta.selectors import Operator, Requirement, Selector, is_integer

_SYMBOLS = frozenset("=!(),><")
_WORDS = frozenset(("in", "notin"))
_OPERATORS = frozenset(("in", "notin", "=", "==", "!=", ">", "<"))
_IDENTIFIER, _END = "identifier", "end"


class SelectorError(ValueError):
    """The selector cannot be parsed; the message is kube-apiserver's."""


class _Token(NamedTuple):
    """kind is _IDENTIFIER, _END, or the text itself for symbols and the words in and notin."""

    kind: str
    text: str


def parse(text: str) -> Selector:
    """The selector of a text such as `a=b,c!=d,e in (f,g),!h,i>1`. Raises SelectorError."""
    reader = _Reader(list(_tokens(text)))
    requirements: list[Requirement] = []
    while True:
        token = reader.value(ahead=True)
        if token.kind == _END:
            return Selector(tuple(requirements))
        if token.kind not in (_IDENTIFIER, "!"):
            raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
        try:
            requirements.append(_requirement(reader))
        except SelectorError as fault:
            raise SelectorError(f"unable to parse requirement: {fault}") from None
        _separator(reader)


def _separator(reader: "_Reader") -> None:
    token = reader.value()
    if token.kind == ",":
        following = reader.value(ahead=True)
        if following.kind not in (_IDENTIFIER, "!"):
            raise SelectorError(f"found '{following.text}', expected: identifier after ','")
    elif token.kind != _END:
        raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in _SYMBOLS:
            width = 2 if text[at : at + 2] in ("==", "!=") else 1
            yield _Token(text[at : at + width], text[at : at + width])
            at += width
        else:
            end = at
            while end < len(text) and text[end] not in _SYMBOLS and not text[end].isspace():
                end += 1
            word = text[at:end]
            yield _Token(word if word in _WORDS else _IDENTIFIER, word)
            at = end


class _Reader:
    """Tokens in order. The words in and notin are names where a name is expected."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self, *, ahead: bool = False) -> _Token:
        token = self.operator(ahead=ahead)
        return _Token(_IDENTIFIER, token.text) if token.kind in _WORDS else token

    def operator(self, *, ahead: bool = False) -> _Token:
        token = self._tokens[self._at] if self._at < len(self._tokens) else _Token(_END, "")
        if not ahead:
            self._at += 1
        return token


def _requirement(reader: _Reader) -> Requirement:
    token = reader.value()
    absent = token.kind == "!"
    if absent:
        token = reader.value()
    if token.kind != _IDENTIFIER:
        raise SelectorError(f"found '{token.text}', expected: identifier")
    key = token.text
    if fault := key_fault(key):
        raise SelectorError(f"<nil>: {_invalid(key, fault)}")
    if absent:
        return Requirement(key, Operator.DOES_NOT_EXIST)
    if reader.value(ahead=True).kind in (_END, ","):
        return Requirement(key, Operator.EXISTS)
    return _compared(reader, key)


def _compared(reader: _Reader, key: str) -> Requirement:
    token = reader.operator()
    if token.kind not in _OPERATORS:
        raise SelectorError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
    if token.kind in _WORDS:
        values = tuple(_set(reader))
        operator = Operator.IN if token.kind == "in" else Operator.NOT_IN
    else:
        values = (_exact(reader),)
        kinds = {"!=": Operator.NOT_IN, ">": Operator.GREATER, "<": Operator.LESS}
        operator = kinds.get(token.kind, Operator.IN)
    _check(key, operator, sorted(set(values)))
    return Requirement(key, operator, values)


def _exact(reader: _Reader) -> str:
    if reader.value(ahead=True).kind in (_END, ","):
        return ""
    token = reader.value()
    if token.kind != _IDENTIFIER:
        raise SelectorError(f"found '{token.text}', expected: identifier")
    return token.text


def _set(reader: _Reader) -> Iterator[str]:
    token = reader.value()
    if token.kind != "(":
        raise SelectorError(f"found '{token.text}' expected: '('")
    expected = "',', ')' or identifier"
    while True:
        token = reader.value()
        if token.kind in (",", ")"):
            # An empty place before a comma or between the parentheses is the empty value.
            yield ""
        elif token.kind == _IDENTIFIER:
            yield token.text
            token = reader.value()
            if token.kind not in (",", ")"):
                raise SelectorError(f"found '{token.text}', expected: ',' or ')'")
        else:
            raise SelectorError(f"found '{token.text}', expected: {expected}")
        if token.kind == ")":
            return
        expected = "',', or identifier"


def _check(key: str, operator: Operator, values: list[str]) -> None:
    faults = []
    for index, value in enumerate(values):
        if operator in (Operator.GREATER, Operator.LESS) and not is_integer(value):
            told = "for 'Gt', 'Lt' operators, the value must be an integer"
            faults.append(f"values[{index}]: {_invalid(value, told)}")
        if fault := label_value_fault(value):
            faults.append(f"values[{index}][{key}]: {_invalid(value, fault)}")
    if faults:
        raise SelectorError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _invalid(value: str, why: str) -> str:
    return f"Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"
