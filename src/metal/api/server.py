"""Server: one physical computer system, its desired settings and its observed state."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from metal.api.bmc import ConsoleProtocol, Pin, Protocol, TLSPolicy
from metal.api.boot_window import BootWindow
from metal.api.common import LocalRef, ObjectRef, Taint
from metal.api.interruption import Interruption, OperationRequest
from metal.api.inventory import Inventory
from metal.api.markers import IP, Choice, Defaulted, ListMap, Quantity, Required, Rule, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.sanitization import FirmwareReset, KnownDrive, Policy, SanitizationProgress


class State(StrEnum):
    """States of a server. docs/states.md describes them."""

    INITIAL = "Initial"
    DISCOVERY = "Discovery"
    AVAILABLE = "Available"
    RESERVED = "Reserved"
    RELEASED = "Released"
    PARKED = "Parked"
    CLEANUP = "Cleanup"
    MAINTENANCE = "Maintenance"
    ERROR = "Error"


class InlineBMC(Model, frozen=True, kw_only=True):
    """Access to a BMC that has no BMC object."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "(has(self.address) && size(self.address) > 0) != has(self.endpointRef)",
                "exactly one of address and endpointRef must be set",
            ),
        )
    )

    protocol: Protocol
    """Management protocol."""
    address: str = ""
    """IP address or host name of the BMC."""
    bmc_secret_ref: Annotated[LocalRef, Required()] = LocalRef()
    """BMCSecret that holds the credentials."""
    endpoint_ref: LocalRef | None = None
    """Endpoint that holds the address of the BMC. Exactly one of address and endpointRef must be set."""
    console_protocol: ConsoleProtocol | None = None
    """Protocol of the serial console."""
    tls: TLSPolicy | None = None
    """Verification of the BMC's TLS certificate. Defaults to the bmc section of the manager's configuration."""


class BootOrder(Model, frozen=True, kw_only=True):
    """An entry of the boot order."""

    name: str
    """Name for display."""
    priority: int
    """Position in the boot order. Lower values boot first."""
    device: str
    """Boot option of the BMC, or a kind of boot option such as Network."""


class BIOSSettings(Model, frozen=True, kw_only=True):
    """BIOS settings for one BIOS version. No controller applies them yet."""

    version: str
    """BIOS version to which the settings apply."""
    settings: dict[str, str] = {}
    """BIOS attributes and their values."""


def _given(name: str) -> str:
    return f"(has(self.{name}) && size(self.{name}) > 0)"


