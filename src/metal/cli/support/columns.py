"""Plain tables: columns as wide as what is in them, three spaces apart, without escape sequences of anybody's."""

from collections.abc import Iterable, Sequence

from metal.cli.support.table import printable

_GAP = "   "


def widths(lines: Iterable[Sequence[str]]) -> list[int]:
    """Width of each column."""
    found: list[int] = []
    for line in lines:
        found += [0] * (len(line) - len(found))
        for at, cell in enumerate(line):
            found[at] = max(found[at], len(cell))
    return found


def line(cells: Sequence[str], wide: Sequence[int]) -> str:
    """One line of a table whose columns are as wide as said, or wider where a cell needs it."""
    padded = [cell.ljust(width) for cell, width in zip(cells, wide, strict=False)]
    return _GAP.join(padded).rstrip()


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A header and its rows as lines for people."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    wide = widths(cells)
    return [line(row, wide) for row in cells]
