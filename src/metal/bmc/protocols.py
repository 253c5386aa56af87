"""What a controller may ask of a BMC, as small protocols by capability. No HTTP, no paths, no JSON.

A system is named by its `uri`, an opaque string that `Systems.systems` gave out. Every method has a deadline of its own
and raises a subclass of `metal.bmc.errors.BMCError`; none waits for a machine to change its state.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class PowerState(StrEnum):
    """Power state of a system or manager (Redfish Resource.PowerState, DSP0268)."""

    ON = "On"
    OFF = "Off"
    PAUSED = "Paused"
    POWERING_ON = "PoweringOn"
    POWERING_OFF = "PoweringOff"
    UNKNOWN = "Unknown"


class ResetType(StrEnum):
    """Kinds of reset (Redfish Resource.ResetType, DSP0268)."""

    ON = "On"
    FORCE_ON = "ForceOn"
    FORCE_OFF = "ForceOff"
    GRACEFUL_SHUTDOWN = "GracefulShutdown"
    GRACEFUL_RESTART = "GracefulRestart"
    FORCE_RESTART = "ForceRestart"
    POWER_CYCLE = "PowerCycle"
    PUSH_POWER_BUTTON = "PushPowerButton"
    NMI = "Nmi"


class BootTarget(StrEnum):
    """Where a one-time boot override points (Redfish BootSource)."""

    NONE = "None"
    PXE = "Pxe"
    UEFI_HTTP = "UefiHttp"
    HDD = "Hdd"
    CD = "Cd"


class BootEnabled(StrEnum):
    """How long a boot override holds (Redfish BootSourceOverrideEnabled)."""

    DISABLED = "Disabled"
    ONCE = "Once"
    CONTINUOUS = "Continuous"


@dataclass(frozen=True)
class BootOverride:
    """The boot override as the BMC reports it. Fields the BMC does not report are empty."""

    enabled: str = ""
    target: str = ""
    mode: str = ""
    http_boot_uri: str = ""

    @property
    def is_network(self) -> bool:
        """True when the next boot would go to the network."""
        return self.enabled in ("Once", "Continuous") and self.target in ("Pxe", "UefiHttp")


@dataclass(frozen=True)
class ManagerInfo:
    """The BMC itself (Redfish Manager)."""

    uri: str
    uuid: str = ""
    manufacturer: str = ""
    model: str = ""
    sku: str = ""
    serial_number: str = ""
    firmware_version: str = ""
    state: str = ""
    power_state: PowerState = PowerState.UNKNOWN
    last_reset_time: str = ""


@dataclass(frozen=True)
class SystemInfo:
    """One computer system, from one read."""

    uri: str
    uuid: str
    manufacturer: str = ""
    model: str = ""
    sku: str = ""
    serial_number: str = ""
    bios_version: str = ""
    power_state: PowerState = PowerState.UNKNOWN
    indicator_led: str = ""
    total_memory_bytes: int = 0
    boot: BootOverride = BootOverride()
    boot_order: tuple[str, ...] = ()
    bootable: bool = True
    """False when the system offers no boot override at all (then it is no server)."""


@dataclass(frozen=True)
class Processor:
    """One processor package."""

    id: str
    type: str = ""
    architecture: str = ""
    instruction_set: str = ""
    manufacturer: str = ""
    model: str = ""
    max_speed_mhz: int = 0
    total_cores: int = 0
    total_threads: int = 0


@dataclass(frozen=True)
class MemoryModule:
    """One memory module."""

    id: str
    size_bytes: int = 0
    type: str = ""
    speed_mhz: int = 0
    manufacturer: str = ""
    part_number: str = ""
    serial_number: str = ""


@dataclass(frozen=True)
class Drive:
    """One drive of a storage controller."""

    name: str
    media_type: str = ""
    type: str = ""
    capacity_bytes: int = 0
    vendor: str = ""
    model: str = ""
    serial_number: str = ""
    state: str = ""
    health: str = ""


@dataclass(frozen=True)
class Volume:
    """One volume of a storage controller."""

    name: str
    capacity_bytes: int = 0
    state: str = ""
    raid_type: str = ""
    usage: str = ""
    health: str = ""
    wwn: str = ""
    """World-wide identifier (NAA, EUI or NGUID), by which an operating system knows it, too."""
    drives: tuple[Drive, ...] = ()
    """Its drives; none unless all of them are known."""


@dataclass(frozen=True)
class Storage:
    """One storage controller with its drives and volumes."""

    name: str
    state: str = ""
    drives: tuple[Drive, ...] = ()
    volumes: tuple[Volume, ...] = ()


@dataclass(frozen=True)
class NetworkInterface:
    """One Ethernet interface as the BMC sees it. mac_address is lower case with colons."""

    name: str
    mac_address: str
    link_status: str = ""


@dataclass(frozen=True)
class Inventory:
    """Everything out-of-band inventory found. Best effort: `problems` says in sentences what could not be read."""

    system: SystemInfo
    processors: tuple[Processor, ...] = ()
    memory: tuple[MemoryModule, ...] = ()
    """Only read where the system itself gives no total: a big machine has dozens, and each is a request."""
    storages: tuple[Storage, ...] = ()
    network_interfaces: tuple[NetworkInterface, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class BMCEndpoint:
    """How to reach one BMC. `key` names it in pools and logs (the BMC object's name)."""

    key: str
    address: str
    port: int = 443
    scheme: str = "https"
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    verify: bool = True
    """False accepts any certificate; must be asked for."""
    ca_pem: str = field(default="", repr=False)
    fingerprint: str = ""
    """SHA-256 of the only accepted certificate, hex; pins instead of verifying a chain."""


@dataclass(frozen=True)
class ShellAccess:
    """How to reach a BMC's command line over SSH."""

    address: str
    port: int = 22
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    host_key: str = ""
    """SHA-256 of the only accepted host key, as ssh-keygen shows it."""


@dataclass(frozen=True)
class Subscription:
    """One event destination that a BMC knows. Its destination holds a secret token."""

    uri: str
    destination: str = field(default="", repr=False)
    context: str = ""


class Power(Protocol):
    """Changes power. None of these waits until the change has happened."""

    async def power_on(self, uri: str) -> None:
        """Ask for power with the first allowable of On, ForceOn, PushPowerButton."""
        ...

    async def power_off(self, uri: str, *, force: bool = False) -> None:
        """Ask the operating system to shut down, or cut the power when forced."""
        ...

    async def reset(self, uri: str, reset_type: ResetType) -> None:
        """Exactly this reset; BMCNotSupported when the BMC does not list it."""
        ...


class Boot(Protocol):
    """Chooses what a system boots from."""

    async def set_network_boot(self, uri: str, target: BootTarget = BootTarget.PXE) -> BootOverride:
        """Boot once from the network at the next start; returns the override as read back."""
        ...

    async def clear_boot_override(self, uri: str) -> BootOverride:
        """No override; returns it as read back."""
        ...

    async def set_boot_order(self, uri: str, order: tuple[str, ...]) -> None:
        """Persistent boot order, device references first to last."""
        ...


class Systems(Protocol):
    """Reads what is there."""

    async def manager(self, uuid: str = "") -> ManagerInfo:
        """The manager with this UUID, or the one that offers a console, or the first."""
        ...

    async def systems(self) -> tuple[SystemInfo, ...]:
        """All computer systems of this BMC."""
        ...

    async def system(self, uri: str) -> SystemInfo:
        """One system, read now."""
        ...

    async def inventory(self, uri: str) -> Inventory:
        """Processors, memory, storage and NICs, best effort."""
        ...

    async def bios_attributes(self, uri: str) -> dict[str, str | int | bool | None]:
        """Current BIOS attributes; empty when the BMC offers none."""
        ...


class Firmware(Protocol):
    """Puts firmware back to how it came. What is asked for takes effect as the machine starts."""

    async def reset_bios(self, uri: str) -> None:
        """All BIOS attributes to their defaults. BMCNotSupported where the BMC offers no such action."""
        ...

    async def is_bios_reset_pending(self, uri: str) -> bool | None:
        """Whether that is still to come; None where the BMC does not tell."""
        ...

    async def clear_tpm(self, uri: str) -> None:
        """Everything that the TPM holds for anybody. BMCNotSupported where no known BIOS attribute does that."""
        ...

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        """Whether that is still to come; None where the BMC does not tell."""
        ...


class Indicator(Protocol):
    """The location LED."""

    async def set_indicator_led(self, uri: str, state: str) -> None:
        """Off, Lit or Blinking."""
        ...


class ManagerControl(Protocol):
    """Acts on the BMC itself."""

    async def reset_manager(self, uuid: str = "") -> None:
        """Restart the BMC gracefully."""
        ...


class Events(Protocol):
    """Has the BMC tell when something happens. BMCNotSupported where it has no EventService."""

    async def subscriptions(self) -> tuple[Subscription, ...]:
        """All event destinations that can be read."""
        ...

    async def subscription(self, uri: str) -> Subscription | None:
        """One event destination; None when the BMC has forgotten it."""
        ...

    async def subscribe(self, destination: str, context: str) -> str:
        """The uri of a new event destination, or of the one with this destination and context if there is one."""
        ...

    async def unsubscribe(self, uri: str) -> None:
        """Remove an event destination; one that is gone already is fine."""
        ...

    async def send_test_event(self) -> None:
        """Have the BMC send an event to everybody who subscribed."""
        ...


class BMC(Power, Boot, Systems, Firmware, Indicator, ManagerControl, Events, Protocol):
    """All capabilities together, as handed out by a pool."""


class Pool(Protocol):
    """Hands out one shared BMC client for each access; a changed access replaces the old session."""

    def get(self, access: BMCEndpoint) -> BMC:
        """The client for this access, connected lazily; never blocks."""
        ...

    async def certificate(self, address: str, port: int) -> str:
        """SHA-256 in hexadecimal of the certificate shown there now. No credentials are sent. Raises BMCError."""
        ...

    async def drop(self, key: str) -> None:
        """Close and forget the client of this BMC (log out)."""
        ...

    async def aclose(self) -> None:
        """Close all."""
        ...


class Shell(Protocol):
    """A BMC's command line over SSH. Raises BMCError; BMCHostKeyChanged before any credentials are sent."""

    async def host_key(self, address: str, port: int = 22) -> str:
        """SHA-256 of the host key shown there now, as ssh-keygen shows it."""
        ...

    async def run(self, access: ShellAccess, command: str) -> None:
        """Run a command that ends with the BMC going away."""
        ...
