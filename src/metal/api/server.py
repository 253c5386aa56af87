"""Server: one physical computer system, its desired settings and its observed state."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from metal.api.bmc import TLS_KEPT, ConsoleProtocol, Pin, Protocol, TLSPolicy
from metal.api.boot_window import BootWindow
from metal.api.common import LocalRef, ObjectRef, Taint
from metal.api.interruption import Interruption, OperationRequest
from metal.api.inventory import Inventory
from metal.api.markers import Choice, Defaulted, ListMap, Quantity, Required, Rule, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.network import NetworkInterface
from metal.api.sanitization import FirmwareReset, KnownDrive, OwedDrive, SanitizationProgress
from metal.api.storage import Storage
from metal.api.tenancy import ClaimBoot, Tenancy


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
            TLS_KEPT,
        )
    )

    protocol: Protocol
    """Protocol, port and URL scheme of the BMC's management service."""
    address: str = ""
    """IP address or host name of the BMC. Exactly one of address and endpointRef must be set."""
    bmc_secret_ref: Annotated[LocalRef, Required()] = LocalRef()
    """BMCSecret that holds the user name and the password for the BMC."""
    endpoint_ref: LocalRef | None = None
    """Endpoint that holds the address of the BMC. Exactly one of address and endpointRef must be set."""
    console_protocol: ConsoleProtocol | None = None
    """Protocol and port of the serial console. Defaults to SSH on port 22."""
    tls: TLSPolicy | None = None
    """How the TLS certificate of the BMC is verified. Defaults to section bmc of the manager's configuration."""


class BootOrder(Model, frozen=True, kw_only=True):
    """BootOrder is one entry of the persistent boot order."""

    name: str
    """Name of the entry. For display only."""
    priority: int
    """Position in the boot order. Lower values boot first."""
    device: str
    """Boot option in the Redfish property BootOrder of the system, such as Boot0003. Other values are rejected."""


