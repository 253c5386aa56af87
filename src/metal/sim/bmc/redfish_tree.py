"""The Redfish resources of a simulated BMC (DSP0268), built from the machine's state on each request."""

from collections.abc import Callable
from typing import Any

from metal.sim.machine.hardware import BIOS_VERSION, MANUFACTURER
from metal.sim.machine.identity import swapped
from metal.sim.machine.machine import RESETS, Machine
from metal.sim.options import Carrier

JSON = dict[str, Any]
ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
MANAGER = f"{ROOT}/Managers/1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
EVENTS = f"{ROOT}/EventService"
SUBSCRIPTIONS = f"{EVENTS}/Subscriptions"
TEST_EVENT = f"{EVENTS}/Actions/EventService.SubmitTestEvent"
SYSTEM_RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
MANAGER_RESET = f"{MANAGER}/Actions/Manager.Reset"
BIOS = f"{SYSTEM}/Bios"
BIOS_SETTINGS = f"{BIOS}/Settings"
SECURE_BOOT = f"{SYSTEM}/SecureBoot"
CHASSIS = f"{ROOT}/Chassis/1"
RESET_BIOS = f"{BIOS}/Actions/Bios.ResetBios"
MANAGER_RESETS = ("GracefulRestart", "ForceRestart")
ENABLED = ("Disabled", "Once", "Continuous")
TARGETS = ("None", "Pxe", "UefiHttp", "Hdd", "Cd", "BiosSetup")
MODES = ("UEFI", "Legacy")
LEDS = {"Off": "Off", "Lit": "Lit", "Blinking": "Blinking"}
SHARED_UUID, NO_SERIAL = "03000200-0400-0500-0006-000700080009", "To be filled by O.E.M."
"""What the BMC of a machine without identity reports (fault `shares_uuid`)."""
OK = {"State": "Enabled", "Health": "OK"}


def service_root(machine: Machine) -> JSON:
    """/redfish/v1/"""
    expand = machine.site.options.expand
    return {
        **_head(f"{ROOT}/", "ServiceRoot.v1_16_0.ServiceRoot", "RootService", "Simulated BMC"),
        "RedfishVersion": "1.18.0",
        "UUID": machine.identity.bmc_uuid,
        "Vendor": MANUFACTURER,
        "Product": "Simulated BMC",
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"NoLinks": expand, "Levels": expand, "ExpandAll": False, "Links": False, "MaxLevels": 1}
        },
        "Systems": _ref(f"{ROOT}/Systems"),
        "Managers": _ref(f"{ROOT}/Managers"),
        "Chassis": _ref(f"{ROOT}/Chassis"),
        "SessionService": _ref(f"{ROOT}/SessionService"),
        "EventService": _ref(EVENTS),
        "Links": {"Sessions": _ref(SESSIONS)},
    }


def session_service(machine: Machine) -> JSON:
    """/redfish/v1/SessionService"""
    return {
        **_head(f"{ROOT}/SessionService", "SessionService.v1_1_8.SessionService", "SessionService", "Sessions"),
        "ServiceEnabled": True,
        "SessionTimeout": int(machine.site.options.session_timeout),
        "Sessions": _ref(SESSIONS),
        "Status": OK,
    }


def event_service(machine: Machine) -> JSON:
    """/redfish/v1/EventService"""
    return {
        **_head(EVENTS, "EventService.v1_10_0.EventService", "EventService", "Events"),
        "ServiceEnabled": True,
        "EventTypesForSubscription": ["StatusChange", "Alert"],
        "EventFormatTypes": ["Event"],
        "Subscriptions": _ref(SUBSCRIPTIONS),
        "Actions": {"#EventService.SubmitTestEvent": {"target": TEST_EVENT}},
        "Status": OK,
    }


def subscription(identifier: str, held: JSON) -> JSON:
    """An event destination."""
    path = f"{SUBSCRIPTIONS}/{identifier}"
    return {**_head(path, "EventDestination.v1_14_0.EventDestination", identifier, "Subscription"), **held}


