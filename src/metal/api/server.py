"""Server: one computer system and where it is in its life."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from metal.api.bmc import ConsoleProtocol, Pin, Protocol, TLSPolicy
from metal.api.boot_window import BootWindow
from metal.api.common import LocalRef, ObjectRef, Taint
from metal.api.interruption import Interruption, OperationRequest
from metal.api.inventory import Inventory
from metal.api.markers import (
    IP,
    Choice,
    Defaulted,
    ListMap,
    Quantity,
    Required,
    Rule,
    TypeSchema,
)
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.sanitization import FirmwareReset, KnownDrive, Policy, SanitizationProgress


class State(StrEnum):
    """States of a server."""

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
    """Access to the BMC without a BMC object."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "(has(self.address) && size(self.address) > 0) != has(self.endpointRef)",
                "exactly one of address and endpointRef says where the BMC is",
            ),
        )
    )

    protocol: Protocol
    """Management protocol."""
    address: str = ""
    """IP address or host name of the BMC."""
    bmc_secret_ref: Annotated[LocalRef, Required()] = LocalRef()
    """BMCSecret with the credentials."""
    endpoint_ref: LocalRef | None = None
    """Endpoint that holds the address, instead of address."""
    console_protocol: ConsoleProtocol | None = None
    """Serial console."""
    tls: TLSPolicy | None = None
    """Which certificate is accepted."""


class BootOrder(Model, frozen=True, kw_only=True):
    """One entry of the boot order."""

    name: str
    """Name for people."""
    priority: int
    """Lower boots first."""
    device: str
    """The BMC's boot option, or a word such as Network that names its kind."""


class BIOSSettings(Model, frozen=True, kw_only=True):
    """BIOS settings for one BIOS version. No controller applies them yet."""

    version: str
    """BIOS version that the settings are for."""
    settings: dict[str, str] = {}
    """Attributes by name."""


def _given(name: str) -> str:
    return f"(has(self.{name}) && size(self.{name}) > 0)"