class BIOSSettings(Model, frozen=True, kw_only=True):
    """BIOS settings for one BIOS version. Accepted for compatibility; no controller applies them."""

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
                f"has(self.systemUUID) || {_given('uuid')}",
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
    """SMBIOS UUID of the system. One of systemUUID and uuid is required. The server is not managed while the value is
    empty or is not a UUID (reason InvalidSpec)."""
    uuid: str = msgspec.field(name="uuid", default="")
    """Deprecated. Use systemUUID."""
    system_uri: str = msgspec.field(name="systemURI", default="")
    """Redfish path of the system, such as /redfish/v1/Systems/1. The controller sets it and finds the system by its
    UUID when the path is empty or outdated."""
    power: Annotated[str, Choice("", "On", "Off")] = ""
    """Deprecated. The controller removes it. Set spec.power of the ServerClaim instead."""
    indicator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="indicatorLED", default=""
    )
    """Desired state of the location LED: Unknown, Lit, Blinking or Off. Empty and Unknown do not change it."""
    reclaim_policy: Annotated[str, Choice("Recycle", "Retain"), Defaulted()] = "Recycle"
    """What happens after the claim is deleted. Recycle sanitizes the server and makes it available again. Retain keeps
    it in state Released. It sanitizes the server too, which then stays off until spec.serverClaimRef is removed.
    Defaults to Recycle."""
    server_claim_ref: Annotated[
        ObjectRef | None,
        Rule(
            "self.__namespace__ == oldSelf.__namespace__",
            "namespace of serverClaimRef is immutable: remove the reference first",
        ),
        Rule("self.name == oldSelf.name", "name of serverClaimRef is immutable: remove the reference first"),
    ] = None
    """ServerClaim that the server is bound to, set by the controller. It cannot be changed, only removed."""
    bmc_ref: LocalRef | None = None
    """BMC that manages the server. One of bmcRef and bmc is required; if both are set, bmcRef is used."""
    bmc: InlineBMC | None = None
    """Access to the BMC without a BMC object. One of bmcRef and bmc is required; if both are set, bmcRef is used."""
    boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration of the next network boot. Set by the controller."""
    boot_order: tuple[BootOrder, ...] = ()
    """Persistent boot order of the machine. If empty, the boot order is not changed."""
    bios: tuple[BIOSSettings, ...] = msgspec.field(name="BIOS", default=())
    """Accepted for compatibility. BIOS settings, one entry for each BIOS version. No controller applies them."""
    taints: Annotated[tuple[Taint, ...], ListMap("key", "effect")] = ()
    """Taints that prevent claims without a matching toleration from binding the server. A taint is identified by its
    key and effect."""
    unclaimable: Annotated[bool, Defaulted()] = False
    """If true, new claims cannot bind the server (cordon). A claim that is already bound is not affected."""
    server_maintenance_ref: ObjectRef | None = None
    """ServerMaintenance that the server is assigned to. Set by the controller."""
    maintenance_boot_configuration_ref: ObjectRef | None = None
    """ServerBootConfiguration of the ServerMaintenance. Set by the controller."""
    bios_settings_ref: LocalRef | None = None
    """Accepted for compatibility. No controller reads it."""


class Processor(Model, frozen=True, kw_only=True):
    """A processor package."""

    id: str
    """Identifier that the BMC uses."""
    type: str = ""
    """Type, such as CPU, GPU or FPGA."""
    architecture: str = ""
    """Architecture, such as x86 or ARM."""
    instruction_set: str = ""
    """Instruction set, such as x86-64 or ARM-A64."""
    manufacturer: str = ""
    """Manufacturer of the processor."""
    model: str = ""
    """Model of the processor."""
    max_speed_mhz: int = msgspec.field(name="maxSpeedMHz", default=0)
    """Maximum clock rate in MHz."""
    total_cores: int = 0
    """Number of cores."""
    total_threads: int = 0
    """Number of hardware threads."""


class Wait(Model, frozen=True, kw_only=True):
    """What the controller waits for, and the deadline."""

    for_: str = msgspec.field(name="for", default="")
    """Machine-readable name of the wait in CamelCase, such as ProbeReport."""
    since: datetime | None = None
    """Time at which the wait started."""
    until: datetime | None = None
    """Deadline of the wait; docs/states.md describes what happens then. Empty when there is none."""


class FailingOperation(Model, frozen=True, kw_only=True):
    """An operation on the BMC that failed and has not succeeded since. It is repeated with growing pauses."""

    operation: str
    """Name of the operation, such as power-on, set-boot-override or read-inventory."""
    reason: str = ""
    """Machine-readable reason of the last failure in CamelCase, such as InternalServerError."""
    message: str = ""
    """Human-readable details of the last failure."""
    count: int = 0
    """Number of failed attempts since the operation last succeeded."""
    first_failed_at: datetime | None = None
    """Time of the first failure since the operation last succeeded. Its deadline, timeouts.bmc, starts here."""
    last_failed_at: datetime | None = None
    """Time of the last failure."""
    retry_at: datetime | None = None
    """Time before which the operation is not requested again."""


class Failure(Model, frozen=True, kw_only=True):
    """Why the server is in state Error."""

    state: str = ""
    """State in which the operation failed."""
    operation: str = ""
    """Operation on the BMC that failed, such as power-on. Empty when another step failed."""
    reason: str = ""
    """Machine-readable reason in CamelCase, such as PowerOnTimeout."""
    message: str = ""
    """Human-readable details: what failed, what the controller waited for, and what to do."""


class ServerStatus(Model, frozen=True, kw_only=True):
    """Observed state of a server."""

    state: Annotated[str, Choice("", *State)] = ""
    """State of the server: Initial, Discovery, Available, Reserved, Released, Parked, Cleanup, Maintenance or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    wait: Wait | None = None
    """Name and deadline of what the controller waits for."""
    failure: Failure | None = None
    """Why the server is in state Error."""
    failing_operations: Annotated[tuple[FailingOperation, ...], ListMap("operation")] = ()
    """Operations on the BMC that have failed and not succeeded since."""
    interruption: Interruption | None = None
    """State that Maintenance or Parked interrupted."""
    operation_request: OperationRequest | None = None
    """Reset that was requested with the annotation metal.ironcore.dev/operation and is not complete."""
    power_state: str = ""
    """Power state, as last reported by the BMC: On, Off, Paused, PoweringOn, PoweringOff or Unknown."""
    power_request: "PowerRequest | None" = None
    """Power change that was requested and is not complete."""
    on_requested_at: datetime | None = None
    """Time of the last request to power on. Cleared when the BMC reports On; until then a reported Off may be
    outdated."""
    indicator_led: str = msgspec.field(name="indicatorLED", default="")
    """State of the location LED, as last reported by the BMC, such as Lit, Blinking or Off."""
    manufacturer: str = ""
    """Manufacturer of the server."""
    model: str = ""
    """Model of the server."""
    sku: str = ""
    """Stock keeping unit (SKU) of the manufacturer."""
    serial_number: str = ""
    """Serial number of the server."""
    bios_version: str = ""
    """BIOS version."""
    total_system_memory: Quantity = ""
    """Size of the memory, as a Kubernetes quantity."""
    architecture: str = ""
    """Architecture for which images are chosen, such as amd64 or arm64: as the BMC says, or else as the probe reported.
    Empty when neither said it. The label metal.ironcore.dev/architecture of the Server takes precedence."""
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
    tenancy: Tenancy = Tenancy()
    """Whose machine the server is, and whether its drives hold data of a tenant."""
    boot_attempts: int = 0
    """Number of consecutive failed network boots."""
    drives: tuple[KnownDrive, ...] = ()
    """Drives that the last Discovery or sanitization found, and those that the BMC listed before a later claim's boot.
    After a claim, each of them must be erased."""
    owed_drives: tuple[OwedDrive, ...] = ()
    """Drives with data of a claim of another Server. The server is not Available until they are erased or accepted."""
    sanitization_progress: SanitizationProgress | None = None
    """Progress of the running sanitization."""
    firmware_reset: FirmwareReset | None = None
    """Reset of the firmware after the last claim."""
    sanitization_evidence: str = ""
    """Name of the SanitizationEvidence of the last sanitization."""
    ssh_host_key: Pin | None = None
    """SSH host key of the BMC in spec.bmc, pinned by the first console session. The host key of a BMC object is in its
    own status."""
    connected_secret_uid: str = msgspec.field(name="connectedSecretUID", default="")
    """UID of the BMCSecret with which the BMC in spec.bmc was connected last. Empty when unknown."""
    old_claim_boot: ClaimBoot | None = msgspec.field(name="claimBoot", default=None)
    """Deprecated: use tenancy.boot. The value of an earlier version is converted once and removed."""
    old_tenant: str = msgspec.field(name="tenant", default="")
    """Deprecated: use tenancy.claimRef. The value of an earlier version is converted once and removed."""
    old_tenant_served: bool = msgspec.field(name="tenantServed", default=False)
    """Deprecated: use tenancy.data. The value of an earlier version is converted once and removed."""
    old_sanitization_policy: str = msgspec.field(name="sanitizationPolicy", default="")
    """Deprecated: use tenancy.policy. The value of an earlier version is converted once and removed."""
    old_sanitization: str = msgspec.field(name="sanitization", default="")
    """Deprecated: use tenancy.sanitization. The value of an earlier version is converted once and removed."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the server, such as Ready, BMCReachable, BMCOperational, Discovered, SettingsApplied and Sanitized.
    Other components can add conditions for a ServerReadinessRule."""


class PowerRequest(Model, frozen=True, kw_only=True):
    """A power change in progress."""

    target: str
    """Desired power state: On or Off."""
    reason: str = ""
    """Human-readable reason for the power change."""
    requested_at: datetime | None = None
    """Time at which the power change was first requested."""
    forced_at: datetime | None = None
    """Time at which power was cut without a shutdown of the operating system. Empty until then."""
    deadline: datetime | None = None
    """Time at which the change is considered failed."""


class Server(Model, frozen=True, kw_only=True):
    """Server is one physical computer system."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerSpec = ServerSpec()
    status: ServerStatus = ServerStatus()

    @property
    def uuid(self) -> str:
        """The system's UUID in lower case."""
        return (self.spec.system_uuid or self.spec.uuid).lower()
