"""Which Servers describe the same physical machine.

A machine is identified by what its BMC shows of it. `identity_of` makes typed keys of that, in canonical forms:

- the UUID of the system. Firmware before SMBIOS 2.6 reports its first three groups with reversed bytes, so both byte
  orders and any case are one key. UUIDs that whole series of boards have (nil, all F, defaults of firmware vendors)
  identify no machine and give no key;
- manufacturer and serial number of the system. Placeholders such as "To be filled by O.E.M." give no key;
- an identifier that an administrator gave (annotation `machine-id`), for machines that have neither;
- serial numbers and WWNs of drives (`drive_identity`), and the MAC addresses that the BMC shows, as far as they are
  globally unique. Parts move between machines, so they never make two machines one; they only raise the question
  whether a mainboard was replaced.

`compare` judges two identities: SAME, DIFFERENT or AMBIGUOUS, each with the reason.

| UUID | serial number | further | verdict |
|---|---|---|---|
| equal | equal, or one is unknown | | SAME |
| equal | different | | AMBIGUOUS, exclusive: a machine names itself by its UUID when it boots |
| one has none | equal | | SAME |
| different | equal | BMCs show both at this time | DIFFERENT: nodes of one chassis |
| different | equal | | AMBIGUOUS: the mainboard may have been replaced |
| different | different | parts in common, and not both shown | AMBIGUOUS: the mainboard may have been replaced |
| different | different | | DIFFERENT |
| none | one is unknown | no identifier given | nothing: such a machine cannot be told from another |

Of machines that are the same, or ambiguous and exclusive, one Server acts (`charge`). The other ambiguity only holds up
a Server that is new. Pure functions; no API.
"""

import re
import uuid as uuids
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

from metal.api.kinds import Kinds
from metal.api.names import MACHINE_ID
from metal.api.network import MACSource, NetworkInterface
from metal.api.sanitization import KnownDrive
from metal.api.server import Server, ServerStatus, State
from metal.api.storage import Storage, StorageDrive
from metal.kube.meta.conditions import find
from metal.machine import drive_identity
from metal.machine.placeholders import is_placeholder, plain
from metal.machine.report import PROBED
from metal.machine.uuids import spellings

_SHARED_UUIDS = frozenset(
    str(uuids.UUID(text))
    for text in (
        "00000000-0000-0000-0000-000000000000",  # SMBIOS (DSP0134) 7.2.1: not present
        "ffffffff-ffff-ffff-ffff-ffffffffffff",  # SMBIOS (DSP0134) 7.2.1: not set
        "03000200-0400-0500-0006-000700080009",  # AMI Aptio, default
        "03020100-0504-0706-0809-0a0b0c0d0e0f",  # the bytes 00 to 0f
        "04030201-0605-0807-090a-0b0c0d0e0f10",  # the bytes 01 to 10
        "12345678-1234-1234-1234-123456789012",
        "12345678-1234-5678-90ab-cddeefaabbcc",
        "12345678-1234-5678-1234-567812345678",
        "8a95d198-7f46-11e5-bf8b-08002704d48e",  # SolidRun LX2160A before edk2-platforms of 2021
        "deadbeef-dead-beef-dead-beefdeadbeef",
    )
)
"""UUIDs of whole series of boards, beside those of which all bytes are equal. Each stands for both byte orders."""

_COMPANIES = {"hewlettpackardenterprise": "hpe", "hewlettpackard": "hpe", "hp": "hpe", "emc": "dell"}
"""Other names of manufacturers, in lower case without the words of `_LEGAL`."""
_LEGAL = re.compile(
    r"[\s,.]+(inc|incorporated|corp|corporation|co|ltd|limited|gmbh|ag|llc|company|computer)\b\.?", re.I
)
_NOT_WATCHED = (State.PARKED, State.MAINTENANCE)
"""States in which the BMC is not read regularly, so that the conditions do not tell what it shows."""


