"""Network interfaces of a machine: what its BMC shows, and what reports of the probe may add to that.

A report arrives from the boot network, where another machine can send one in this machine's name. So only the BMC says
which MAC addresses identify a machine: a report adds names, addresses and neighbours to these interfaces, and no
interface that the BMC does not show (`foreign`), except the BMC's own USB interface. Where the BMC shows none, those of
the report are recorded, and identify nothing. Each interface records where its MAC address comes from.
"""

from collections.abc import Collection, Iterable

import msgspec

from metal.api.network import MACSource, NetworkInterface

Interfaces = tuple[NetworkInterface, ...]


def shown_by_bmc(shown: Interfaces, known: Interfaces) -> Interfaces:
    """The interfaces after the BMC was read; `known` keeps its details. All of `known` when the BMC shows none.

    Interfaces of earlier reports that the BMC does not show stay, as known in band; those that only the BMC had shown
    are gone with the hardware.
    """
    if not shown:
        return tuple(nic if nic.source else _from(MACSource.IN_BAND, nic) for nic in known)
    details = {nic.mac_address: nic for nic in known}
    macs = {nic.mac_address for nic in shown}
    first = (_from(MACSource.OUT_OF_BAND, details.get(nic.mac_address, nic)) for nic in shown)
    others = (nic for nic in known if nic.mac_address not in macs and nic.source != MACSource.OUT_OF_BAND)
    return (*first, *(_from(MACSource.IN_BAND, nic) for nic in others))


def foreign(known: Interfaces, reported: Interfaces, ignored: Collection[str] = ()) -> Interfaces:
    """The reported interfaces that neither the BMC shows nor an administrator accepted; none if the BMC shows none."""
    if not _macs(known, MACSource.OUT_OF_BAND):
        return ()
    expected = {nic.mac_address for nic in known} | set(ignored)
    return tuple(nic for nic in reported if nic.mac_address not in expected)


def with_report(known: Interfaces, reported: Interfaces) -> Interfaces:
    """The interfaces after a report: those that the BMC shows with the report's details, then the others in band."""
    shown = _macs(known, MACSource.OUT_OF_BAND)
    details = {nic.mac_address: nic for nic in reported}
    first = (details.get(nic.mac_address, nic) for nic in known if nic.mac_address in shown)
    others = (nic for nic in reported if nic.mac_address not in shown)
    return (
        *(_from(MACSource.OUT_OF_BAND, nic) for nic in first),
        *(_from(MACSource.IN_BAND, nic) for nic in others),
    )


def out_of_band(interfaces: Interfaces) -> frozenset[str]:
    """The MAC addresses that the BMC shows. Only their leases identify the machine."""
    return _macs(interfaces, MACSource.OUT_OF_BAND) - {""}


def listed(interfaces: Iterable[NetworkInterface]) -> str:
    """Names and MAC addresses for a message."""
    return ", ".join(f"{nic.name} {nic.mac_address}" for nic in interfaces) or "none"


def _macs(interfaces: Interfaces, source: MACSource) -> frozenset[str]:
    return frozenset(nic.mac_address for nic in interfaces if nic.source == source)


def _from(source: MACSource, interface: NetworkInterface) -> NetworkInterface:
    return msgspec.structs.replace(interface, source=source.value)
