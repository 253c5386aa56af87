"""The summary of a probe's report."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.network import LLDPNeighbor
from metal.api.sanitization import KnownDrive
from metal.api.storage import Storage, StorageDrive
from metal.machine.report import known_drives, memory, network_interfaces, normal_mac, storages, with_listed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {"name": st.just("eth0") | JSON, "macAddress": st.just("02:00:00:00:00:01") | JSON},
    optional={"ipAddresses": JSON, "ipAddress": JSON, "carrierStatus": JSON, "neighbors": JSON},
)


DISK = st.fixed_dictionaries(
    {"name": st.just("sda") | JSON, "sizeBytes": st.just(1 << 30) | JSON},
    optional={"path": JSON, "rotational": JSON, "removable": JSON, "vendor": JSON, "model": JSON, "serial": JSON},
)
MODULE = st.fixed_dictionaries({"size": st.integers() | JSON})


def interface(**more: Any) -> dict[str, Any]:
    return {"name": "eth0", "macAddress": "52:54:00:AA:BB:01", **more}


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "NICs of a report carry normalised MAC addresses; an invalid IP address is left out.",
)
def test_interfaces_carry_normalised_macs_and_the_addresses_that_are_real() -> None:
    """MACs are in lower case with colons; prefix lengths and zones are removed, invalid addresses omitted."""
    told = ["10.0.0.7", "10.0.0.8/24", "fe80::1%eth0", "nonsense", "127.0.0.1", 7, "10.0.0.7"]
    (found,) = network_interfaces({"networkInterfaces": [interface(ipAddresses=told, carrierStatus="up")]})
    assert found.mac_address == "52:54:00:aa:bb:01"
    assert found.ips == ("10.0.0.7", "10.0.0.8", "fe80::1")
    assert found.carrier_status == "up"


def test_the_older_single_address_counts_too() -> None:
    """ipAddress is read in addition to ipAddresses, once."""
    (found,) = network_interfaces({"networkInterfaces": [interface(ipAddress="10.0.0.9", ipAddresses=["10.0.0.9"])]})
    assert found.ips == ("10.0.0.9",)


@pytest.mark.behaviour("Server: identity and inventory", "LLDP neighbours of a report are assigned to NICs by name.")
def test_lldp_neighbours_join_their_interface_by_name() -> None:
    """Neighbours of several entries are merged; those of unknown interfaces are dropped."""
    one, two = {"chassisId": "AA-BB-CC-00-00-01", "portId": "swp1", "systemName": "leaf-1"}, {"chassisId": "rack 7"}
    lldp = [{"name": "eth0", "neighbors": [one]}, {"name": "eth0", "neighbors": [two, one]}, {"name": "eth9"}]
    (found,) = network_interfaces({"networkInterfaces": [interface()], "lldp": lldp})
    assert found.neighbors == (
        LLDPNeighbor(mac_address="aa:bb:cc:00:00:01", port_id="swp1", system_name="leaf-1"),
        LLDPNeighbor(mac_address="rack 7"),
    )


def test_interfaces_without_a_mac_or_name_are_left_out() -> None:
    """Loopback, tunnels and duplicates are omitted."""
    entries = [{"name": "lo", "macAddress": "00:00:00:00:00:00"}, {"name": "tun0"}, {"macAddress": "02:00:00:00:00:01"}]
    assert network_interfaces({"networkInterfaces": [*entries, interface(), interface()]}) == network_interfaces(
        {"networkInterfaces": [interface()]}
    )


def test_every_spelling_of_a_mac_is_one() -> None:
    """Dashes, dots and capitals do not matter."""
    spellings = ("52-54-00-AA-BB-01", "5254.00aa.bb01", "525400aabb01", "52:54:00:aa:bb:01")
    assert {normal_mac(text) for text in spellings} == {"52:54:00:aa:bb:01"}
    assert normal_mac("52:54:00:aa:bb") == ""


@given(st.fixed_dictionaries({"networkInterfaces": st.lists(ENTRY, max_size=3) | JSON, "lldp": st.lists(ENTRY) | JSON}))
def test_no_report_whatever_breaks_the_summary(report: dict[str, Any]) -> None:
    """For any JSON that a machine sends, the summary is computed and can be written to the API."""
    assert isinstance(msgspec.json.encode(network_interfaces(report)), bytes)


def test_texts_of_neighbours_are_plain() -> None:
    """Any device on the cable chooses them, and they are printed to an administrator's terminal."""
    neighbor = {"chassisId": "\x1b]0;x\x07", "systemName": "a\r\nb", "portId": "\x00", "systemDescription": "d" * 999}
    report = {
        "networkInterfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}],
        "lldp": [{"name": "eth0", "neighbors": [neighbor]}],
    }
    ((shown,),) = (interface.neighbors for interface in network_interfaces(report))
    assert (shown.mac_address, shown.system_name, shown.port_id) == (" ]0;x ", "a  b", " ")
    assert len(shown.system_description) == 256


