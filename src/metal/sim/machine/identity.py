"""The identity of a simulated machine, derived from the fleet's seed and the machine's number.

Addresses, all loopback, so that a fleet needs no setup on Linux and nothing leaves the host:

- the BMC of machine n has 127.16.0.1 plus n, its operating system 127.32.0.1 plus n, both counted in steps that skip
  .0 and .251 to .255: 250 machines for each third octet, 62,500 in all;
- MAC addresses are locally administered: BMCs begin with 02:b3:c0, hosts with 02:05:e0, the rest is the number.

`offset` shifts the numbers, so that several fleets live side by side.
"""

import uuid
from dataclasses import dataclass, replace

BMC_OUI = "02:b3:c0"
"""First three bytes of every simulated BMC's MAC address."""
HOST_OUI = "02:05:e0"
"""First three bytes of every simulated host's MAC address."""
MOST = 62_500
"""Machines that the addressing scheme has room for."""
_PER_NET = 250
_NAMESPACE = uuid.UUID("9f0d8b1e-6a58-5d0e-9c1c-2f8f7f1f5c11")


@dataclass(frozen=True)
class Identity:
    """Identifiers and addresses of one machine. UUID in lower case, MACs in lower case with colons."""

    number: int
    name: str
    uuid: str
    serial: str
    bmc_uuid: str
    bmc_mac: str
    bmc_ip: str
    host_macs: tuple[str, ...]
    """The first one boots."""
    host_ip: str


@dataclass(frozen=True)
class Board:
    """Identifiers and address of one BMC. A machine may be shown by several."""

    uuid: str
    mac: str
    ip: str


def swapped(text: str) -> str:
    """The UUID with the bytes of its first three groups reversed, as firmware before SMBIOS 2.6 reports it."""
    return str(uuid.UUID(bytes_le=uuid.UUID(text).bytes))


def with_new_mainboard(old: Identity, *, keep_serial: bool) -> Identity:
    """The identity of the same machine with another mainboard: another UUID, and another serial number unless kept."""
    serial = old.serial if keep_serial else f"{old.serial}R"
    return replace(old, uuid=str(uuid.uuid5(_NAMESPACE, f"{old.uuid}/mainboard")), serial=serial)


def board(number: int, seed: int = 0) -> Board:
    """The BMC of machine `number`, or one more BMC where no machine has this number. Raises ValueError beyond MOST."""
    found = identity(number, seed)
    return Board(found.bmc_uuid, found.bmc_mac, found.bmc_ip)


def identity(number: int, seed: int = 0) -> Identity:
    """Machine `number` of the fleet with this seed. Raises ValueError beyond MOST."""
    if not 0 <= number < MOST:
        raise ValueError(f"machine number {number} has no address: offset and size of the fleet must stay below {MOST}")
    name = f"sim-{number:05d}"
    return Identity(
        number=number,
        name=name,
        uuid=str(uuid.uuid5(_NAMESPACE, f"{seed}/system/{number}")),
        serial=f"SIM{seed % 1000:03d}{number:06d}",
        bmc_uuid=str(uuid.uuid5(_NAMESPACE, f"{seed}/manager/{number}")),
        bmc_mac=_mac(BMC_OUI, number),
        bmc_ip=_ip(16, number),
        host_macs=(_mac(HOST_OUI, 2 * number), _mac(HOST_OUI, 2 * number + 1)),
        host_ip=_ip(32, number),
    )


def _mac(oui: str, number: int) -> str:
    return f"{oui}:{number >> 16 & 0xFF:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


def _ip(second: int, number: int) -> str:
    return f"127.{second}.{number // _PER_NET}.{number % _PER_NET + 1}"
