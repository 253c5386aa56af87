"""Serial numbers that identify nothing: firmware and emulators report them for any machine or drive.

One list for systems and drives. What only one site knows is its option `identity.nonUniqueDrives`.
"""

import re

_TEXTS = frozenset(
    (
        "tobefilledbyoem", "tobefilledbyomf", "filledbyoem", "oem", "default", "defaultstring", "invalid",
        "systemserialnumber", "sysserialnumber", "chassisserialnumber", "baseboardserialnumber", "serialnumber",
        "serial", "noserial", "notspecified", "notapplicable", "notavailable", "notset", "notpresent", "unspecified",
        "unknown", "undefined", "none", "null", "nil", "na", "empty", "drive", "disk", "0123456789", "123456789",
        "1234567890", "012345678", "01234567890", "12345678", "1234567", "0123456789abcdef", "123456789012",
        "xxxxxxxxxx",
    )
)  # fmt: skip
"""In lower case, letters and digits only."""
_EMULATED = re.compile(r"qm0000\d|drive[a-z]+\d+|vb0{16}")
"""Serial numbers that emulators give the first drives of every machine, in the same form."""
_REST = re.compile(r"[^a-z0-9]+")


def plain(text: str) -> str:
    """The text in lower case, letters and digits only."""
    return _REST.sub("", text.casefold())


def is_placeholder(text: str) -> bool:
    """True for a serial number that identifies nothing: empty, one repeated character, or in the list."""
    found = plain(text)
    return len(set(found)) < 2 or found in _TEXTS or _EMULATED.fullmatch(found) is not None
