"""The mutable state of a simulated machine, saved so that a restarted simulator continues with it."""

import msgspec

BIOS_DEFAULTS = {"ProcVirtualization": "Enabled", "Tpm2Operation": "NoAction", "TpmState": "PresentEnabled"}
"""Default BIOS attributes, with HPE's names."""


class OS(msgspec.Struct, kw_only=True):
    """A running operating system. `kind` is probe, sanitizer, tenant or disk."""

    kind: str
    image: str = ""
    """SHA-256 over kernel and RAM disk."""
    ignition: str = ""
    """SHA-256 of the Ignition, empty without one."""
    hostname: str = ""
    """Host name from the Ignition."""
    registry_url: str = ""
    uuid: str = ""
    """The machine's UUID from the probe's command line."""
    token: str = ""
    """The probe's report token; part of the saved state, never of the history."""
    task: str = ""
    """The sanitizer's task in JSON: policy and drives."""
    reported: bool = False

    def __repr__(self) -> str:
        return f"<OS {self.kind} {self.image[:12]} {'reported' if self.reported else ''}>"


class Disk(msgspec.Struct, kw_only=True):
    """The installed system. `marker` represents the tenant's data."""

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
        """Whether the next boot is a network boot."""
        return self.enabled in ("Once", "Continuous") and self.target in ("Pxe", "UefiHttp")


class Bios(msgspec.Struct, kw_only=True):
    """BIOS attributes and pending changes. `tpm` represents the tenant's keys."""

    attributes: dict[str, str] = msgspec.field(default_factory=lambda: dict(BIOS_DEFAULTS))
    pending: dict[str, str] = msgspec.field(default_factory=dict, name="coming")
    reset_pending: bool = False
    tpm: str = ""


class State(msgspec.Struct, kw_only=True):
    """The mutable state of a machine."""

    power: str = "Off"
    override: Override = msgspec.field(default_factory=Override)
    boot_order: list[str] = msgspec.field(default_factory=lambda: ["Boot0001", "Boot0002", "Boot0003"])
    led: str = "Off"
    os: OS | None = None
    disk: Disk = msgspec.field(default_factory=Disk)
    bios: Bios = msgspec.field(default_factory=Bios)
    netbooting: bool = False
    """Whether a network boot is in progress, which has cleared its override already."""
    boot_url: str = ""
    """URL of the UEFI HTTP boot in progress, empty for one by DHCP."""
    medium: str = ""
    """URL of the inserted virtual medium."""
    asset_tag: str = ""
    """As the BMC has it."""
    smbios_tag: str = ""
    """As the firmware shows it in SMBIOS."""
    secure_boot: bool = False
    """Whether the firmware refuses what is not signed."""

    def __repr__(self) -> str:
        return f"<State {self.power} {self.os or 'no OS'}>"
