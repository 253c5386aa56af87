"""Inventory."""

import asyncio
from typing import Any

import pytest

from metal.bmc.errors import BMCAuthError, BMCUnreachable
from metal.bmc.inventory import Inventory, NetworkInterface
from metal.bmc.redfish.convert import mac
from metal.bmc.redfish.inventory import inventory as module
from metal.redfish import BMCTimeout
from tests.bmc.redfish.machine import collection, fake, redfish, system
from tests.redfish.fakes import HANG, SYSTEM, FakeBMC, answer

pytestmark = pytest.mark.looptime
STORE = f"{SYSTEM}/Storage/1"
GIB = 1024**3


def at(path: str, **values: Any) -> dict[str, Any]:
    return {"@odata.id": path, "Id": path.rpartition("/")[2], **values}


def small(**changes: Any) -> FakeBMC:
    """One processor, a module, a controller with a disk and a volume, a NIC."""
    names = ("Processors", "Memory", "Storage", "EthernetInterfaces")
    links = {name: {"@odata.id": f"{SYSTEM}/{name}"} for name in names}
    bmc = fake(system(**links | changes))
    cpu = at(
        f"{SYSTEM}/Processors/0",
        ProcessorType="CPU",
        Model=" Xeon ",
        TotalCores="8",
        TotalThreads=16,
        MaxSpeedMHz=3700.0,
    )
    dimm = at(f"{SYSTEM}/Memory/1", CapacityMiB=32768, MemoryDeviceType="DDR4", OperatingSpeedMhz=2400)
    drive = at(
        f"{STORE}/Drives/1", Name="disk", CapacityBytes=899527000000, MediaType="SSD", Protocol="NVMe", Model="M"
    )
    volume = at(f"{STORE}/Volumes/1", Name="v", CapacityBytes=1, RAIDType="RAID1", Status={"State": "Enabled"})
    parts: dict[str, Any] = {
        "Drives": [{"@odata.id": drive["@odata.id"]}],
        "Volumes": {"@odata.id": f"{STORE}/Volumes"},
    }
    nic = at(f"{SYSTEM}/EthernetInterfaces/1", MACAddress="AA-BB-CC-DD-EE-FF", LinkStatus="LinkUp")
    bmc.resources |= collection(f"{SYSTEM}/Processors", cpu)
    bmc.resources |= collection(f"{SYSTEM}/Memory", dimm)
    bmc.resources |= collection(f"{SYSTEM}/Storage", at(STORE, Name="ctl", Status={"State": "Enabled"}, **parts))
    bmc.resources |= collection(f"{STORE}/Volumes", volume) | {drive["@odata.id"]: drive}
    bmc.resources |= collection(f"{SYSTEM}/EthernetInterfaces", nic)
    return bmc


async def read(bmc: FakeBMC) -> Inventory:
    return await redfish(bmc).inventory(SYSTEM)


async def test_a_small_machine_is_read_whole() -> None:
    """Every part with its values, without problems."""
    found = await read(small())
    assert found.problems == ()
    (cpu,), (store,) = found.processors, found.storages
    assert (cpu.id, cpu.model, cpu.total_cores, cpu.total_threads, cpu.max_speed_mhz) == ("0", "Xeon", 8, 16, 3700)
    assert (store.name, store.state, store.drives[0].name, store.drives[0].type) == ("ctl", "Enabled", "disk", "NVMe")
    assert (store.drives[0].capacity_bytes, store.drives[0].media_type) == (899527000000, "SSD")
    assert (store.volumes[0].raid_type, store.volumes[0].state) == ("RAID1", "Enabled")
    assert found.network_interfaces == (NetworkInterface("1", "aa:bb:cc:dd:ee:ff", "LinkUp"),)


