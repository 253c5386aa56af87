"""One file for each thing that a report tells; the keys are those of the registry's API."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
"""One JSON object of a report."""
