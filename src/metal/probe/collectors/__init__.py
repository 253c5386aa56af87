"""The parts of an inventory report, one module each; the keys are those of the registry's API."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
"""One JSON object of a report."""