async def test_a_small_machine_costs_ten_requests_and_with_expansion_six() -> None:
    """In addition to login and root."""
    plain = small()
    await read(plain)
    assert len(plain.requests) - 2 == 10
    expanding = small()
    expanding.resources["/redfish/v1/"]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True}}
    for path, resource in list(expanding.resources.items()):
        if "Members" in resource:
            members = [expanding.resources[link["@odata.id"]] for link in resource["Members"]]
            expanding.resources[f"{path}?$expand=."] = resource | {"Members": members}
    assert await read(expanding) == await read(plain)
    assert len(expanding.requests) - 2 == 6


async def test_a_volume_has_the_identifier_that_systems_show_and_its_drives() -> None:
    """By the links of the volume; with one unknown drive, no drives are listed."""
    bmc = small()
    volume = bmc.resources[f"{STORE}/Volumes/1"]
    volume["Identifiers"] = [
        {"DurableName": "Disk.Virtual.0", "DurableNameFormat": None},
        {"DurableName": "600508B1001C5A3C", "DurableNameFormat": "NAA"},
    ]
    volume["Links"] = {"Drives": [{"@odata.id": f"{STORE}/Drives/1/"}]}
    volume["Status"] = {"State": "Enabled", "Health": "Warning"}
    (store,) = (await read(bmc)).storages
    volume["Links"]["Drives"].append({"@odata.id": "/redfish/v1/Chassis/1/Drives/9"})
    (partly,) = (await read(bmc)).storages
    assert (store.volumes[0].wwn, store.volumes[0].health) == ("600508B1001C5A3C", "Warning")
    assert store.volumes[0].drives == store.drives != ()
    assert partly.volumes[0].drives == ()


async def test_a_broken_part_is_a_sentence_and_the_rest_is_kept() -> None:
    """One faulty controller does not stop a discovery."""
    bmc = small(MemorySummary=None)
    bmc.fault("GET", f"{SYSTEM}/Memory", answer(500))
    bmc.fault("GET", f"{STORE}/Drives/1", answer(503))
    found = await read(bmc)
    assert len(found.processors) == len(found.network_interfaces) == 1
    assert len(found.storages[0].volumes) == 1
    assert sorted(problem[:40] for problem in found.problems) == [
        "Could not read all drives of ctl: GET /r",
        "Could not read all memory modules: GET /",
    ]


async def test_a_part_that_hangs_is_a_sentence_too() -> None:
    """RAID controllers do not answer for minutes while they initialise."""
    bmc = small()
    bmc.fault("GET", f"{SYSTEM}/Storage", HANG)
    found = await read(bmc)
    assert found.storages == ()
    assert len(found.processors) == 1
    assert "within 30 s" in found.problems[0]


