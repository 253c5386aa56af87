"""Settings of the Server reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass, field

from metal.machine.boot_window import CONTEST_PERIOD


@dataclass(frozen=True)
class ServerSettings:
    """How the Server reconciler behaves. Durations are in seconds."""

    namespace: str = "metal-system"
    """Namespace of the discovery boot configurations, their Secrets and the inventories."""
    probe_image: str = ""
    """OCI reference of the operating system that metalprobe runs in."""
    registry_url: str = ""
    """Where metalprobe reports to, as the machine sees it."""
    probe_bundle: bytes = field(default=b"", repr=False)
    """metalprobe itself, a Python zip application; it travels in the discovery Ignition."""
    resync: float = 120.0
    """How often an idle server is looked at; power changed by hand is noticed this late."""
    observe_max_age: float = 1.0
    """How old a reading of the BMC may be while something is in progress."""
    power_poll: float = 1.0
    """First interval between two looks at a power change; grows with the time it takes."""
    graceful_timeout: float = 120.0
    """How long an operating system may take to shut down before power is cut."""
    power_timeout: float = 600.0
    """How long any power change may take; slow machines need minutes to answer after a firmware update."""
    power_settle: float = 60.0
    """How long a BMC may go on reporting Off after it was asked to switch on. Until On was seen, or this time has
    passed, its Off is not believed; caches of BMCs are seconds old, and the command itself may be late."""
    boot_config_timeout: float = 900.0
    """How long the boot server may take to have an image ready; a first download can be large."""
    discovery_timeout: float = 1800.0
    """How long a boot of the probe may take, from the opening of its window to the report, or to the begin of an
    erasure; large servers train memory for minutes."""
    claim_boot_timeout: float = 1800.0
    """How long a machine may take from power-on to fetching the tenant's Ignition."""
    race_window: float = CONTEST_PERIOD.total_seconds()
    """How long a boot is not believed while no DHCP lease of the machine is known: until then the machine's own request
    for its script may still show that another client was served. Servers need minutes from power-on to that request."""
    boot_attempts: int = 3
    """How many network boots may fail in a row before the server goes to Error."""
    boot_retry: float = 30.0
    """Pause before the second network boot; it doubles with each failure."""
    sanitization_policy: str = "Clear"
    """What becomes of a tenant's data where neither claim nor label says: None, Clear or Purge. A policy must be chosen
    to leave the data, so it is not the default."""
    sanitization_opt_out: bool = True
    """Whether a claim may ask for less than label or setting do."""
    sanitization_timeout: float = 7200.0
    """How long a sanitization may take besides erasing its largest drive; drives of an unknown size have only this."""
    sanitization_rate: int = 50_000_000
    """Bytes a second, at which the largest drive must be erased; hard disks write three times that."""
    sanitization_poll: float = 15.0
    """How often the progress of an erasure is brought to the Server's status; it is written down every 10 s at most."""
    sanitization_firmware: str = "None"
    """What of the firmware is put back after a tenant: None, ClearTPM or ResetBIOS. A BIOS with its defaults may not
    boot from the network any more, so it must be asked for."""
    sanitization_firmware_required: bool = False
    """Whether a server is held back until that has succeeded; else evidence tells what became of it."""
    signing_key: str = "metal-evidence-key"
    """Name of the Secret with the key that signs evidence; it is made where it is missing."""
    bmc_timeout: float = 900.0
    """How long a BMC may be unreachable before the server goes to Error; a firmware reset takes minutes."""
    bmc_retry: float = 15.0
    """Pause before a BMC that failed is asked again."""
    event_max_age: float = 900.0
    """How long after the last event of its BMC a server is looked at less often; that of BMCSettings."""
    event_slowdown: float = 1.0
    """How many times less often an idle server is looked at while its BMC sends events; 1 changes nothing."""