def system(machine: Machine) -> JSON:
    """The computer system."""
    parts, identity, state = machine.hardware, machine.identity, machine.state
    return {
        **_head(SYSTEM, "ComputerSystem.v1_20_0.ComputerSystem", "1", identity.name),
        "SystemType": "Physical",
        "Manufacturer": MANUFACTURER,
        "Model": parts.model,
        "SKU": parts.sku,
        "SerialNumber": NO_SERIAL if machine.faults.shares_uuid else identity.serial,
        "UUID": _shown_uuid(machine),
        "BiosVersion": BIOS_VERSION,
        "PowerState": machine.reported_power,
        "IndicatorLED": state.led,
        "LocationIndicatorActive": state.led != "Off",
        "Status": OK,
        "MemorySummary": {"TotalSystemMemoryGiB": parts.memory_gib, "Status": OK},
        "ProcessorSummary": {"Count": parts.sockets, "Model": parts.cpu_model, "Status": OK},
        "Boot": _boot(machine),
        "Processors": _ref(f"{SYSTEM}/Processors"),
        "Memory": _ref(f"{SYSTEM}/Memory"),
        "Storage": _ref(f"{SYSTEM}/Storage"),
        "EthernetInterfaces": _ref(f"{SYSTEM}/EthernetInterfaces"),
        "Bios": _ref(BIOS),
        "SecureBoot": _ref(SECURE_BOOT),
        **_carriers(machine),
        "Links": {"Chassis": [_ref(CHASSIS)], "ManagedBy": [_ref(MANAGER)]},
        "Actions": {
            "#ComputerSystem.Reset": {"target": SYSTEM_RESET, "ResetType@Redfish.AllowableValues": list(RESETS)}
        },
    }


def _carriers(machine: Machine) -> JSON:
    media = {"VirtualMedia": _ref(f"{SYSTEM}/VirtualMedia")} if Carrier.VIRTUAL_MEDIA in machine.carriers else {}
    tag = {"AssetTag": machine.state.asset_tag} if Carrier.ASSET_TAG in machine.carriers else {}
    return {**media, **tag}


def secure_boot(machine: Machine) -> JSON:
    """The state of Secure Boot."""
    is_on = machine.state.secure_boot
    return {
        **_head(SECURE_BOOT, "SecureBoot.v1_1_2.SecureBoot", "SecureBoot", "UEFI Secure Boot"),
        "SecureBootEnable": is_on,
        "SecureBootCurrentBoot": "Enabled" if is_on else "Disabled",
        "SecureBootMode": "UserMode" if is_on else "SetupMode",
    }


def _shown_uuid(machine: Machine) -> str:
    if machine.faults.shares_uuid:
        return SHARED_UUID
    return swapped(machine.identity.uuid) if machine.faults.flips_uuid else machine.identity.uuid


def _boot(machine: Machine) -> JSON:
    override = machine.state.override
    return {
        "BootSourceOverrideEnabled": override.enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": list(ENABLED),
        "BootSourceOverrideTarget": override.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        "BootSourceOverrideMode": override.mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": list(MODES),
        **({"HttpBootUri": override.http_boot_uri} if Carrier.HTTP_BOOT_URI in machine.carriers else {}),
        "BootOrder": list(machine.state.boot_order),
    }


def manager(machine: Machine) -> JSON:
    """The manager."""
    identity = machine.identity
    return {
        **_head(MANAGER, "Manager.v1_19_0.Manager", "1", "Manager"),
        "ManagerType": "BMC",
        "UUID": identity.bmc_uuid,
        "Manufacturer": MANUFACTURER,
        "Model": "SimBMC",
        "PartNumber": "SIM-BMC-1",
        "SerialNumber": f"{identity.serial}-M",
        "FirmwareVersion": "2.7.0",
        "PowerState": "On",
        "Status": OK,
        "GraphicalConsole": {"ServiceEnabled": True, "MaxConcurrentSessions": 2, "ConnectTypesSupported": ["KVMIP"]},
        "Links": {"ManagerForServers": [_ref(SYSTEM)], "ManagerForChassis": [_ref(CHASSIS)]},
        "Actions": {
            "#Manager.Reset": {"target": MANAGER_RESET, "ResetType@Redfish.AllowableValues": list(MANAGER_RESETS)}
        },
    }