async def test_the_whole_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that were read by then are kept."""
    monkeypatch.setattr(module, "DEADLINE", 10.0)
    bmc = small()
    bmc.fault("GET", f"{SYSTEM}/Storage", HANG)
    start = asyncio.get_running_loop().time()
    found = await read(bmc)
    assert asyncio.get_running_loop().time() - start < 11
    assert len(found.processors) == 1
    assert found.problems == ("The inventory is incomplete: it was not read within 10 s.",)


@pytest.mark.parametrize("error", [BMCUnreachable("gone"), BMCAuthError("no")])
async def test_a_lost_bmc_fails_the_inventory(error: Exception) -> None:
    """A partial inventory would look like missing hardware; no task continues in the background."""
    bmc = small()
    bmc.fault("GET", f"{SYSTEM}/Storage", error)
    with pytest.raises(type(error)):
        await read(bmc)
    sent = len(bmc.requests)
    await asyncio.sleep(1)
    assert len(bmc.requests) == sent


async def test_a_system_that_does_not_answer_fails_the_inventory() -> None:
    """Without the system there is no partial inventory."""
    bmc = small()
    bmc.fault("GET", SYSTEM, HANG)
    with pytest.raises(BMCTimeout):
        await read(bmc)


async def test_memory_is_summed_where_the_summary_is_missing() -> None:
    """Empty slots do not count."""
    bmc = small(MemorySummary=None)
    empty = at(f"{SYSTEM}/Memory/2", CapacityMiB=None, Status={"State": "Absent"})
    bmc.resources |= collection(f"{SYSTEM}/Memory", bmc.resources[f"{SYSTEM}/Memory/1"], empty)
    found = await read(bmc)
    (dimm,) = found.memory
    assert (dimm.size_bytes, dimm.type, dimm.speed_mhz) == (32 * GIB, "DDR4", 2400)
    assert found.system.total_memory_bytes == 32 * GIB


async def test_empty_sockets_and_bays_are_left_out() -> None:
    """The state Absent means an empty slot."""
    bmc = small()
    for path in (f"{SYSTEM}/Processors/0", f"{STORE}/Drives/1"):
        bmc.resources[path] |= {"Status": {"State": "Absent"}, "CapacityBytes": None}
    found = await read(bmc)
    assert found.processors == ()
    assert found.storages[0].drives == ()


@pytest.mark.parametrize("storage", ["empty", "broken", "missing"])
async def test_simple_storage_stands_in(storage: str) -> None:
    """When Storage is empty, broken or missing; then there is no problem to report."""
    bmc = small(SimpleStorage={"@odata.id": f"{SYSTEM}/SimpleStorage"})
    bmc.resources |= collection(
        f"{SYSTEM}/SimpleStorage",
        at(f"{SYSTEM}/SimpleStorage/1", Name="sata", Devices=[{"Name": "sda", "CapacityBytes": 5}]),
    )
    if storage == "broken":
        bmc.fault("GET", f"{SYSTEM}/Storage", answer(500))
    elif storage == "missing":
        bmc.resources[SYSTEM]["Storage"] = None
    else:
        bmc.resources[f"{SYSTEM}/Storage"]["Members"] = []
    found = await read(bmc)
    assert [(drive.name, drive.capacity_bytes) for drive in found.storages[0].drives] == [("sda", 5)]
    assert found.problems == ()


async def test_network_adapters_stand_in_where_the_system_shows_no_mac() -> None:
    """Some BMCs list NICs only under the chassis."""
    chassis = "/redfish/v1/Chassis/1"
    adapter = f"{chassis}/NetworkAdapters/nic"
    bmc = small(Links={"Chassis": [{"@odata.id": chassis}]})
    bmc.resources[f"{SYSTEM}/EthernetInterfaces/1"]["MACAddress"] = "00:00:00:00:00:00"
    bmc.resources[chassis] = at(chassis, NetworkAdapters={"@odata.id": f"{chassis}/NetworkAdapters"})
    functions = f"{adapter}/NetworkDeviceFunctions"
    bmc.resources |= collection(
        f"{chassis}/NetworkAdapters", at(adapter, NetworkDeviceFunctions={"@odata.id": functions})
    )
    ports = [at(f"{functions}/{n}", Ethernet={"PermanentMACAddress": f"02:00:00:00:00:0{n}"}) for n in (1, 2)]
    bmc.resources |= collection(functions, *ports)
    found = await read(bmc)
    assert [nic.name for nic in found.network_interfaces] == ["nic/1", "nic/2"]
    assert found.network_interfaces[0].mac_address == "02:00:00:00:00:01"


async def test_one_interface_for_each_mac() -> None:
    """VLANs and bonds repeat the MAC of the port below."""
    bmc = small()
    path = f"{SYSTEM}/EthernetInterfaces"
    bmc.resources |= collection(path, *(at(f"{path}/{n}", MACAddress="02:00:00:00:00:01") for n in ("eth0", "eth0.5")))
    assert [nic.name for nic in (await read(bmc)).network_interfaces] == ["eth0"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("AABBCCDDEEFF", "aa:bb:cc:dd:ee:ff"),
        ("aabb.ccdd.eeff", "aa:bb:cc:dd:ee:ff"),
        ("00:00:00:00:00:00", ""),
        ("aa:bb:cc", ""),
        ("80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:3a:4b:0c", ""),
        ("", ""),
    ],
)
def test_mac_addresses_are_normalised(text: str, address: str) -> None:
    """InfiniBand addresses and invalid text give no MAC address."""
    assert mac(text) == address
