"""Options that are lists of entries with options of their own, such as registries.servers."""

import dataclasses
from typing import Any, get_args, get_origin


def entry_class(hint: Any) -> Any:
    """The dataclass of the entries of a `tuple[Entry, ...]`; None for another type."""
    arguments = get_args(hint)
    is_list = get_origin(hint) is tuple and len(arguments) == 2 and arguments[1] is ...
    return arguments[0] if is_list and dataclasses.is_dataclass(arguments[0]) else None


def required(cls: Any) -> list[str]:
    """The fields that an entry must have."""
    return [field.name for field in dataclasses.fields(cls) if field.metadata.get("required")]
