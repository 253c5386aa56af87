"""The identity of a drive: the same in every server, and in the reports of kernel and BMC. Pure functions.

The kernel and a BMC report one drive in different spellings: blanks, case, `naa.`, `eui.`, `0x`, colons. `serial` and
`wwn` reduce both to one form; both return the empty string for a value that identifies nothing: a placeholder of
firmware or of an emulator, a single repeated character, or a name that the kernel made of model and serial number.

Serial numbers are unique only within a manufacturer, world-wide names only where the manufacturer set one. So two
drives are `same` when their serial numbers agree and their models can be one model, or when their world-wide names
agree and their serial numbers do not contradict: one may be shortened, or have the bytes of each 16-bit word exchanged,
as some controllers report the serial number of an ATA drive. Without a world-wide name such serial numbers are two
drives, because serial numbers that differ in that way exist. `keys` are what an index holds: two drives that are
`same` share at least one key, and sharing one is not sufficient.

`non_unique` is a list of a site (option `identity.nonUniqueDrives`): the serial numbers and models of drives whose
serial number is not unique. Only the world-wide name identifies such a drive in another server.
"""

import re
from collections.abc import Container, Iterable
from itertools import chain
from typing import Protocol, TypeVar

import msgspec

from metal.api.sanitization import KnownDrive
from metal.api.storage import StorageDrive
from metal.machine.placeholders import is_placeholder, plain

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


D = TypeVar("D", bound=Drive)
R = TypeVar("R", bound=KnownDrive | StorageDrive)


def serial(text: str) -> str:
    """The serial number without blanks, in lower case; empty if it identifies nothing."""
    found = "".join(text.split()).casefold()
    return "" if len(found) < _SHORTEST or is_placeholder(found) else found


def wwn(text: str) -> str:
    """The 16 or 32 hexadecimal digits of a WWN, EUI-64, NGUID or UUID; empty if there are none.

    The kernel names a drive without one after its model and serial number (`t10.`, `nvme.`), which is no identity of
    its own.
    """
    digits = _SEPARATORS.sub("", _PREFIX.sub("", text.strip().casefold(), count=1))
    return digits if _WORLD_WIDE.fullmatch(digits) and len(set(digits)) > 2 else ""


def keys(drive: Drive) -> tuple[str, ...]:
    """What the drive is indexed by; empty for a drive that nothing identifies."""
    by_serial, by_wwn = serial(drive.serial_number), wwn(drive.wwn)
    return tuple(key for key in (by_serial and f"serial:{by_serial}", by_wwn and f"wwn:{by_wwn}") if key)


def same(one: Drive, other: Drive) -> bool:
    """True when both are reports of one drive. Drives that nothing identifies are never the same."""
    serials = serial(one.serial_number), serial(other.serial_number)
    named_alike = are_named_alike(one, other)
    if not all(serials):
        return named_alike
    if serials[0] == serials[1]:
        return named_alike or _may_be_one_model(one.model, other.model)
    return named_alike and (_is_shortened(*serials) or _is_swapped(one.serial_number, other.serial_number))


def with_unique_serial(drive: R, non_unique: Container[str]) -> R:
    """The drive, without its serial number when the list of a site has that or the model (`placeholders.plain`)."""
    if plain(drive.serial_number) not in non_unique and plain(drive.model) not in non_unique:
        return drive
    return msgspec.structs.replace(drive, serial_number="")


def are_named_alike(one: Drive, other: Drive) -> bool:
    """True when the world-wide names agree, so that no serial number is needed."""
    return bool(wwn(one.wwn)) and wwn(one.wwn) == wwn(other.wwn)


def _is_shortened(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= _SHORTENED and longer.startswith(shorter)


def _is_swapped(one: str, other: str) -> bool:
    """True when one is the other with the bytes of each 16-bit word exchanged, as ATA transfers them."""
    padded = one.strip() + " " * (len(one.strip()) % 2)
    exchanged = "".join(padded[place + 1] + padded[place] for place in range(0, len(padded), 2))
    return serial(exchanged) == serial(other)


def find(drive: Drive, among: Iterable[Drive]) -> Drive | None:
    """The first of these that is this drive."""
    return next((one for one in among if same(drive, one)), None)


def union(known: Iterable[D], *others: Iterable[D]) -> tuple[D, ...]:
    """The known drives, and each of the others once; a drive is described by its first report."""
    found = list(known)
    for drive in chain(*others):
        if find(drive, found) is None:
            found.append(drive)
    return tuple(found)


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
