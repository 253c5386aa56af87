"""What single models do against the standard: rows of a table, not `if`s in flows."""

import re
from dataclasses import dataclass, fields

from metal.redfish.quirks.table import TABLE, Quirks, Row

__all__ = ["NONE", "TABLE", "Machine", "Quirks", "Row", "quirks_for"]

NONE = Quirks()


@dataclass(frozen=True)
class Machine:
    """What rows are matched against; empty where the BMC does not say."""

    manufacturer: str = ""
    model: str = ""
    firmware: str = ""


def quirks_for(machine: Machine, table: tuple[Row, ...] = TABLE) -> Quirks:
    """All quirks of the rows that match, together."""
    matching = [row.quirks for row in table if _matches(row, machine)]
    return Quirks(**{f.name: any(getattr(quirks, f.name) for quirks in matching) for f in fields(Quirks)})


def _matches(row: Row, machine: Machine) -> bool:
    return all(
        re.search(pattern, value, re.IGNORECASE) is not None
        for pattern, value in (
            (row.manufacturer, machine.manufacturer),
            (row.model, machine.model),
            (row.firmware, machine.firmware),
        )
        if pattern
    )
