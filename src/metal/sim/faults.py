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
    reports_late: bool = False
    """metalprobe reports Options.late seconds later than it should."""
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