class ServerSpec(Model, frozen=True, kw_only=True):
    """What the server is to be."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                f"{_given('systemUUID')} || {_given('uuid')}",
                "systemUUID is needed: the SMBIOS UUID of the system (uuid is an older spelling)",
            ),
            Rule(
                f"!({_given('systemUUID')} && {_given('uuid')})"
                " || self.systemUUID.lowerAscii() == self.uuid.lowerAscii()",
                "systemUUID and uuid name the same thing and must be equal: remove uuid",
            ),
        )
    )

    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """SMBIOS UUID of the system; uuid is an older spelling, and one of the two is needed."""
    uuid: str = msgspec.field(name="uuid", default="")
    """Older spelling of systemUUID."""
    system_uri: str = msgspec.field(name="systemURI", default="")
    """Redfish path of the system; found by UUID when empty."""
    power: Annotated[str, Choice("", "On", "Off")] = ""
    """Deprecated: power belongs to the claim or the maintenance."""
    indicator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="indicatorLED", default=""
    )
    """Desired location LED: Unknown, Lit, Blinking or Off."""
    reclaim_policy: Annotated[str, Choice("Recycle", "Retain"), Defaulted()] = "Recycle"
    """Recycle makes a released server available again; Retain keeps it in Released."""
    server_claim_ref: Annotated[
        ObjectRef | None,
        Rule(
            "self.__namespace__ == oldSelf.__namespace__",
            "namespace of serverClaimRef is immutable: remove the reference first",
        ),
        Rule("self.name == oldSelf.name", "name of serverClaimRef is immutable: remove the reference first"),
    ] = None
    """Claim that holds the server."""
    bmc_ref: LocalRef | None = None
    """BMC that manages the server; one of bmcRef and bmc."""
    bmc: InlineBMC | None = None
    """Access to the BMC itself; one of bmcRef and bmc."""
    boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration that the next network boot uses."""
    boot_order: tuple[BootOrder, ...] = ()
    """Persistent boot order."""
    bios: tuple[BIOSSettings, ...] = msgspec.field(name="BIOS", default=())
    """BIOS settings by BIOS version."""
    taints: Annotated[tuple[Taint, ...], ListMap("key", "effect")] = ()
    """Keep claims away that do not tolerate them. As on a Node, key and effect tell them apart."""
    unclaimable: Annotated[bool, Defaulted()] = False
    """True (cordon) keeps new claims away; a bound claim stays."""
    server_maintenance_ref: ObjectRef | None = None
    """ServerMaintenance that holds the server."""
    maintenance_boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration of the maintenance."""
    bios_settings_ref: LocalRef | None = None
    """BIOSSettings that are being applied."""


class LLDPNeighbor(Model, frozen=True, kw_only=True):
    """A switch port seen by LLDP."""

    mac_address: str = ""
    """Chassis id."""
    port_id: str = msgspec.field(name="portID", default="")
    """Port id."""
    port_description: str = ""
    """Port description."""
    system_name: str = ""
    """Name of the switch."""
    system_description: str = ""
    """Description of the switch."""


class NetworkInterface(Model, frozen=True, kw_only=True):
    """One network interface of the server."""

    name: str
    """Name, from the operating system when the probe saw it, else from the BMC."""
    mac_address: str
    """MAC address, lower case with colons."""
    ip: IP = msgspec.field(name="ip", default=None)
    """Deprecated; see ips."""
    ips: tuple[str, ...] = msgspec.field(name="ips", default=())
    """IP addresses that the probe saw."""
    carrier_status: str = ""
    """up or down."""
    neighbors: tuple[LLDPNeighbor, ...] = ()
    """Switch ports seen by LLDP."""


class Processor(Model, frozen=True, kw_only=True):
    """One processor package."""

    id: str
    """Identifier given by the BMC."""
    type: str = ""
    """CPU, GPU, FPGA, …"""
    architecture: str = ""
    """x86, ARM, …"""
    instruction_set: str = ""
    """x86-64, ARM-A64, …"""
    manufacturer: str = ""
    """Manufacturer."""
    model: str = ""
    """Model."""
    max_speed_mhz: int = msgspec.field(name="maxSpeedMHz", default=0)
    """Highest clock rate in MHz."""
    total_cores: int = 0
    """Number of cores."""
    total_threads: int = 0
    """Number of hardware threads."""


class StorageDrive(Model, frozen=True, kw_only=True):
    """One drive."""

    name: str = ""
    """Name."""
    media_type: str = ""
    """HDD, SSD, …"""
    type: str = ""
    """Protocol: NVMe, SATA, SAS, …"""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    vendor: str = ""
    """Manufacturer."""
    model: str = ""
    """Model."""
    serial_number: str = ""
    """Serial number."""
    state: str = ""
    """Enabled, Disabled or Absent."""


class StorageVolume(Model, frozen=True, kw_only=True):
    """One volume."""

    name: str = ""
    """Name."""
    capacity: Quantity = ""
    """Capacity as a Kubernetes quantity."""
    state: str = ""
    """Enabled, Disabled or Absent."""
    raid_type: str = msgspec.field(name="raidType", default="")
    """RAID type."""
    volume_usage: str = ""
    """What the volume is used for."""


class Storage(Model, frozen=True, kw_only=True):
    """One storage controller."""

    name: str = ""
    """Name."""
    state: str = ""
    """Enabled, Disabled or Absent."""
    volumes: tuple[StorageVolume, ...] = ()
    """Volumes."""
    drives: tuple[StorageDrive, ...] = ()
    """Drives."""


class Wait(Model, frozen=True, kw_only=True):
    """What the server waits for, and until when."""

    for_: str = msgspec.field(name="for", default="")
    """Name of the wait in CamelCase, for programs."""
    since: datetime | None = None
    """When the wait began."""
    until: datetime | None = None
    """Deadline; what happens then is the state's business."""


class Failure(Model, frozen=True, kw_only=True):
    """Why the server is in Error."""

    state: str = ""
    """State that was interrupted."""
    reason: str = ""
    """CamelCase word for programs."""
    message: str = ""
    """What failed, what was awaited, and what to do."""