def chassis(machine: Machine) -> JSON:
    """The chassis of the system."""
    return {
        **_head(CHASSIS, "Chassis.v1_23_0.Chassis", "1", "Chassis"),
        "ChassisType": "RackMount",
        "Manufacturer": MANUFACTURER,
        "Model": machine.hardware.model,
        "SerialNumber": machine.identity.serial,
        **({"AssetTag": machine.state.asset_tag} if Carrier.CHASSIS_ASSET_TAG in machine.carriers else {}),
        "Status": OK,
        "Links": {"ComputerSystems": [_ref(SYSTEM)], "ManagedBy": [_ref(MANAGER)]},
    }


_ARCHITECTURES = {"amd64": ("x86", "x86-64"), "arm64": ("ARM", "ARM-A64")}
"""ProcessorArchitecture and InstructionSet."""


def processors(machine: Machine) -> list[JSON]:
    """Processor packages."""
    parts = machine.hardware
    architecture, instructions = _ARCHITECTURES[parts.architecture]
    sockets = 0 if machine.faults.hides_processors else parts.sockets
    return [
        {
            **_head(f"{SYSTEM}/Processors/{n}", "Processor.v1_18_0.Processor", f"{n}", f"CPU {n}"),
            "Socket": f"CPU {n}", "ProcessorType": "CPU",
            "ProcessorArchitecture": architecture, "InstructionSet": instructions,
            "Manufacturer": MANUFACTURER, "Model": parts.cpu_model, "MaxSpeedMHz": 3200, "TotalCores": parts.cores,
            "TotalThreads": 2 * parts.cores, "Status": OK,
        }
        for n in range(1, sockets + 1)
    ]  # fmt: skip


def memory(machine: Machine) -> list[JSON]:
    """Memory modules."""
    parts = machine.hardware
    return [
        {
            **_head(f"{SYSTEM}/Memory/{n}", "Memory.v1_19_0.Memory", f"{n}", f"DIMM {n}"),
            "CapacityMiB": parts.dimm_gib * 1024, "MemoryDeviceType": "DDR4", "OperatingSpeedMhz": 3200,
            "Manufacturer": MANUFACTURER, "PartNumber": f"SIM-{parts.dimm_gib}G",
            "SerialNumber": f"{machine.identity.serial}-M{n}", "Status": OK,
        }
        for n in range(parts.dimms)
    ]  # fmt: skip


def storage(machine: Machine) -> list[JSON]:
    """One controller with all drives."""
    uri = f"{SYSTEM}/Storage/1"
    listed = () if machine.faults.hides_drives else machine.hardware.disks
    drives = [_ref(f"{uri}/Drives/{n}") for n in range(len(listed))]
    return [
        {
            **_head(uri, "Storage.v1_15_0.Storage", "1", "NVMe"),
            "Status": OK, "Drives": drives, "Drives@odata.count": len(drives), "Volumes": _ref(f"{uri}/Volumes"),
        }
    ]  # fmt: skip


def drives(machine: Machine) -> list[JSON]:
    """The drives of the storage controller."""
    return [
        {
            **_head(f"{SYSTEM}/Storage/1/Drives/{n}", "Drive.v1_18_0.Drive", f"{n}", f"Disk {n}"),
            "CapacityBytes": disk.size, "MediaType": disk.kind, "Protocol": "NVMe", "Manufacturer": MANUFACTURER,
            "Model": disk.model, "SerialNumber": disk.serial, "Status": OK,
        }
        for n, disk in enumerate(machine.hardware.disks)
    ]  # fmt: skip


