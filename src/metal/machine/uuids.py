"""SMBIOS UUIDs: the canonical spelling, and the one with swapped bytes that some firmware reports."""

import re
import uuid

_FORM = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def canonical(text: str) -> str:
    """The UUID in lower case. Raises ValueError unless it has the usual form with four hyphens."""
    if not _FORM.fullmatch(text):
        raise ValueError("not a UUID: 32 hexadecimal digits in groups of 8-4-4-4-12 are expected")
    return text.lower()


def spellings(text: str) -> tuple[str, ...]:
    """The canonical form, then the one whose first three groups have their bytes reversed (SMBIOS before 2.6)."""
    plain = canonical(text)
    swapped = str(uuid.UUID(bytes_le=uuid.UUID(plain).bytes))
    return (plain,) if swapped == plain else (plain, swapped)
