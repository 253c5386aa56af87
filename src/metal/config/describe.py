"""Renders the configuration as a YAML file with every option, its description and its default."""

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import Any, get_type_hints

from metal.api.docstrings import class_doc, field_docs
from metal.config.entries import entry_class
from metal.config.load import key_of
from metal.config.options import Config


def documented(config: Config | None = None) -> str:
    """Return a YAML file with every option, its description as a comment, and its value."""
    head = "# Configuration of the metal control plane. Every option, at its default.\n"
    return head + "\n".join(_section(config or Config(), "")) + "\n"


def _section(section: Any, indent: str) -> Iterator[str]:
    kind: type = type(section)
    docs = field_docs(kind)
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        doc = class_doc(type(value)) if dataclasses.is_dataclass(value) else docs[field.name]
        yield from (f"{indent}# {line}" for line in textwrap.wrap(doc, 110 - len(indent)))
        if dataclasses.is_dataclass(value):
            yield f"{indent}{key_of(field.name)}:"
            yield from _section(value, indent + "  ")
        else:
            yield from _entry(get_type_hints(kind)[field.name], indent)
            yield f"{indent}{key_of(field.name)}: {scalar(value)}"


def _entry(hint: Any, indent: str) -> Iterator[str]:
    """The fields of each entry of a list, as comments."""
    entry = entry_class(hint)
    for name, doc in field_docs(entry).items() if entry is not None else ():
        yield from (f"{indent}#   {line}" for line in textwrap.wrap(f"{key_of(name)}: {doc}", 106 - len(indent)))


def scalar(value: Any) -> str:
    """Return a value as it is written in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}s"
    return f'"{value}"' if isinstance(value, str) else str(value)