def interfaces(machine: Machine) -> list[JSON]:
    """The host's network cards."""
    return [
        {
            **_head(f"{SYSTEM}/EthernetInterfaces/{n}", "EthernetInterface.v1_12_0.EthernetInterface", f"{n}", "NIC"),
            "MACAddress": mac.upper(), "PermanentMACAddress": mac.upper(), "SpeedMbps": 25000,
            "LinkStatus": "LinkDown" if n else "LinkUp", "InterfaceEnabled": True, "Status": OK,
        }
        for n, mac in enumerate(machine.identity.host_macs)
    ]  # fmt: skip


def bios(machine: Machine) -> JSON:
    """The current BIOS attributes."""
    state = machine.state.bios
    return {
        **_head(BIOS, "Bios.v1_2_2.Bios", "Bios", "BIOS"),
        "Attributes": {"BootMode": machine.state.override.mode, "MaxCores": 0, **machine.bios_attributes},
        "ResetBiosToDefaultsPending": state.reset_pending,
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_5.Settings",
            "SettingsObject": _ref(BIOS_SETTINGS),
            "SupportedApplyTimes": ["OnReset"],
        },
        "Actions": {"#Bios.ResetBios": {"target": RESET_BIOS}},
    }


def bios_settings(machine: Machine) -> JSON:
    """The BIOS attributes after the next start."""
    state = machine.state.bios
    return {
        **_head(BIOS_SETTINGS, "Bios.v1_2_2.Bios", "Settings", "BIOS settings"),
        "Attributes": {**machine.bios_attributes, **state.pending},
    }


def session(identifier: str, user: str) -> JSON:
    """A session, without its token."""
    return {
        **_head(f"{SESSIONS}/{identifier}", "Session.v1_7_0.Session", identifier, "Session"),
        "UserName": user,
    }


Make = Callable[[Machine], Any]
SINGLE: dict[str, Make] = {
    ROOT: service_root,
    f"{ROOT}/SessionService": session_service,
    EVENTS: event_service,
    SYSTEM: system,
    MANAGER: manager,
    CHASSIS: chassis,
    BIOS: bios,
    BIOS_SETTINGS: bios_settings,
    SECURE_BOOT: secure_boot,
}
COLLECTIONS: dict[str, tuple[str, Make]] = {
    f"{ROOT}/Systems": ("ComputerSystem", lambda machine: [system(machine)]),
    f"{ROOT}/Managers": ("Manager", lambda machine: [manager(machine)]),
    f"{ROOT}/Chassis": ("Chassis", lambda machine: [chassis(machine)]),
    f"{SYSTEM}/Processors": ("Processor", processors),
    f"{SYSTEM}/Memory": ("Memory", memory),
    f"{SYSTEM}/Storage": ("Storage", storage),
    f"{SYSTEM}/Storage/1/Volumes": ("Volume", lambda machine: []),
    f"{SYSTEM}/EthernetInterfaces": ("EthernetInterface", interfaces),
}


def collection(path: str, kind: str, members: list[JSON], *, expand: bool) -> JSON:
    """A collection of whole members, or of links to them."""
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "@odata.id": path,
        "Name": f"{kind} Collection",
        "Members@odata.count": len(members),
        "Members": members if expand else [_ref(member["@odata.id"]) for member in members],
    }


def find(machine: Machine, path: str, *, expand: bool = False) -> JSON | None:
    """The resource at a path without a trailing slash; None when there is none. Sessions are not included."""
    if path in SINGLE:
        single: JSON = SINGLE[path](machine)
        return single
    if path in COLLECTIONS:
        kind, make = COLLECTIONS[path]
        return collection(path, kind, make(machine), expand=expand)
    parent = path.rpartition("/")[0]
    if parent == f"{SYSTEM}/Storage/1/Drives":
        members = drives(machine)
    elif parent in COLLECTIONS:
        members = COLLECTIONS[parent][1](machine)
    else:
        return None
    return next((member for member in members if member["@odata.id"] == path), None)


def _ref(path: str) -> JSON:
    return {"@odata.id": path}


def _head(path: str, kind: str, identifier: str, name: str) -> JSON:
    return {"@odata.type": f"#{kind}", "@odata.id": path, "Id": identifier, "Name": name}
