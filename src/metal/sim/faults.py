"""Faults of a simulated machine. Every fault can be switched at run time."""

from dataclasses import dataclass, fields


@dataclass
class Faults:
    """The faults of one machine."""

    dead: bool = False
    """The BMC drops every connection."""
    hangs: bool = False
    """The BMC accepts requests and never answers."""
    wrong_password: bool = False
    """The BMC accepts no credentials."""
    http_5xx: bool = False
    """The BMC answers a share of the requests (Options.error_rate) with 500 or 503."""
    http_401: bool = False
    """The BMC accepts the login, loses the session at once, and answers everything else with 401."""
    http_500: bool = False
    """The BMC answers every request with 500."""
    http_503: bool = False
    """The BMC answers every request with 503 and Retry-After: 30."""
    rejects_writes: bool = False
    """The BMC answers every change of the system with 500, and reads as usual."""
    in_post: bool = False
    """The BMC answers every change of the boot override with 400: the host is in POST."""
    restarts: bool = False
    """The BMC performs a requested power change and then restarts by itself (Options.bmc_reset)."""
    restarts_first: bool = False
    """The BMC accepts a reset of the system and restarts by itself before performing it."""
    stale_power: bool = False
    """The BMC reports the power state of Options.stale seconds ago."""
    lies_power: bool = False
    """The BMC accepts every reset and reports the requested state; the machine does nothing."""
    ignores_reset: bool = False
    """The BMC accepts every reset and does nothing; the state it reports is true."""
    slow: bool = False
    """The BMC takes Options.slow seconds for every response."""
    drops_override: bool = False
    """The BMC accepts a boot override and discards it."""
    loses_events: bool = False
    """The BMC accepts event subscriptions and sends nothing."""
    ignores_graceful: bool = False
    """The operating system ignores a request to shut down."""
    ignores_once: bool = False
    """The BMC keeps a one-time boot override after the boot."""
    never_reports: bool = False
    """metalprobe never reports."""
    reports_twice: bool = False
    """metalprobe repeats its report, and then sends a different one."""
    reports_other: bool = False
    """metalprobe reports with the UUID of another machine."""
    foreign_interface: bool = False
    """The report of metalprobe has a network interface that the BMC does not show, as that of another machine."""
    reports_late: bool = False
    """metalprobe reports Options.late seconds later than usual."""
    never_starts: bool = False
    """The machine powers on and does nothing."""
    no_lease: bool = False
    """DHCP gives the machine no address."""
    unreported_lease: bool = False
    """DHCP gives the machine an address and does not report the lease."""
    no_boot_server: bool = False
    """No request of the machine reaches the boot server."""
    no_registry: bool = False
    """No request of the machine reaches the registry."""
    loses_answers: bool = False
    """The response to the first request for each URL is lost; a repetition succeeds."""
    dies_after_script: bool = False
    """The machine hangs after it has received its boot script."""
    boots_disk: bool = False
    """The firmware ignores the boot override and boots the disk."""
    lying_drive: bool = False
    """The first drive reports a successful erasure and keeps its data; reading back detects it."""
    dying_drive: bool = False
    """The first drive fails during its erasure and keeps its data."""
    missing_drive: bool = False
    """The operating system does not see the first drive, which keeps its data; the BMC still reports it."""
    hides_drives: bool = False
    """The BMC lists no drives; the operating system sees them."""
    hides_processors: bool = False
    """The BMC lists no processors, so that it does not name their architecture."""
    slow_drives: bool = False
    """Erasing a drive takes a hundred times as long."""
    power_loss_in_sanitization: bool = False
    """The machine loses power during an erasure."""
    flips_uuid: bool = False
    """The BMC reports the UUID of the system with the bytes of its first three groups reversed."""
    shares_uuid: bool = False
    """The BMC reports a UUID that many machines have, and no serial number."""
    refuses_bios: bool = False
    """The BMC rejects every change of BIOS settings."""
    forgets_bios: bool = False
    """The BMC accepts changes of BIOS settings and discards them."""
    keeps_bios: bool = False
    """The BIOS never applies pending changes; the BMC still reports them as pending."""
    never_reads_medium: bool = False
    """The BMC shows a virtual medium as inserted and never reads it; the firmware boots the disk."""
    keeps_medium: bool = False
    """The BMC accepts the ejection of a virtual medium and keeps it inserted."""
    ignores_http_uri: bool = False
    """The firmware ignores the URL that the BMC has for UEFI HTTP boot, and uses the one that DHCP offers."""
    keeps_asset_tag: bool = False
    """The firmware does not copy a new asset tag into SMBIOS."""
    second_fetch: bool = False
    """The machine requests its boot script again after it has fetched its Ignition."""

    def __repr__(self) -> str:
        return f"<Faults {' '.join(self.active) or 'none'}>"

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the faults that are on."""
        return tuple(name for name in NAMES if getattr(self, name))

    def switch(self, name: str, on: bool = True) -> None:
        """Switch a fault by its name. Raises ValueError."""
        if name not in NAMES:
            raise ValueError(f"there is no fault {name!r}: choose from {', '.join(NAMES)}")
        setattr(self, name, on)


NAMES = tuple(field.name for field in fields(Faults))
OF_CARRIERS = ("never_reads_medium", "keeps_medium", "ignores_http_uri", "keeps_asset_tag")
"""Faults of machines whose BMC carries a boot secret (Options.carriers)."""
