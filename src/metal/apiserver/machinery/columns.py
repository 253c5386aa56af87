"""A column of a Table (meta.k8s.io/v1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Obj = Mapping[str, Any]
Read = Callable[[Obj, datetime], Any]


@dataclass(frozen=True)
class Column:
    """One column: its definition in the API, and the function that reads a cell."""

    name: str
    type: str
    cell: Read
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> dict[str, Any]:
        """metav1.TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }
