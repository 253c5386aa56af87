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
    """How often an idle server is checked; a power change outside the operator is detected after at most this time."""
    observe_max_age: float = 1.0
    """How old a reading of the BMC may be while an operation is in progress."""
    power_poll: float = 1.0
    """First interval between two readings during a power change; it grows with the elapsed time."""
    graceful_timeout: float = 120.0
    """How long an operating system may take to shut down before power is cut."""
    power_timeout: float = 600.0
    """How long any power change may take; slow machines need minutes to answer after a firmware update."""
    power_settle: float = 60.0
    """How long a BMC may report Off after power On was requested. Until On was read, or this time has passed, its Off
    does not count; caches of BMCs are seconds old, and the command itself may be late."""
    boot_config_timeout: float = 900.0
    """How long the boot server may take to have an image ready; a first download can be large."""
    discovery_timeout: float = 1800.0
    """How long a boot of the probe may take, from the opening of its window to the report, or to the begin of an
    erasure; large servers train memory for minutes."""
    claim_boot_timeout: float = 1800.0
    """How long a machine may take from power-on to fetching the tenant's Ignition."""
    race_window: float = CONTEST_PERIOD.total_seconds()
    """How long a boot is not trusted while no DHCP lease of the machine is known: until then the machine's own request
    for its script may still show that another client was served. Servers need minutes from power-on to that request."""
    minimum_trust: str = "Lease"
    """The trust that each network boot must reach: OutOfBand, Lease or FirstRequest. With FirstRequest another machine
    on the boot network can be taken for the server, so it must be chosen."""
    boot_attempts: int = 3
    """How many network boots may fail in a row before the server goes to Error."""
    boot_retry: float = 30.0
    """Pause before the second network boot; it doubles with each failure."""
    sanitization_policy: str = "Clear"
    """How a tenant's data is erased when neither claim nor label sets it: None, Clear or Purge. None, which leaves the
    data, must be chosen, so it is not the default."""
    non_unique_drives: frozenset[str] = frozenset()
    """Serial numbers and models of drives whose serial number is not unique, in the form of `placeholders.plain`."""
    unknown_data: str = "Erase"
    """What happens to an unclaimed server that another operator left Available: Erase or Trust. What is on its
    drives is not recorded, so that it is trusted must be chosen."""
    adoption_wave: int = 10
    """How many of them are erased at the same time; the others wait, so that a site keeps its power and its network."""
    sanitization_opt_out: bool = False
    """Whether a claim may require less than the setting. A claim that leaves its data hands it to the next namespace,
    so it must be chosen."""
    sanitization_timeout: float = 7200.0
    """How long a sanitization may take besides erasing its largest drive; drives of an unknown size have only this."""
    sanitization_rate: int = 50_000_000
    """Bytes per second at which the largest drive must be erased; hard disks write three times that."""
    sanitization_grace: float = 900.0
    """How long a report is still awaited when nothing was done at the deadline of an erasure, because manager, API or
    BMC was away; a probe asks again every 30 s, or after the five minutes at most that it was told to wait."""
    sanitization_poll: float = 15.0
    """How often the progress of an erasure is copied to the Server's status; evidence is written every 10 s at most."""
    sanitization_firmware: str = "None"
    """Which firmware settings are reset after a tenant: None, ClearTPM or ResetBIOS. A BIOS with default settings may
    not boot from the network any more, so a reset must be chosen."""
    sanitization_firmware_required: bool = False
    """Whether a server is available only after that reset has succeeded; otherwise the evidence records its result."""
    signing_key: str = "metal-evidence-key"
    """Name of the Secret with the key that signs evidence; it is created if it is missing."""
    bmc_timeout: float = 900.0
    """How long a BMC may be unreachable before the server goes to Error; a firmware reset takes minutes."""
    bmc_retry: float = 15.0
    """Pause before a request to a BMC that failed is repeated."""
    event_max_age: float = 900.0
    """How long after the last event of its BMC a server is polled less often; the same as in BMCSettings."""
    event_slowdown: float = 1.0
    """How many times less often an idle server is polled while its BMC sends events; 1 changes nothing."""
