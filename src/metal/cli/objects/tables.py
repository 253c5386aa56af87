"""Prints tables that the API server renders (meta.k8s.io/v1 Table)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from metal.cli.support.columns import aligned, line, widths
from metal.cli.support.dynamic import Obj
from metal.cli.support.table import printable


@dataclass
class TablePrinter:
    """Prints a table and later rows of a watch in the same columns."""

    wide: bool = False
    """If true, columns with a priority above 0 are printed too."""
    namespaces: bool = False
    """If true, a column with the namespace is printed."""
    prefix: str = ""
    """Prefix of each name, if several kinds are printed."""
    _columns: list[tuple[int, str]] = field(default_factory=list)
    _widths: list[int] = field(default_factory=list)

    def whole(self, table: Obj) -> list[str]:
        """Return header and rows; nothing for an empty table."""
        self._learn(table)
        rows = [self._cells(row) for row in table.get("rows") or ()]
        self._widths = widths([self._header(), *rows])
        return aligned(self._header(), rows) if rows else []

    def more(self, table: Obj) -> list[str]:
        """Return later rows, with the header if they are the first."""
        if table.get("columnDefinitions") and not self._columns:
            self._learn(table)
        rows = [self._cells(row) for row in table.get("rows") or ()]
        if rows and not self._widths:
            self._widths = widths([self._header(), *rows])
            return aligned(self._header(), rows)
        return [line(row, self._widths) for row in rows]

    def _learn(self, table: Obj) -> None:
        definitions = table.get("columnDefinitions") or ()
        self._columns = [
            (at, one["name"].upper()) for at, one in enumerate(definitions) if self.wide or not one.get("priority")
        ]
        self._widths = []

    def _header(self) -> list[str]:
        names = [name for _, name in self._columns]
        return ["NAMESPACE", *names] if self.namespaces else names

    def _cells(self, row: Obj) -> list[str]:
        cells = [_text(row["cells"][at]) for at, _ in self._columns]
        if self.prefix and cells:
            cells[0] = self.prefix + cells[0]
        namespace = ((row.get("object") or {}).get("metadata") or {}).get("namespace", "")
        return [namespace, *cells] if self.namespaces else cells


def _text(cell: Any) -> str:
    if cell is None:
        return "<none>"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return printable(str(cell))


def is_empty(tables: Sequence[Obj]) -> bool:
    """Return True if no table has a row."""
    return not any(table.get("rows") for table in tables)
