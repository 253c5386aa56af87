"""Converts a report of metalprobe, which is untrusted, to fields of a Server. No function raises on its content."""

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_interface
from typing import Any

from metal.api.network import LLDPNeighbor, NetworkInterface
from metal.api.sanitization import KnownDrive
from metal.api.storage import Storage, StorageDrive
from metal.machine import drive_identity
from metal.machine.quantity import quantity

_SEPARATORS = re.compile(r"[:.-]")
_HEX = re.compile(r"[0-9a-f]{12}")
_MOST = 256
"""Most interfaces and drives that are kept, and most addresses or neighbours of one interface."""
_LONGEST = 256
"""Most characters of a text that are kept."""
PROBED = "operating-system"
"""Name of the storage controller that holds the drives that the probe's operating system sees."""
_LARGEST = 1 << 63
"""Sizes from here on, in bytes, exceed the range of a quantity."""


def network_interfaces(report: Mapping[str, object]) -> tuple[NetworkInterface, ...]:
    """The interfaces that have a MAC address, with their LLDP neighbours; invalid addresses are omitted."""
    neighbors = _neighbors(report)
    found: dict[str, NetworkInterface] = {}
    for entry in _objects(report.get("networkInterfaces")):
        name, mac = _text(entry.get("name")), normal_mac(entry.get("macAddress"))
        if name and mac and name not in found:
            found[name] = NetworkInterface(
                name=name,
                mac_address=mac,
                ips=_addresses(entry),
                carrier_status=_carrier(entry.get("carrierStatus")),
                neighbors=neighbors.get(name, ()),
            )
    return tuple(found.values())


def usb_macs(report: Mapping[str, object]) -> frozenset[str]:
    """The MAC addresses of interfaces on a USB bus: mostly the BMC's virtual interface, which no BMC lists."""
    found = (entry for entry in _objects(report.get("networkInterfaces")) if entry.get("bus") == "usb")
    return frozenset(mac for entry in found if (mac := normal_mac(entry.get("macAddress"))))


def storages(report: Mapping[str, object]) -> tuple[Storage, ...]:
    """The drives that the probe's operating system sees, as one storage controller; empty without drives.

    Removable media and devices without a size (an empty card reader) are omitted.
    """
    drives = tuple(_drive(name, size, entry) for name, (size, entry) in _disks(report).items())
    return (Storage(name=PROBED, state="Enabled", drives=drives),) if drives else ()


def known_drives(report: Mapping[str, object], known: tuple[Storage, ...]) -> tuple[KnownDrive, ...]:
    """All drives of the machine: those that the probe's system sees, and those that only the BMC reports (`known`)."""
    reported = [d for storage in known if storage.name != PROBED for d in storage.drives]
    slots = {same_serial(d.serial_number): d.name for d in reported if d.serial_number}
    seen = tuple(
        KnownDrive(
            name=name.removeprefix("/dev/"),
            serial_number=_text(entry.get("serial")).strip(),
            wwn=_text(entry.get("wwid")).strip(),
            size=size,
            slot=slots.get(same_serial(_text(entry.get("serial"))), ""),
            model=_text(entry.get("model")).strip(),
        )
        for name, (size, entry) in _disks(report).items()
    )
    hidden = (_listed(d) for d in reported if d.serial_number and d.state != "Absent")
    return with_listed(seen, hidden)


def with_listed(known: tuple[KnownDrive, ...], listed: Iterable[KnownDrive]) -> tuple[KnownDrive, ...]:
    """The known drives of a server, and those of a BMC's list that are none of them.

    A known drive that is not listed stays: some BMCs list no drive while the machine is off. A BMC may spell a serial
    number otherwise; within one server a placeholder is a serial number as any other.
    """
    serials = {same_serial(drive.serial_number) for drive in known}
    new = (one for one in listed if same_serial(one.serial_number) not in serials)
    return (*known, *(one for one in new if drive_identity.find(one, known) is None))


def drives_in(known: tuple[Storage, ...]) -> tuple[KnownDrive, ...]:
    """The drives in status.storages with a serial number, for Servers that have no status.drives yet."""
    return tuple(
        _listed(d, probed=storage.name == PROBED)
        for storage in known
        for d in storage.drives
        if d.serial_number and d.state != "Absent"
    )


