"""What can be wrong with a simulated machine. Every fault can be switched at run time."""

from dataclasses import dataclass, fields


@dataclass
class Faults:
    """The faults of one machine."""

    dead: bool = False
    """The BMC drops every connection."""
    hangs: bool = False
    """The BMC takes requests and never answers."""
    wrong_password: bool = False
    """The BMC accepts no credentials."""
    http_5xx: bool = False
    """The BMC answers a share of the requests (Options.error_rate) with 500 or 503."""
    http_401: bool = False
    """The BMC lets the account log in, forgets the session at once, and answers everything else with 401."""
    http_500: bool = False
    """The BMC answers every request with 500."""
    http_503: bool = False
    """The BMC answers every request with 503."""
    restarts: bool = False
    """The BMC makes the power change that it is asked for, and restarts by itself (Options.bmc_reset)."""
    restarts_first: bool = False
    """The BMC says yes to a reset of the system, and restarts by itself before it has done anything."""
    stale_power: bool = False
    """The BMC reports the power state of Options.stale seconds ago."""
    lies_power: bool = False
    """The BMC says yes to every reset and reports the state that was asked for; the machine does nothing."""
    ignores_reset: bool = False
    """The BMC says yes to every reset and does nothing; the state it reports is true."""
    slow: bool = False
    """The BMC takes Options.slow seconds for every answer."""
    drops_override: bool = False
    """The BMC says yes to a boot override and forgets it."""
    loses_events: bool = False
    """The BMC takes event subscriptions and sends nothing."""
    ignores_graceful: bool = False
    """The operating system ignores a request to shut down."""
    ignores_once: bool = False
    """The BMC keeps a boot override that was meant for one boot."""
    never_reports: bool = False
    """metalprobe never reports."""
    reports_twice: bool = False
    """metalprobe reports once more what it has reported, and then something else."""
    reports_other: bool = False
    """metalprobe reports with the UUID of another machine."""
    reports_late: bool = False
    """metalprobe reports Options.late seconds later than it should."""
    never_starts: bool = False
    """The machine has power and does nothing."""
    no_lease: bool = False
    """DHCP gives the machine no address."""
    unreported_lease: bool = False
    """DHCP gives the machine an address, and tells nobody."""
    no_boot_server: bool = False
    """Nothing that the machine asks the boot server for arrives there."""
    no_registry: bool = False
    """Nothing that the machine reports arrives at the registry."""
    loses_answers: bool = False
    """What the machine is answered at first is lost on the way; asked again for the same, it has its answer."""
    dies_after_script: bool = False
    """The machine hangs once it has its boot script."""
    boots_disk: bool = False
    """The firmware boots the disk whatever the override says."""
    lying_drive: bool = False
    """The first drive says that it is erased and keeps its data; who reads it back sees that."""
    dying_drive: bool = False
    """The first drive fails while it is being erased, and keeps its data."""
    missing_drive: bool = False
    """The operating system does not see the first drive, which keeps its data; its BMC goes on showing it."""
    slow_drives: bool = False
    """Erasing a drive takes a hundred times as long as it should."""
    power_loss_in_sanitization: bool = False
    """The machine loses its power in the middle of an erasure."""
    refuses_bios: bool = False
    """The BMC refuses every change of the BIOS."""
    forgets_bios: bool = False
    """The BMC says yes to changes of the BIOS and forgets them."""
    keeps_bios: bool = False
    """The BIOS never carries out what it is to do; the BMC goes on showing it as pending."""
    second_fetch: bool = False
    """The machine asks for its boot script again after it has fetched its Ignition."""

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
