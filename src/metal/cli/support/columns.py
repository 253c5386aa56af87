"""Formats plain tables: columns as wide as their longest cell, without escape sequences from the content."""

from collections.abc import Iterable, Sequence

from metal.cli.support.table import printable

_GAP = "   "


def widths(lines: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of each column."""
    found: list[int] = []
    for line in lines:
        found += [0] * (len(line) - len(found))
        for at, cell in enumerate(line):
            found[at] = max(found[at], len(cell))
    return found


def line(cells: Sequence[str], wide: Sequence[int]) -> str:
    """Return one line of a table; a cell that is wider than its column is not cut."""
    padded = [cell.ljust(width) for cell, width in zip(cells, wide, strict=False)]
    return _GAP.join(padded).rstrip()


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a header and its rows as aligned lines."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    wide = widths(cells)
    return [line(row, wide) for row in cells]