class ServerSpec(Model, frozen=True, kw_only=True):
    """Desired state of a server."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                f"{_given('systemUUID')} || {_given('uuid')}",
                "systemUUID is required: the SMBIOS UUID of the system (uuid is deprecated)",
            ),
            Rule(
                f"!({_given('systemUUID')} && {_given('uuid')})"
                " || self.systemUUID.lowerAscii() == self.uuid.lowerAscii()",
                "systemUUID and uuid must be equal: remove the deprecated uuid",
            ),
        )
    )

    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """SMBIOS UUID of the system. One of systemUUID and uuid is required."""
    uuid: str = msgspec.field(name="uuid", default="")
    """Deprecated. Use systemUUID."""
    system_uri: str = msgspec.field(name="systemURI", default="")
    """Redfish path of the system. If empty, the system is found by its UUID."""
    power: Annotated[str, Choice("", "On", "Off")] = ""
    """Deprecated. The power of a server is set by its ServerClaim or ServerMaintenance."""
    indicator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="indicatorLED", default=""
    )
    """Desired state of the location LED: Unknown, Lit, Blinking or Off."""
    reclaim_policy: Annotated[str, Choice("Recycle", "Retain"), Defaulted()] = "Recycle"
    """What happens after the claim is deleted. Recycle sanitizes the server and makes it available again. Retain keeps
    it in state Released."""
    server_claim_ref: Annotated[
        ObjectRef | None,
        Rule(
            "self.__namespace__ == oldSelf.__namespace__",
            "namespace of serverClaimRef is immutable: remove the reference first",
        ),
        Rule("self.name == oldSelf.name", "name of serverClaimRef is immutable: remove the reference first"),
    ] = None
    """ServerClaim that the server is bound to."""
    bmc_ref: LocalRef | None = None
    """BMC that manages the server. One of bmcRef and bmc must be set."""
    bmc: InlineBMC | None = None
    """Access to the BMC without a BMC object. One of bmcRef and bmc must be set."""
    boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration of the next network boot."""
    boot_order: tuple[BootOrder, ...] = ()
    """Persistent boot order of the machine."""
    bios: tuple[BIOSSettings, ...] = msgspec.field(name="BIOS", default=())
    """BIOS settings, one entry for each BIOS version."""
    taints: Annotated[tuple[Taint, ...], ListMap("key", "effect")] = ()
    """Prevent claims that do not tolerate them from binding the server. As on a Node, a taint is identified by its key
    and effect."""
    unclaimable: Annotated[bool, Defaulted()] = False
    """If true, new claims cannot bind the server (cordon). A claim that is already bound is not affected."""
    server_maintenance_ref: ObjectRef | None = None
    """ServerMaintenance that holds the server."""
    maintenance_boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration of the maintenance."""
    bios_settings_ref: LocalRef | None = None
    """BIOSSettings that are being applied to the server."""


class LLDPNeighbor(Model, frozen=True, kw_only=True):
    """A switch port, reported by LLDP."""

    mac_address: str = ""
    """Chassis ID."""
    port_id: str = msgspec.field(name="portID", default="")
    """Port ID."""
    port_description: str = ""
    """Port description."""
    system_name: str = ""
    """Name of the switch."""
    system_description: str = ""
    """Description of the switch."""


class NetworkInterface(Model, frozen=True, kw_only=True):
    """A network interface of the server."""

    name: str
    """Name, from the operating system if the probe reported the interface, else from the BMC."""
    mac_address: str
    """MAC address, in lower case with colons."""
    ip: IP = msgspec.field(name="ip", default=None)
    """Deprecated. Use ips."""
    ips: tuple[str, ...] = msgspec.field(name="ips", default=())
    """IP addresses that the probe reported."""
    carrier_status: str = ""
    """Link state: up or down."""
    neighbors: tuple[LLDPNeighbor, ...] = ()
    """Switch ports, reported by LLDP."""


class Processor(Model, frozen=True, kw_only=True):
    """A processor package."""

    id: str
    """Identifier from the BMC."""
    type: str = ""
    """Type, such as CPU, GPU or FPGA."""
    architecture: str = ""
    """Architecture, such as x86 or ARM."""
    instruction_set: str = ""
    """Instruction set, such as x86-64 or ARM-A64."""
    manufacturer: str = ""
    """Manufacturer."""
    model: str = ""
    """Model."""
    max_speed_mhz: int = msgspec.field(name="maxSpeedMHz", default=0)
    """Maximum clock rate in MHz."""
    total_cores: int = 0
    """Number of cores."""
    total_threads: int = 0
    """Number of hardware threads."""


class StorageDrive(Model, frozen=True, kw_only=True):
    """A drive."""

    name: str = ""
    """Name."""
    media_type: str = ""
    """Media type, such as HDD or SSD."""
    type: str = ""
    """Protocol, such as NVMe, SATA or SAS."""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    vendor: str = ""
    """Manufacturer."""
    model: str = ""
    """Model."""
    serial_number: str = ""
    """Serial number."""
    state: str = ""
    """State: Enabled, Disabled or Absent."""


class StorageVolume(Model, frozen=True, kw_only=True):
    """A volume of a storage controller."""

    name: str = ""
    """Name."""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    state: str = ""
    """State: Enabled, Disabled or Absent."""
    raid_type: str = msgspec.field(name="raidType", default="")
    """RAID type."""
    volume_usage: str = ""
    """Usage of the volume."""


class Storage(Model, frozen=True, kw_only=True):
    """A storage controller."""

    name: str = ""
    """Name."""
    state: str = ""
    """State: Enabled, Disabled or Absent."""
    volumes: tuple[StorageVolume, ...] = ()
    """Volumes."""
    drives: tuple[StorageDrive, ...] = ()
    """Drives."""


class Wait(Model, frozen=True, kw_only=True):
    """What the controller waits for, and the deadline."""

    for_: str = msgspec.field(name="for", default="")
    """Name of the wait in CamelCase, for programs."""
    since: datetime | None = None
    """Time at which the wait started."""
    until: datetime | None = None
    """Deadline of the wait. The state of the server determines what happens then."""


class Failure(Model, frozen=True, kw_only=True):
    """Why the server is in state Error."""

    state: str = ""
    """State that failed."""
    reason: str = ""
    """Reason in CamelCase, for programs."""
    message: str = ""
    """Details for humans: what failed, what the controller waited for, and what to do."""


class ClaimBoot(Model, frozen=True, kw_only=True):
    """The last network boot of a claim. It is recorded on the Server so that the machine is not booted a second
    time."""

    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim."""
    image: str = ""
    """Image that was booted."""
    ignition_secret: str | None = None
    """Name of the Secret with the Ignition that was booted. Empty without Ignition; absent when unknown."""
    booted_at: datetime | None = None
    """Time at which the machine had fetched everything that it needs to boot. Empty until then."""
    boot_generation: int = 0
    """The spec.bootGeneration of the claim for which this boot was done."""
    requested_generation: int = 0
    """The spec.bootGeneration of the claim for which another boot is pending or in progress."""


