"""Label selectors: from objects (metav1.LabelSelector) and from kubectl's syntax, matched against labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_SET = re.compile(r"\s*(?P<key>[^\s!=<>(),]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_COMPARE = re.compile(r"\s*(?P<key>[^\s!=<>(),]+)\s*(?P<op>==|!=|=|>|<)\s*(?P<value>[^\s!=<>(),]*)\s*")
_EXISTS = re.compile(r"\s*(?P<not>!)?\s*(?P<key>[^\s!=<>(),]+)\s*")


class Operator(StrEnum):
    """What a requirement asks of a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


@dataclass(frozen=True)
class Requirement:
    """One condition on one label. NotIn also holds where the label is absent."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER:
                return value is not None and _is_int(value) and int(value) > int(self.values[0])
            case Operator.LESS:
                return value is not None and _is_int(value) and int(value) < int(self.values[0])

    def __str__(self) -> str:
        match self.operator:
            case Operator.IN:
                return f"{self.key} in ({','.join(self.values)})"
            case Operator.NOT_IN:
                return f"{self.key} notin ({','.join(self.values)})"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GREATER:
                return f"{self.key}>{self.values[0]}"
            case Operator.LESS:
                return f"{self.key}<{self.values[0]}"


@dataclass(frozen=True)
class Selector:
    """All requirements must hold; without any, everything matches. str() gives kubectl's syntax."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse(text: str) -> Selector:
    """Read kubectl's syntax, e.g. `app=web,tier in (a,b),!old`. Raises ValueError that names the broken part."""
    requirements: list[Requirement] = []
    position = 0
    while text[position:].strip():
        requirement, position = _next(text, position)
        requirements.append(requirement)
        if position == len(text):
            break
        if text[position] != ",":
            raise ValueError(f"label selector: expected a comma before {text[position:]!r}")
        position += 1
        if not text[position:].strip():
            raise ValueError(f"label selector {text!r} ends with a comma: remove it")
    return Selector(tuple(requirements))


def from_object(selector: Mapping[str, Any] | msgspec.Struct) -> Selector:
    """Read {matchLabels, matchExpressions}, as JSON or as a struct. Raises ValueError that names the field."""
    plain: Mapping[str, Any] = msgspec.to_builtins(selector) if isinstance(selector, msgspec.Struct) else selector
    requirements = [
        _checked(Requirement(key, Operator.IN, (value,)), f"matchLabels[{key!r}]")
        for key, value in (plain.get("matchLabels") or {}).items()
    ]
    for index, expression in enumerate(plain.get("matchExpressions") or ()):
        requirements.append(_expression(expression, f"matchExpressions[{index}]"))
    return Selector(tuple(requirements))


def _expression(expression: Mapping[str, Any], where: str) -> Requirement:
    name = expression.get("operator", "")
    if name not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        raise ValueError(f"{where}.operator is {name!r}: use In, NotIn, Exists or DoesNotExist")
    values = tuple(expression.get("values") or ())
    return _checked(Requirement(expression.get("key", ""), Operator(name), values), where)


def _next(text: str, position: int) -> tuple[Requirement, int]:
    if found := _SET.match(text, position):
        values = tuple(value.strip() for value in found["values"].split(","))
        operator = Operator.IN if found["op"] == "in" else Operator.NOT_IN
        requirement = Requirement(found["key"], operator, values)
    elif found := _COMPARE.match(text, position):
        operators = {"!=": Operator.NOT_IN, ">": Operator.GREATER, "<": Operator.LESS}
        requirement = Requirement(found["key"], operators.get(found["op"], Operator.IN), (found["value"],))
    elif found := _EXISTS.match(text, position):
        requirement = Requirement(found["key"], Operator.DOES_NOT_EXIST if found["not"] else Operator.EXISTS)
    else:
        raise ValueError(f"label selector: cannot read {text[position:]!r}")
    return _checked(requirement, "label selector"), found.end()


def _checked(requirement: Requirement, where: str) -> Requirement:
    _check_key(requirement.key, where)
    values = requirement.values
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN if not values:
            raise ValueError(f"{where}: {requirement.operator} needs at least one value")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST if values:
            raise ValueError(f"{where}: {requirement.operator} takes no values")
        case Operator.GREATER | Operator.LESS if not _is_int(values[0]):
            raise ValueError(f"{where}: {values[0]!r} is not an integer")
    for value in values:
        if not isinstance(value, str) or (value and not _NAME.fullmatch(value)):
            raise ValueError(f"{where}: {value!r} is not a label value (at most 63 letters, digits, '-', '_' and '.')")
    return requirement


def _check_key(key: str, where: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        raise ValueError(f"{where}: {key!r} is not a label key ([domain/]name, at most 63 letters, digits, '-_.')")


def _is_int(value: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", value, re.ASCII) is not None
