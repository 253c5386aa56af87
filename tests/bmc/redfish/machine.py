"""A complete BMC for the fake transport."""

from typing import Any

from metal.bmc.redfish.client import RedfishBMC
from tests.redfish.fakes import SYSTEM, FakeBMC, client_of

UUID = "38947555-7742-3448-3784-823347823834"
RESETS = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]
MANAGER = "/redfish/v1/Managers/BMC"


def system(**changes: Any) -> dict[str, Any]:
    """An ordinary system that is off."""
    return {
        "@odata.id": SYSTEM,
        "Id": "1",
        "UUID": UUID.upper(),
        "Manufacturer": "Contoso ",
        "Model": "3500",
        "SKU": "8675309",
        "SerialNumber": "437XR1138R2",
        "BiosVersion": "P79",
        "PowerState": "Off",
        "IndicatorLED": "Off",
        "MemorySummary": {"TotalSystemMemoryGiB": 96},
        "Boot": {
            "BootSourceOverrideEnabled": "Disabled",
            "BootSourceOverrideTarget": "None",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "UefiHttp", "Hdd"],
            "BootOrder": ["Boot0001", "Boot0002"],
        },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(RESETS),
            }
        },
        **changes,
    }


def manager(**changes: Any) -> dict[str, Any]:
    """An ordinary manager."""
    return {
        "@odata.id": MANAGER,
        "Id": "BMC",
        "UUID": "58893887-8974-2487-2389-841168418919",
        "Manufacturer": "Contoso",
        "Model": "Joo Janta 200",
        "PartNumber": "P-1",
        "FirmwareVersion": "1.00",
        "PowerState": "On",
        "Status": {"State": "Enabled"},
        "Actions": {"#Manager.Reset": {"target": f"{MANAGER}/Actions/Manager.Reset"}},
        **changes,
    }


def collection(path: str, *members: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The collection and its members, by path."""
    links = [{"@odata.id": member["@odata.id"]} for member in members]
    return {path: {"@odata.id": path, "Members": links}} | {member["@odata.id"]: member for member in members}


def fake(*systems: dict[str, Any], managers: tuple[dict[str, Any], ...] = ()) -> FakeBMC:
    """A BMC with these systems and managers."""
    bmc = FakeBMC(latency=0.01)
    bmc.resources |= collection("/redfish/v1/Systems", *(systems or (system(),)))
    bmc.resources |= collection("/redfish/v1/Managers", *(managers or (manager(),)))
    return bmc


def redfish(bmc: FakeBMC) -> RedfishBMC:
    """The RedfishBMC of a fake."""
    return RedfishBMC(client_of(bmc))
