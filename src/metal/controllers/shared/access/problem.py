"""Why a BMC cannot be contacted as declared."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A CamelCase reason, and a sentence with the correction."""

    reason: str
    message: str
