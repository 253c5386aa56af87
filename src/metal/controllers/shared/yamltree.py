"""Reads YAML files that administrators write; each error names the file, the line, the field and the correction.

Scalars are read as they are written: YAML 1.1 would read an unquoted 23 as a number, and 12:34:56 as one to base 60.
"""

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

import yaml


class Invalid(Exception):
    """The file is invalid. str() names the line."""


def read_list(text: str, name: str, source: str) -> list["Mapping"]:
    """The mappings in the list under the key `name` of the document. Raises Invalid or yaml.YAMLError."""
    root = read(text, source)
    if root is None:
        return []
    root.allow(name)
    return root.mappings(name)


def read(text: str, source: str) -> "Mapping | None":
    """The document's mapping, None when the file is empty. Raises Invalid or yaml.YAMLError."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return None
    return _mapping(node, source, "the file")


@dataclass(frozen=True)
class Mapping:
    """One mapping of the file. Values stay out of its repr: some are passwords."""

    source: str
    line: int
    nodes: MappingABC[str, yaml.Node] = field(repr=False)

    def invalid(self, key: str, problem: str) -> Invalid:
        """An error about a key, with its line (the mapping's own line when the key is absent)."""
        node = self.nodes.get(key)
        line = self.line if node is None else node.start_mark.line + 1
        return Invalid(f"{self.source} line {line}: {key} {problem}")

    def allow(self, *keys: str) -> None:
        """Raise Invalid for a key that is none of these."""
        for key in self.nodes:
            if key not in keys:
                raise self.invalid(key, f"is unknown: use {', '.join(keys)}")

    def raw(self, key: str) -> str:
        """The scalar exactly as it is written, without quotes. Raises Invalid when it is absent or empty."""
        value = self.text(key, "")
        if not value:
            raise self.invalid(key, "is missing or empty: write a value")
        return value

    def text(self, key: str, default: str) -> str:
        """The scalar as it is written, or the default when absent or null."""
        node = self.nodes.get(key)
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return default
        if not isinstance(node, yaml.ScalarNode):
            raise self.invalid(key, "must be a single value")
        return str(node.value)

    def choice(self, key: str, values: MappingABC[str, str], default: str) -> str:
        """One of the values, by its lower-case spelling."""
        value = self.text(key, default)
        if value.lower() not in values:
            allowed = ", ".join(name for name in values.values() if name)
            raise self.invalid(key, f"is {value!r}: use one of {allowed}")
        return values[value.lower()]

    def flag(self, key: str, default: bool = False) -> bool:
        """true or false."""
        return self.choice(key, {"true": "true", "false": "false"}, "true" if default else "false") == "true"

    def port(self, key: str, default: int) -> int:
        """A port number."""
        value = self.text(key, str(default))
        if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 65535):
            raise self.invalid(key, f"is {value!r}: write a number from 1 to 65535")
        return int(value)

    def mapping(self, key: str) -> "Mapping | None":
        """The mapping under a key, None when absent."""
        node = self.nodes.get(key)
        return None if node is None else _mapping(node, self.source, key)

    def mappings(self, key: str) -> "list[Mapping]":
        """The mappings of the list under a key; empty when absent or null."""
        node = self.nodes.get(key)
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise self.invalid(key, "must be a list: begin each entry with a hyphen")
        return [_mapping(child, self.source, f"each entry of {key}") for child in node.value]


def _mapping(node: yaml.Node, source: str, what: str) -> Mapping:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        raise Invalid(f"{source} line {line}: {what} must be a mapping, that is lines of the form key: value")
    nodes: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise Invalid(f"{source} line {key.start_mark.line + 1}: a key of {what} is not a plain word")
        if key.value in nodes:
            first = nodes[key.value].start_mark.line + 1
            place = f"lines {first} and {key.start_mark.line + 1}"
            raise Invalid(f"{source}: {place} both say {key.value}: remove one of them")
        nodes[str(key.value)] = value
    return Mapping(source, line, nodes)