def disk(name: str = "sda", **more: Any) -> dict[str, Any]:
    return {"path": f"/dev/{name}", "name": name, "rotational": False, "removable": False, "sizeBytes": 1 << 30, **more}


def test_the_drives_of_a_report_are_one_storage() -> None:
    """Each has its type, capacity and vendor; the protocol only if the device name shows it."""
    told = [
        disk("nvme0n1", vendor="Contoso", model="Fast 1", serial="N1"),
        disk("sda", rotational=True, sizeBytes=2 << 40, serial="S1"),
    ]
    (storage,) = storages({"storage": told})
    assert (storage.name, storage.state) == ("operating-system", "Enabled")
    assert storage.drives == (
        StorageDrive(name="nvme0n1", media_type="SSD", type="NVMe", capacity="1Gi", vendor="Contoso", model="Fast 1",
                     serial_number="N1", state="Enabled"),
        StorageDrive(name="sda", media_type="HDD", capacity="2Ti", serial_number="S1", state="Enabled"),
    )  # fmt: skip


def test_what_is_no_drive_of_the_machine_is_left_out() -> None:
    """Removable media, empty readers, duplicates and nameless entries are omitted."""
    told = [disk("sdb", removable=True), disk("sdc", sizeBytes=0), disk("", path=""), disk("sdd", sizeBytes=True)]
    assert storages({"storage": told}) == ()
    assert storages({}) == ()
    (storage,) = storages({"storage": [*told, disk(), disk(serial="again")]})
    assert [drive.name for drive in storage.drives] == ["sda"]


def test_known_drives_are_those_of_the_probe_and_those_that_only_the_bmc_sees() -> None:
    """Drives are matched by serial number; the BMC's name is the slot; a BMC's drive without serial is omitted."""
    told = [disk("nvme0n1", serial="S 1 ", wwid="eui.1"), disk("sda"), disk("sdb", removable=True, serial="stick")]
    bmc = Storage(name="RAID.1", drives=(
        StorageDrive(name="Bay 1", serial_number="s1"), StorageDrive(name="Bay 2", serial_number="S2"),
        StorageDrive(name="Bay 3", serial_number="S3", state="Absent"), StorageDrive(name="Bay 4"),
    ))  # fmt: skip
    assert known_drives({"storage": told}, (bmc,)) == (
        KnownDrive(name="nvme0n1", serial_number="S 1", wwn="eui.1", size=1 << 30, slot="Bay 1"),
        KnownDrive(name="sda", size=1 << 30),
        KnownDrive(serial_number="S2", slot="Bay 2"),
    )


def test_a_drive_that_the_bmc_lists_later_is_added_to_the_known_ones() -> None:
    """A drive of which the BMC spells the serial number otherwise is known; one that is not listed stays known."""
    known = (KnownDrive(name="sda", serial_number="S 1"), KnownDrive(name="sdb", wwn="0x5000c500a1b2c3d4"))
    listed = (
        KnownDrive(serial_number="s1", slot="Bay 1"),
        KnownDrive(serial_number="S2", wwn="5000C500A1B2C3D4"), KnownDrive(serial_number="S3", slot="Bay 3"),
    )  # fmt: skip
    assert with_listed(known, listed) == (*known, listed[-1])
    assert with_listed(known, ()) == known


def test_what_the_probe_told_before_is_no_word_of_the_bmc() -> None:
    """Reading the same report again gives the same drives."""
    report = {"storage": [disk(serial="S1")]}
    assert known_drives(report, storages(report)) == known_drives(report, ())


def test_the_memory_is_the_sum_of_its_modules() -> None:
    """Empty slots and invalid values add nothing; without modules it is empty."""
    assert (
        memory({"memory": [{"size": 16 << 30}, {"size": 16 << 30}, {"size": 0}, {"size": -1}, {"size": "8"}]}) == "32Gi"
    )
    assert memory({"memory": [{"size": 1 << 80}]}) == ""
    assert memory({}) == ""


@given(st.fixed_dictionaries({"storage": st.lists(DISK, max_size=3) | JSON, "memory": st.lists(MODULE) | JSON}))
def test_no_report_whatever_breaks_the_parts(report: dict[str, Any]) -> None:
    """For any JSON that a machine sends, drives and memory are computed and can be written to the API."""
    parts = storages(report)
    assert isinstance(msgspec.json.encode([parts, memory(report), known_drives(report, parts)]), bytes)
