"""The parts of an inventory report, one module each; the keys are those of the registry's API.

Imports the rest of `metal.probe` only. Start reading in `network`; `report` in the package above calls them all.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
"""One JSON object of a report."""