class ServerStatus(Model, frozen=True, kw_only=True):
    """Observed state of a server."""

    state: Annotated[str, Choice("", *State)] = ""
    """State of the server: Initial, Discovery, Available, Reserved, Released, Parked, Cleanup, Maintenance or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    wait: Wait | None = None
    """Name and deadline of what the controller waits for."""
    failure: Failure | None = None
    """Why the server is in state Error."""
    interruption: Interruption | None = None
    """State that Maintenance or Parked interrupted."""
    operation_request: OperationRequest | None = None
    """Reset that was requested by annotation and is not complete."""
    power_state: str = ""
    """Power state, as last reported by the BMC."""
    power_request: "PowerRequest | None" = None
    """Power change that was requested and is not complete."""
    on_requested_at: datetime | None = None
    """Time of the last request to power on. Cleared when the BMC reports On; until then a reported Off may be
    outdated."""
    indicator_led: str = msgspec.field(name="indicatorLED", default="")
    """State of the location LED, as last reported by the BMC."""
    manufacturer: str = ""
    """Manufacturer."""
    model: str = ""
    """Model."""
    sku: str = ""
    """Stock keeping unit."""
    serial_number: str = ""
    """Serial number."""
    bios_version: str = ""
    """BIOS version."""
    total_system_memory: Quantity = ""
    """Size of the memory, as a Kubernetes quantity."""
    processors: tuple[Processor, ...] = ()
    """Processor packages."""
    storages: tuple[Storage, ...] = ()
    """Storage controllers."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    """Network interfaces."""
    inventory: Inventory | None = None
    """Hardware that the last complete Discovery found. The next Discovery is compared with it."""
    boot_window: BootWindow | None = None
    """The current network boot, or the last one."""
    claim_boot: ClaimBoot | None = None
    """The last network boot of the current claim."""
    tenant: str = ""
    """UID of the last claim whose operating system may have run on the machine. Cleared when the server is
    sanitized."""
    boot_attempts: int = 0
    """Number of consecutive network boots that failed."""
    tenant_served: bool = False
    """True if a failed network boot of the current claim had already been served a script or an Ignition."""
    drives: tuple[KnownDrive, ...] = ()
    """Drives that Discovery found."""
    sanitization_policy: Annotated[str, Choice("", *Policy)] = ""
    """How the drives must be sanitized after the current claim: None, Clear or Purge. It is kept when the claim is
    deleted."""
    sanitization_progress: SanitizationProgress | None = None
    """Progress of the running sanitization."""
    firmware_reset: FirmwareReset | None = None
    """Reset of the firmware after the last claim."""
    sanitization_evidence: str = ""
    """Name of the SanitizationEvidence of the last sanitization."""
    sanitization: str = ""
    """Result of the last sanitization: Clear or Purge (the weakest category that a drive reached), None (the policy was
    None), NotOwed (the claim had not reached the machine) or Accepted (an administrator accepted the open tasks)."""
    ssh_host_key: Pin | None = None
    """SSH host key of the BMC in spec.bmc, pinned by the first console session. The host key of a BMC object is in its
    own status."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the server: Ready and others. Other components can add their own conditions."""


class PowerRequest(Model, frozen=True, kw_only=True):
    """A power change in progress."""

    target: str
    """Desired power state: On or Off."""
    reason: str = ""
    """Reason for the power change."""
    requested_at: datetime | None = None
    """Time of the first request."""
    forced_at: datetime | None = None
    """Time at which the change was forced. Empty while it is graceful."""
    deadline: datetime | None = None
    """Time at which the change is considered failed."""


class Server(Model, frozen=True, kw_only=True):
    """A physical server."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerSpec = ServerSpec()
    status: ServerStatus = ServerStatus()

    @property
    def uuid(self) -> str:
        """The system's UUID in lower case."""
        return (self.spec.system_uuid or self.spec.uuid).lower()
