"""Finds the way out in a message of the API: "no probe image is configured: set probeImage" names one."""

import re

_CLAUSE = re.compile(r"[;.]\s+")
_PART = re.compile(r":\s+")
_INSTRUCTION = re.compile(
    r"(accept|add|annotate|apply|change|check|choose|clear|correct|create|decrease|delete|enable|find|free|give|grant"
    r"|increase|install|kubectl|label|let|look|make|metalctl|move|name|raise|release|remove|rename|repair|replace|report"
    r"|restart|restore|retry|set|shorten|to|unpark|use|wait|write)\b"
    r"(?! (call|error|failed|is|of|or service|timed|timeout|was)\b)",
    re.IGNORECASE,
)
"""Begins with an imperative, or with "to" as in "to continue: kubectl annotate …". An error of the system such as "Name
or service not known" is no instruction."""


def remedies(message: str) -> list[str]:
    """Return the instructions in a message, in their order; empty when it has none."""
    found = (_instruction(clause) for clause in _CLAUSE.split(message.strip().rstrip(".")))
    return list(dict.fromkeys(one for one in found if one))


def _instruction(clause: str) -> str:
    """Return the clause from the first part that is an instruction; empty without one."""
    parts = _PART.split(clause)
    for at, part in enumerate(parts):
        if _INSTRUCTION.match(part):
            return ": ".join(parts[at:])
    return ""