def _listed(drive: StorageDrive, *, probed: bool = False) -> KnownDrive:
    return KnownDrive(
        serial_number=drive.serial_number.strip(),
        wwn=drive.wwn,
        name=drive.name if probed else "",
        slot="" if probed else drive.name,
        model=drive.model.strip(),
    )


def same_serial(serial: str) -> str:
    """The serial number for comparisons: BMCs and kernels differ in blanks and case."""
    return "".join(serial.split()).casefold()


def _disks(report: Mapping[str, object]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """Size and entry of each drive by its name."""
    found: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for entry in _objects(report.get("storage")):
        name, size = _text(entry.get("name")) or _text(entry.get("path")), _size(entry.get("sizeBytes"))
        if name and size and entry.get("removable") is not True:
            found.setdefault(name, (size, entry))
    return found


def memory(report: Mapping[str, object]) -> str:
    """The sum of all memory modules as a Kubernetes quantity; empty when none is reported."""
    total = sum(_size(entry.get("size")) for entry in _objects(report.get("memory")))
    return quantity(total) if total < _LARGEST else ""


def normal_mac(value: object) -> str:
    """A MAC address in lower case with colons; empty if it is invalid or all zeros (loopback)."""
    plain = _SEPARATORS.sub("", value).lower() if isinstance(value, str) else ""
    if not _HEX.fullmatch(plain) or not plain.strip("0"):
        return ""
    return ":".join(plain[place : place + 2] for place in range(0, 12, 2))


def _drive(name: str, size: int, entry: Mapping[str, Any]) -> StorageDrive:
    media = {True: "HDD", False: "SSD"}
    rotational = entry.get("rotational")
    return StorageDrive(
        name=name,
        media_type=media[rotational] if isinstance(rotational, bool) else "",
        type="NVMe" if name.removeprefix("/dev/").startswith("nvme") else "",
        capacity=quantity(size),
        vendor=_text(entry.get("vendor")),
        model=_text(entry.get("model")),
        serial_number=_text(entry.get("serial")),
        wwn=_text(entry.get("wwid")).strip(),
        state="Enabled",
    )


def _size(value: object) -> int:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST
    return value if sound and isinstance(value, int) else 0


def _neighbors(report: Mapping[str, object]) -> dict[str, tuple[LLDPNeighbor, ...]]:
    """Neighbours by interface name; several entries of one interface are merged."""
    found: dict[str, tuple[LLDPNeighbor, ...]] = {}
    for entry in _objects(report.get("lldp")):
        name = _text(entry.get("name"))
        seen = found.get(name, ())
        fresh = (_neighbor(neighbor) for neighbor in _objects(entry.get("neighbors")))
        found[name] = tuple(dict.fromkeys((*seen, *fresh)))[:_MOST]
    return found


def _neighbor(entry: Mapping[str, Any]) -> LLDPNeighbor:
    chassis = entry.get("chassisId")
    return LLDPNeighbor(
        mac_address=normal_mac(chassis) or _text(chassis),
        port_id=_text(entry.get("portId")),
        port_description=_text(entry.get("portDescription")),
        system_name=_text(entry.get("systemName")),
        system_description=_text(entry.get("systemDescription")),
    )


def _addresses(entry: Mapping[str, Any]) -> tuple[str, ...]:
    listed = entry.get("ipAddresses")
    values = [*(listed if isinstance(listed, list | tuple) else ()), entry.get("ipAddress")]
    return tuple(dict.fromkeys(address for one in values if (address := _address(one))))[:_MOST]


def _address(value: object) -> str:
    if not isinstance(value, str):
        return ""
    bare, slash, length = value.partition("/")
    try:
        address = ip_interface(bare.partition("%")[0] + slash + length).ip
    except ValueError:
        return ""
    return "" if address.is_loopback or address.is_unspecified or address.is_multicast else str(address)


def _carrier(value: object) -> str:
    return value if value in ("up", "down") and isinstance(value, str) else ""


def _objects(value: object) -> list[Mapping[str, Any]]:
    entries: Sequence[object] = value if isinstance(value, list | tuple) else ()
    return [entry for entry in entries[:_MOST] if isinstance(entry, Mapping)]


def _text(value: object) -> str:
    """The text without line breaks and escape sequences, since kubectl describe prints it to a terminal unchanged."""
    text = value[:_LONGEST] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text)
