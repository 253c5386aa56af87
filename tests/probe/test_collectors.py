"""The collectors' results for given /sys and /proc."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.probe.collectors import cpu, memory, network, nics, pci, storage, system
from metal.probe.host import Host
from metal.probe.smbios import structures
from tests.probe import machines
from tests.probe.machines import FakeMachine, SilentDriver


def test_processors_are_told_by_socket(tmp_path: Path) -> None:
    """Two sockets of two cores with two threads are two entries, each with its own counts."""
    found = cpu.collect(machines.server(tmp_path))

    assert [entry["id"] for entry in found] == [0, 1]
    assert {(entry["totalCores"], entry["totalHardwareThreads"]) for entry in found} == {(2, 4)}
    assert found[0]["model"].startswith("Intel(R) Xeon(R) Gold 6338")
    assert found[0]["vendor"] == "GenuineIntel"
    assert "avx512f" in found[0]["capabilities"]


def test_a_cpuinfo_without_topology_still_counts(tmp_path: Path) -> None:
    """Without topology in /sys each thread counts as a core."""
    machine = FakeMachine(tmp_path)
    machine.write("/proc/cpuinfo", "processor : 0\n\nprocessor : 1\n")

    (socket,) = cpu.collect(machine)

    assert (socket["totalCores"], socket["totalHardwareThreads"], socket["vendor"]) == (2, 2, "")


def test_no_processor_at_all_is_a_failure(tmp_path: Path) -> None:
    """A machine without processors is reported as a failure."""
    with pytest.raises(LookupError, match="/proc/cpuinfo"):
        cpu.collect(FakeMachine(tmp_path))


def test_memory_modules_come_from_the_firmware(tmp_path: Path) -> None:
    """An extended size is in megabytes; an empty slot is omitted."""
    (module,) = memory.collect(machines.server(tmp_path))

    assert module == {
        "size": 64 * 1024**3,
        "deviceSet": "",
        "deviceLocator": "DIMM_A1",
        "bankLocator": "BANK 0",
        "memoryType": "DDR4",
        "speed": "3200 MT/s",
        "vendor": "Samsung",
        "serialNumber": "S123",
        "assetTag": "",
        "partNumber": "M393A4K40DB3",
        "configuredMemorySpeed": "2933 MT/s",
        "minimumVoltage": "1.14 V",
        "maximumVoltage": "1.26 V",
        "configuredVoltage": "1.2 V",
    }


@pytest.mark.parametrize(("word", "size"), [(0x0400, 1024 * 1024**2), (0x8000 | 512, 512 * 1024), (0xFFFF, 0), (0, 0)])
def test_sizes_are_read_in_their_unit(tmp_path: Path, word: int, size: int) -> None:
    """The top bit means kilobytes; unknown and empty sizes are no module, so the kernel's total is used."""
    machine = FakeMachine(tmp_path)
    machine.write("/sys/firmware/dmi/tables/DMI", machines.module(word) + machines.END)
    machine.write("/proc/meminfo", "MemTotal:       16 kB\n")

    (module,) = memory.collect(machine)

    assert module["size"] == (size or 16 * 1024)
    assert set(module) == set(memory.collect(machines.server(tmp_path / "other"))[0])


def test_memory_that_nobody_tells_is_a_failure(tmp_path: Path) -> None:
    """The message names firmware and kernel."""
    with pytest.raises(LookupError, match=r"SMBIOS.*meminfo"):
        memory.collect(FakeMachine(tmp_path))


@given(st.binary(max_size=600))
def test_no_table_breaks_the_smbios_reader(table: bytes) -> None:
    """Reading ends for any content of the table, and every field can be read."""
    for found in structures(table):
        assert found.dword(0x54) >= 0
        assert isinstance(found.string(0x10), str)


@given(st.integers(min_value=0, max_value=200))
def test_a_table_cut_short_gives_the_whole_structures_before_the_cut(cut: int) -> None:
    """An incomplete structure is omitted."""
    one = machines.module(1024)
    table = (one + one)[:cut]

    assert len(list(structures(table))) == cut // len(one)


def test_disks_are_told_and_what_only_looks_like_one_is_not(tmp_path: Path) -> None:
    """Loop devices and mappings are omitted; sizes are bytes; a SCSI serial is from its vital product data."""
    nvme, sda = storage.collect(machines.server(tmp_path))

    assert (nvme["path"], nvme["sizeBytes"], nvme["model"]) == ("/dev/nvme0n1", 4000797360 * 512, "PM9A3")
    assert (nvme["serial"], nvme["wwid"], nvme["numaNodeID"], nvme["rotational"]) == ("S6", "eui.0025", 1, False)
    assert (sda["serial"], sda["vendor"], sda["rotational"], sda["wwid"]) == ("Z1D4XY", "ATA", True, "")