def canonical_uuid(text: str) -> str:
    """One form for both byte orders, in lower case; empty for text that is no UUID or one that identifies nothing."""
    return _canonical(text.strip().lower())


@lru_cache(maxsize=1 << 16)
def _canonical(text: str) -> str:
    try:
        forms = spellings(text)
    except ValueError:
        return ""
    if len(set(uuids.UUID(text).bytes)) == 1 or not _SHARED_UUIDS.isdisjoint(forms):
        return ""
    return min(forms)


def is_shared(text: str) -> bool:
    """True for a UUID that many machines have: nil, all F, or a default of a firmware vendor."""
    try:
        spellings(text.strip().lower())
    except ValueError:
        return False
    return not canonical_uuid(text)


@lru_cache(maxsize=1 << 16)
def serial_key(serial: str) -> str:
    """A serial number in lower case, letters and digits only; empty for a placeholder."""
    return "" if is_placeholder(serial) else plain(serial)


@lru_cache(maxsize=1 << 12)
def _manufacturer(name: str) -> str:
    short = plain(_LEGAL.sub("", f" {name.casefold()}"))
    return _COMPANIES.get(short, "" if is_placeholder(short) else short)


def system_serial(manufacturer: str, serial: str) -> str:
    """The key of manufacturer and serial number of a system; empty for a placeholder."""
    key = serial_key(serial)
    return f"{_manufacturer(manufacturer)}/{key}" if key else ""


class Relation(StrEnum):
    """How two identities relate."""

    SAME = "Same"
    DIFFERENT = "Different"
    AMBIGUOUS = "Ambiguous"


@dataclass(frozen=True)
class Comparison:
    """The verdict on two identities, and why."""

    relation: Relation
    reason: str
    exclusive: bool = False
    """True when only one of both may act: they are the same, or cannot be told apart by a machine that boots."""


@dataclass(frozen=True)
class Identity:
    """What identifies a machine, in canonical forms; empty where it is unknown or identifies nothing."""

    uuid: str = ""
    serial: str = ""
    """Manufacturer and serial number."""
    declared: str = ""
    """Identifier that an administrator gave."""
    parts: frozenset[str] = field(default=frozenset())
    """Keys of drives (`drive-serial:…`, `drive-wwn:…`) and globally unique MAC addresses (`mac:…`)."""
    shown: bool = False
    """True when the BMC shows this machine, as far as the last pass knows."""

    @property
    def key(self) -> str:
        """The key that identifies the machine; empty when nothing does."""
        if self.uuid:
            return f"uuid:{self.uuid}"
        if self.serial:
            return f"serial:{self.serial}"
        return f"declared:{self.declared}" if self.declared else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys under which the machine is found; sharing one is a reason to compare."""
        systems = (f"uuid:{self.uuid}" if self.uuid else "", f"serial:{self.serial}" if self.serial else "")
        declared = f"declared:{self.declared}" if self.declared else ""
        return (*filter(None, (*systems, declared)), *sorted(self.parts))


def identity_of(
    server: Server, kinds: Kinds, status: ServerStatus | None = None, non_unique: frozenset[str] = frozenset()
) -> Identity:
    """The identity of a Server's machine; `status` is a pending one, `non_unique` see `drive_identity`."""
    status = server.status if status is None else status
    return Identity(
        uuid=canonical_uuid(server.uuid),
        serial=system_serial(status.manufacturer, status.serial_number),
        declared=server.metadata.annotations.get(kinds.key(MACHINE_ID), "").strip(),
        parts=_parts(status.storages, status.drives, status.network_interfaces, non_unique),
        shown=_is_shown(status),
    )


def identity_of_system(uuid: str, manufacturer: str, serial: str) -> Identity:
    """The identity of a system as its BMC shows it at this time."""
    return Identity(uuid=canonical_uuid(uuid), serial=system_serial(manufacturer, serial), shown=True)