class ClaimBoot(Model, frozen=True, kw_only=True):
    """The last network boot that a claim got, recorded on the Server so that nothing else can cause a second one."""

    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim."""
    image: str = ""
    """Image that was booted."""
    ignition_secret: str | None = None
    """Name of the Secret whose Ignition was booted, empty without Ignition; absent when nobody knows."""
    booted_at: datetime | None = None
    """When the machine fetched what it needed to boot; empty while the boot is still owed."""
    boot_generation: int = 0
    """spec.bootGeneration of the claim that this boot has answered."""
    requested_generation: int = 0
    """spec.bootGeneration of the claim for which another boot is under way or awaited."""


class ServerStatus(Model, frozen=True, kw_only=True):
    """What the server is."""

    state: Annotated[str, Choice("", *State)] = ""
    """Initial, Discovery, Available, Reserved, Released, Parked, Cleanup, Maintenance or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    wait: Wait | None = None
    """The wait in detail."""
    failure: Failure | None = None
    """Why the server is in Error."""
    interruption: Interruption | None = None
    """What Maintenance or Parked interrupted."""
    operation_request: OperationRequest | None = None
    """Reset that was asked for by annotation and not done yet."""
    power_state: str = ""
    """Power state as the BMC last reported it."""
    power_request: "PowerRequest | None" = None
    """Power change that was asked for and not yet seen."""
    on_requested_at: datetime | None = None
    """When power On was last asked for, as long as it has not been seen since: until then Off may be an old reading."""
    indicator_led: str = msgspec.field(name="indicatorLED", default="")
    """Location LED as the BMC last reported it."""
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
    """Memory as a Kubernetes quantity."""
    processors: tuple[Processor, ...] = ()
    """Processor packages."""
    storages: tuple[Storage, ...] = ()
    """Storage controllers."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    """Network interfaces."""
    inventory: Inventory | None = None
    """What the last complete discovery has found, to compare the next one with."""
    boot_window: BootWindow | None = None
    """The network boot that is under way, or was last."""
    claim_boot: ClaimBoot | None = None
    """The last network boot that the present claim got."""
    tenant: str = ""
    """UID of the claim whose tenant may have left traces on the machine; empty once it was sanitized."""
    boot_attempts: int = 0
    """Failed network boots in a row."""
    tenant_served: bool = False
    """Whether an earlier network boot of the present tenant was handed anything before it failed."""
    drives: tuple[KnownDrive, ...] = ()
    """Drives that the server had when it was discovered."""
    sanitization_policy: Annotated[str, Choice("", *Policy)] = ""
    """What must become of the present tenant's data, also when its claim is gone: None, Clear or Purge."""
    sanitization_progress: SanitizationProgress | None = None
    """How far the erasure has come that is under way."""
    firmware_reset: FirmwareReset | None = None
    """What is being done to the firmware after the last tenant."""
    sanitization_evidence: str = ""
    """Name of the SanitizationEvidence of the last erasure."""
    sanitization: str = ""
    """What became of the last tenant's data: Clear or Purge (the weakest that a drive reached), None when the policy
    was to leave it, NotOwed when nothing of the tenant had reached the machine, Accepted when somebody accepted what
    its erasure owes."""
    ssh_host_key: Pin | None = None
    """SSH host key of the BMC in spec.bmc, pinned by the first console; that of a BMC object is in its own status."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Ready and others; other components may add their own."""


class PowerRequest(Model, frozen=True, kw_only=True):
    """A power change in progress."""

    target: str
    """On or Off."""
    reason: str = ""
    """Who wants it."""
    requested_at: datetime | None = None
    """When it was first asked for."""
    forced_at: datetime | None = None
    """When it was forced; empty while it is graceful."""
    deadline: datetime | None = None
    """When it counts as failed."""


class Server(Model, frozen=True, kw_only=True):
    """One computer system."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerSpec = ServerSpec()
    status: ServerStatus = ServerStatus()

    @property
    def uuid(self) -> str:
        """The system's UUID in lower case."""
        return (self.spec.system_uuid or self.spec.uuid).lower()
