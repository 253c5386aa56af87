"""Label selectors (metav1.LabelSelector) matched against labels; `selector_syntax` parses the syntax of kubectl."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from metal.kube.meta.names import key_fault, label_value_fault


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
                return value is not None and is_integer(value) and int(value) > int(self.values[0])
            case Operator.LESS:
                return value is not None and is_integer(value) and int(value) < int(self.values[0])

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


def _checked(requirement: Requirement, where: str) -> Requirement:
    if fault := key_fault(requirement.key):
        raise ValueError(f"{where}: {requirement.key!r} is not a label key: {fault}")
    values = requirement.values
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN if not values:
            raise ValueError(f"{where}: {requirement.operator} needs at least one value")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST if values:
            raise ValueError(f"{where}: {requirement.operator} takes no values")
    for value in values:
        if not isinstance(value, str):
            raise ValueError(f"{where}: {value!r} is not a label value: it is not a string")
        if fault := label_value_fault(value):
            raise ValueError(f"{where}: {value!r} is not a label value: {fault}")
    return requirement


def is_integer(text: str) -> bool:
    """Whether text is an integer of 64 bits, which `>` and `<` compare."""
    return re.fullmatch(r"[+-]?[0-9]{1,63}", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63
