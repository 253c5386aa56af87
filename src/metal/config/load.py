"""Reads the configuration file. Every error names the file, the line, the option and the fix."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml

from metal.config import check
from metal.config.check_registries import files_problem
from metal.config.entries import entry_class, required
from metal.config.options import Config
from metal.controllers.shared.yamltree import Invalid, Mapping, read

T = TypeVar("T")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi|Ti)?")
_BYTES = {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


class ConfigError(Exception):
    """The configuration is invalid. str() is a message with file and line."""


def load(path: Path | None) -> Config:
    """Return the configuration in a file, or the defaults. Raises ConfigError, also for an invalid
    dnsRecordTemplate, and for files of registries that cannot be used."""
    if path is None:
        return Config()
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror}); check --config") from None
    config = parse(text, str(path))
    try:
        config.dns_template()
    except Invalid as exc:
        raise ConfigError(f"{path}: dnsRecordTemplate: {exc}") from None
    if problem := files_problem(config.registries):
        raise ConfigError(f"{path}: registries.{problem}")
    return config


def parse(text: str, source: str) -> Config:
    """Return the configuration in a text. Raises ConfigError."""
    try:
        root = read(text, source)
        config = Config() if root is None else _read(Config, root)
    except Invalid as exc:
        raise ConfigError(str(exc)) from None
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ConfigError(f"{source} line {line}: this is not YAML: {exc.problem}") from None
    except yaml.YAMLError as exc:
        raise ConfigError(f"{source}: this is not YAML: {exc}") from None
    wrong = check.combination_problem(config)
    if wrong:
        raise ConfigError(f"{source}: {wrong}")
    return config


def key_of(name: str) -> str:
    """Return the key of an option in the file, in camelCase."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _read(cls: type[T], node: Mapping) -> T:
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]  # every caller gives a dataclass
    node.allow(*map(key_of, names))
    given = {name: _value(hints[name], node, key_of(name)) for name in names if key_of(name) in node.nodes}
    for name, value in given.items():
        problem = check.problem(cls.__name__, name, value)
        if problem:
            raise node.invalid(key_of(name), problem)
    return cls(**given)


def _value(hint: Any, node: Mapping, key: str) -> Any:
    if dataclasses.is_dataclass(hint):
        child = node.mapping(key)
        return _read(hint, child) if child is not None else hint()  # type: ignore[arg-type,operator]  # it is a class
    if (entry := entry_class(hint)) is not None:
        return tuple(_entry(entry, child) for child in node.mappings(key))
    return _SCALARS[hint](node, key)


def _entry(cls: type[T], node: Mapping) -> T:
    for name in required(cls):
        if key_of(name) not in node.nodes:
            raise node.invalid(key_of(name), "is missing: write a value")
    return _read(cls, node)


def _duration(node: Mapping, key: str) -> float:
    found = _DURATION.fullmatch(node.raw(key))
    if found is None or float(found[1]) <= 0:
        raise node.invalid(key, f"is {node.raw(key)!r}: write seconds, or a number with ms, s, m or h, such as 30m")
    return float(found[1]) * _SECONDS[found[2]]


def _number(node: Mapping, key: str) -> int:
    found = _SIZE.fullmatch(node.raw(key))
    if found is None:
        raise node.invalid(key, f"is {node.raw(key)!r}: write a whole number, for bytes also with Ki, Mi, Gi or Ti")
    return int(found[1]) * _BYTES[found[2]]


def _texts(node: Mapping, key: str) -> tuple[str, ...]:
    child = node.nodes[key]
    if not isinstance(child, yaml.SequenceNode) or not all(isinstance(n, yaml.ScalarNode) for n in child.value):
        raise node.invalid(key, "must be a list of values: begin each with a hyphen")
    return tuple(str(n.value) for n in child.value)


_SCALARS: dict[Any, Callable[[Mapping, str], Any]] = {
    str: lambda node, key: node.text(key, ""),
    bool: lambda node, key: node.flag(key),
    int: _number,
    float: _duration,
    tuple[str, ...]: _texts,
}