def compare(one: Identity, other: Identity) -> Comparison:
    """Whether both are the same machine. The table in the module's docstring has the rules."""
    same_serial = bool(one.serial) and one.serial == other.serial
    if one.uuid and one.uuid == other.uuid:
        return _same_uuid(one, other)
    if not (one.uuid and other.uuid):
        return _without_uuid(one, other, same_serial=same_serial)
    if one.shown and other.shown:
        return Comparison(Relation.DIFFERENT, "the UUIDs differ, and BMCs show both machines at the same time")
    if same_serial:
        return Comparison(
            Relation.AMBIGUOUS, f"the UUIDs differ, but manufacturer and serial number are the same ({one.serial})"
        )
    if common := sorted(one.parts & other.parts):
        return Comparison(Relation.AMBIGUOUS, f"the UUIDs differ, but parts are the same ({_listed(common)})")
    return Comparison(Relation.DIFFERENT, "the UUIDs differ")


def _same_uuid(one: Identity, other: Identity) -> Comparison:
    if one.serial and other.serial and one.serial != other.serial:
        text = (
            f"the UUID {one.uuid} is the same, but the serial numbers differ ({one.serial} and {other.serial}); the "
            "UUID decides, because a machine names itself by it when it boots"
        )
        return Comparison(Relation.AMBIGUOUS, text, exclusive=True)
    return Comparison(Relation.SAME, f"the UUID {one.uuid} is the same", exclusive=True)


def _without_uuid(one: Identity, other: Identity, *, same_serial: bool) -> Comparison:
    if same_serial:
        return Comparison(Relation.SAME, f"manufacturer and serial number are the same ({one.serial})", exclusive=True)
    if one.declared and one.declared == other.declared:
        return Comparison(Relation.SAME, f"the machine-id {one.declared} is the same", exclusive=True)
    if not one.key or not other.key:
        return Comparison(Relation.AMBIGUOUS, "one of them has no UUID and no serial number of its own")
    return Comparison(Relation.DIFFERENT, "UUIDs or serial numbers differ")


def lease_name(key: str) -> str:
    """Name of the Lease of a key, unique for each key and valid for each content."""
    kind, _, text = key.partition(":")
    return f"system-{text}" if kind == "uuid" else f"system-{kind}-{sha256(text.encode()).hexdigest()[:32]}"


@lru_cache(maxsize=1 << 14)
def _parts(
    storages: tuple[Storage, ...],
    known: tuple[KnownDrive, ...],
    interfaces: tuple[NetworkInterface, ...],
    non_unique: frozenset[str],
) -> frozenset[str]:
    """Cached, because indexes ask for every version of a Server, and its parts seldom change.

    Only parts that the BMC shows: it names the slot of a drive. A report could name those of another machine.
    """
    listed: list[KnownDrive | StorageDrive] = [
        drive for storage in storages if storage.name != PROBED for drive in storage.drives
    ]
    drives = [drive_identity.with_unique_serial(d, non_unique) for d in (*listed, *(d for d in known if d.slot))]
    macs = (nic.mac_address.lower() for nic in interfaces if nic.source == MACSource.OUT_OF_BAND)
    keys = (f"drive-{key}" for drive in drives for key in drive_identity.keys(drive))
    return frozenset((*keys, *(f"mac:{mac}" for mac in macs if _is_global(mac))))


def _is_global(mac: str) -> bool:
    """False for locally administered addresses: virtual interfaces of BMCs have the same one in every machine."""
    try:
        return not int(mac[:2], 16) & 0b11 and len(set(mac)) > 2  # not all digits are equal
    except ValueError:
        return False


def _is_shown(status: ServerStatus) -> bool:
    reachable = find(status.conditions, "BMCReachable")
    present = find(status.conditions, "SystemPresent")
    answers = reachable is not None and reachable.status == "True"
    return answers and (present is None or present.status != "False") and status.state not in _NOT_WATCHED


def _listed(parts: list[str]) -> str:
    words = [part.replace(":", " ", 1) for part in parts[:3]]
    return ", ".join(words) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