def test_firmware_tells_who_made_the_machine(tmp_path: Path) -> None:
    """A value that the firmware omits is an empty string, not a missing key."""
    found = system.collect(machines.server(tmp_path))

    assert found["systemInformation"]["manufacturer"] == "Dell Inc."
    assert found["systemInformation"]["serialNumber"] == ""
    assert found["biosInformation"] == {"vendor": "", "version": "1.2.3", "date": ""}
    assert found["boardInformation"]["serialNumber"] == ".ABC."


def test_a_machine_without_smbios_says_so(tmp_path: Path) -> None:
    """No /sys/class/dmi/id is a failure of this collector alone."""
    with pytest.raises(LookupError, match="SMBIOS"):
        system.collect(FakeMachine(tmp_path))


def test_interfaces_with_hardware_are_told_with_their_addresses(tmp_path: Path) -> None:
    """Loopback, tunnels and bridges are omitted; a port without a carrier file is down; MACs are lower case."""
    found = network.collect(
        machines.server(tmp_path), lambda: {"enp1s0f0": ["10.0.0.7", "fd00::7"], "lo": ["127.0.0.1"]}
    )

    assert found == [
        {
            "name": "enp1s0f0",
            "ipAddresses": ["10.0.0.7", "fd00::7"],
            "macAddress": "aa:bb:cc:00:00:01",
            "carrierStatus": "up",
        },
        {"name": "enp1s0f1", "ipAddresses": [], "macAddress": "aa:bb:cc:00:00:02", "carrierStatus": "down"},
    ]


def test_a_machine_without_network_interfaces_is_a_failure(tmp_path: Path) -> None:
    """Without an interface no report could be sent, so the reading must be wrong."""
    with pytest.raises(LookupError, match="/sys/class/net"):
        network.collect(FakeMachine(tmp_path), dict)


def test_adapters_are_told_with_their_place_and_driver(tmp_path: Path) -> None:
    """A driver without answers omits modes and firmware only; a speed of -1 is unknown."""
    first, second = nics.collect(machines.server(tmp_path), SilentDriver())

    assert (first["pciAddress"], first["speed"], first["driver"]) == ("0000:01:00.0", "25000Mb/s", "mlx5_core")
    assert (second["pciAddress"], second["speed"]) == ("0000:01:00.1", "Unknown")
    assert (first["linkModes"], first["supportedPorts"], first["firmwareVersion"]) == ([], [], "")


def test_a_virtio_adapter_has_the_pci_address_behind_its_own_bus(tmp_path: Path) -> None:
    """The device of a virtio interface is virtio0; the PCI function is one step up."""
    machine = FakeMachine(tmp_path)
    machine.link("/sys/class/net/eth0/device", "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/virtio0")

    (nic,) = nics.collect(machine, SilentDriver())

    assert nic["pciAddress"] == "0000:01:00.0"


def test_pci_devices_have_names_where_the_machine_knows_them(tmp_path: Path) -> None:
    """Numbers are always present, names only with the list; its sub-vendors and classes are not confused with them."""
    machine = machines.server(tmp_path)
    machine.add_pci("0000:02:00.0", "8086", "1572")
    machine.write(
        "/usr/share/misc/pci.ids",
        "# list\n15b3  Mellanox Technologies\n\t101b  MT28908 [ConnectX-6]\n\t\t15b3 0001  Board\nC 01  Mass storage\n",
    )

    known, unknown = pci.collect(machine)

    assert known == {
        "address": "0000:01:00.0",
        "vendor": "Mellanox Technologies",
        "vendorID": "15b3",
        "product": "MT28908 [ConnectX-6]",
        "productID": "101b",
        "numaNodeID": 1,
    }
    assert (unknown["vendor"], unknown["vendorID"], unknown["numaNodeID"]) == ("", "8086", 0)


def test_unreadable_files_read_as_empty(tmp_path: Path) -> None:
    """A directory in place of a file, a missing file, or invalid text raises nothing."""
    (tmp_path / "sys").mkdir()
    host = Host(tmp_path)

    assert (host.data("/sys"), host.text("/nothing"), host.number("/nothing", 7), host.names("/nothing")) == (
        b"",
        "",
        7,
        [],
    )
