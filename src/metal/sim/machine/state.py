"""What a machine would keep while nobody looks: it is saved, so that a restarted simulator finds it as it was."""

import msgspec

BIOS_DEFAULTS = {"ProcVirtualization": "Enabled", "Tpm2Operation": "NoAction", "TpmState": "PresentEnabled"}
"""BIOS attributes as they come; HPE's names where the standard has none."""


class OS(msgspec.Struct, kw_only=True):
    """An operating system that runs. kind is probe, sanitizer, tenant, or disk."""

    kind: str
    image: str = ""
    """SHA-256 over kernel and RAM disk."""
    ignition: str = ""
    """SHA-256 of the Ignition, empty where there was none."""
    hostname: str = ""
    """What the Ignition says."""
    registry_url: str = ""
    uuid: str = ""
    """The machine's UUID, as the probe was told."""
    token: str = ""
    """The probe's report token: the machine's memory holds it, so the saved state does. Never in the history."""
    task: str = ""
    """What a sanitizer was told to do: JSON, policy and drives."""
    reported: bool = False

    def __repr__(self) -> str:
        return f"<OS {self.kind} {self.image[:12]} {'reported' if self.reported else ''}>"


class Disk(msgspec.Struct, kw_only=True):
    """What is installed. marker stands for the tenant's data."""

    image: str = ""
    marker: str = ""


class Override(msgspec.Struct, kw_only=True):
    """The boot override (Redfish ComputerSystem.Boot)."""

    enabled: str = "Disabled"
    target: str = "None"
    mode: str = "UEFI"
    http_boot_uri: str = ""

    @property
    def is_network(self) -> bool:
        """Whether the next boot goes to the network."""
        return self.enabled in ("Once", "Continuous") and self.target in ("Pxe", "UefiHttp")


class Bios(msgspec.Struct, kw_only=True):
    """What a BIOS is set to, and what it is to do as the machine starts. tpm stands for what a tenant keeps in it."""

    attributes: dict[str, str] = msgspec.field(default_factory=lambda: dict(BIOS_DEFAULTS))
    coming: dict[str, str] = msgspec.field(default_factory=dict)
    reset_pending: bool = False
    tpm: str = ""


class State(msgspec.Struct, kw_only=True):
    """Everything that changes about a machine."""

    power: str = "Off"
    override: Override = msgspec.field(default_factory=Override)
    boot_order: list[str] = msgspec.field(default_factory=lambda: ["Boot0001", "Boot0002", "Boot0003"])
    led: str = "Off"
    os: OS | None = None
    disk: Disk = msgspec.field(default_factory=Disk)
    bios: Bios = msgspec.field(default_factory=Bios)
    netbooting: bool = False
    """Whether a boot from the network is under way: it has used up its override."""
