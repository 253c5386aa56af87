"""Which drive is which: the identity of a drive, whatever server it is in and whatever reports it. Pure functions.

The kernel and a BMC report one drive in different spellings: blanks, case, `naa.`, `eui.`, `0x`, colons. `serial` and
`wwn` reduce both to one form; both return the empty string for a value that identifies nothing: a placeholder of
firmware or of an emulator, a single repeated character, or a name that the kernel made of model and serial number.

Serial numbers are unique only within a manufacturer, world-wide names only where the manufacturer set one. So two
drives are `same` when their serial numbers agree and their models can be one model, or when their world-wide names
agree and their serial numbers do not contradict. `keys` are what an index holds: two drives that are `same` share at
least one key, and sharing one is not sufficient.
"""

import re
from collections.abc import Iterable
from typing import Protocol

_PLACEHOLDERS = frozenset(
    (
        "unknown", "none", "null", "notavailable", "notapplicable", "notspecified", "notpresent", "empty", "default",
        "defaultstring", "serial", "serialnumber", "systemserialnumber", "tobefilledbyo.e.m.", "tobefilledbyoem",
        "drive", "disk", "0123456789", "1234567890", "123456789", "12345678", "0123456789abcdef",
    )
)  # fmt: skip
"""Serial numbers that firmware reports for any drive, as `serial` compares them."""
_EMULATED = re.compile(r"qm0000\d|drive-[a-z]+\d(-\d)*|vb0{8}-0{8}")
"""Serial numbers that emulators give the first drives of every machine."""
_PREFIX = re.compile(r"^(wwn-|nvme-|scsi-3(?=[0-9a-f]{16}))?((naa|eui|nguid|uuid|wwn)[.:-]?)?(0x)?")
_SEPARATORS = re.compile(r"[\s:._-]")
_WORLD_WIDE = re.compile(r"[0-9a-f]{16}([0-9a-f]{16})?")
_TOKEN = re.compile(r"[a-z0-9]+")
_COMMON = frozenset(
    ("disk", "drive", "harddisk", "solid", "state", "nvme", "sata", "scsi", "virtual", "storage", "device")
)
"""Words of models that many manufacturers use."""
_SHORTEST = 4
"""Characters of a serial number, or of a word of a model, that identify something."""
_SHORTENED = 8
"""Characters from which on the beginning of a serial number is that serial number: some BMCs shorten it."""


class Drive(Protocol):
    """What identifies a drive."""

    @property
    def serial_number(self) -> str:
        """Serial number, as reported."""

    @property
    def wwn(self) -> str:
        """World Wide Name, EUI-64 or NGUID, as reported."""

    @property
    def model(self) -> str:
        """Model, as reported; may contain the manufacturer."""


def serial(text: str) -> str:
    """The serial number without blanks, in lower case; empty if it identifies nothing."""
    plain = "".join(text.split()).casefold()
    if len(plain) < _SHORTEST or len(set(plain)) < 2 or plain in _PLACEHOLDERS or _EMULATED.fullmatch(plain):
        return ""
    return plain


def wwn(text: str) -> str:
    """The 16 or 32 hexadecimal digits of a WWN, EUI-64, NGUID or UUID; empty if there are none.

    The kernel names a drive without one after its model and serial number (`t10.`, `nvme.`), which is no identity of
    its own.
    """
    plain = _SEPARATORS.sub("", _PREFIX.sub("", text.strip().casefold(), count=1))
    return plain if _WORLD_WIDE.fullmatch(plain) and len(set(plain)) > 2 else ""


def keys(drive: Drive) -> tuple[str, ...]:
    """What the drive is indexed by; empty for a drive that nothing identifies."""
    by_serial, by_wwn = serial(drive.serial_number), wwn(drive.wwn)
    return tuple(key for key in (by_serial and f"serial:{by_serial}", by_wwn and f"wwn:{by_wwn}") if key)


def same(one: Drive, other: Drive) -> bool:
    """True when both are reports of one drive. Drives that nothing identifies are never the same."""
    serials = serial(one.serial_number), serial(other.serial_number)
    names = wwn(one.wwn), wwn(other.wwn)
    named_alike = all(names) and names[0] == names[1]
    if not all(serials):
        return named_alike
    if serials[0] == serials[1]:
        return named_alike or _may_be_one_model(one.model, other.model)
    shorter, longer = sorted(serials, key=len)
    return named_alike and len(shorter) >= _SHORTENED and longer.startswith(shorter)


def find(drive: Drive, among: Iterable[Drive]) -> Drive | None:
    """The first of these that is this drive."""
    return next((one for one in among if same(drive, one)), None)


def _may_be_one_model(one: str, other: str) -> bool:
    """True unless both are known and have no word in common.

    A BMC reports `MZ7LH480HAHQ0D3` where the kernel, which has 16 characters for a model, reports `SAMSUNG MZ7LH480`.
    """
    words, others = _words(one), _words(other)
    if not words or not others:
        return True
    return any(a.startswith(b) or b.startswith(a) for a in words for b in others)


def _words(model: str) -> set[str]:
    found = _TOKEN.findall(model.casefold())
    return {word for word in found if len(word) >= _SHORTEST and word not in _COMMON}
