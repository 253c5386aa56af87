"""What a report may add to the network interfaces that a BMC shows."""

from metal.api.network import NetworkInterface
from metal.machine import interfaces

A, B, C = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:0c"


def nic(mac: str, name: str = "NIC", source: str = "", **more: object) -> NetworkInterface:
    return NetworkInterface(name=name, mac_address=mac, source=source, **more)  # type: ignore[arg-type]  # fields of it


def sources(found: tuple[NetworkInterface, ...]) -> list[tuple[str, str, str]]:
    return [(one.name, one.mac_address, one.source) for one in found]


def test_the_bmc_says_which_interfaces_identify_the_machine() -> None:
    """Known details stay, earlier reported ones are known in band, and what only the BMC had shown is gone."""
    known = (nic(A, "eth0", ips=("10.0.0.1",)), nic(B, "eth1"), nic(C, "old", "OutOfBand"))
    found = interfaces.shown_by_bmc((nic(A, "NIC.1"),), known)

    assert sources(found) == [("eth0", A, "OutOfBand"), ("eth1", B, "InBand")]
    assert found[0].ips == ("10.0.0.1",)
    assert interfaces.out_of_band(found) == {A}


def test_where_the_bmc_shows_none_the_report_supplies_them() -> None:
    """They are recorded as known in band, identify nothing, and a later report replaces them."""
    assert sources(interfaces.shown_by_bmc((), (nic(A, "eth0"), nic(B, "x", "OutOfBand")))) == [
        ("eth0", A, "InBand"), ("x", B, "OutOfBand"),
    ]  # fmt: skip
    first = interfaces.with_report((), (nic(A, "eth0"),))
    assert interfaces.foreign(first, (nic(B, "eth0"),)) == ()
    assert sources(interfaces.with_report(first, (nic(B, "eth0"),))) == [("eth0", B, "InBand")]
    assert interfaces.out_of_band(first) == frozenset()


def test_a_report_adds_details_and_no_interface() -> None:
    """Another MAC address is foreign unless it was accepted or belongs to a USB interface, and never identifies."""
    known = (nic(A, "NIC.1", "OutOfBand"), nic(B, "NIC.2", "OutOfBand"))
    reported = (nic(A, "eth0", ips=("10.0.0.1",)), nic(C, "eth9"))

    assert [one.mac_address for one in interfaces.foreign(known, reported)] == [C]
    assert interfaces.foreign(known, reported, {C}) == ()
    recorded = interfaces.with_report(known, reported)
    assert sources(recorded) == [("eth0", A, "OutOfBand"), ("NIC.2", B, "OutOfBand"), ("eth9", C, "InBand")]
    assert interfaces.foreign(recorded, reported) == ()
    assert interfaces.out_of_band(recorded) == {A, B}
    assert interfaces.listed(recorded[:1]) == f"eth0 {A}"
    assert interfaces.listed(()) == "none"
