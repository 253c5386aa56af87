"""Options of a simulated fleet, mostly durations."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_PORT = 8000
"""Port that all simulated BMCs share, each on an address of its own."""


class Carrier(StrEnum):
    """What a BMC offers besides an override for network boots."""

    VIRTUAL_MEDIA = "VirtualMedia"
    """A CD that takes an ISO by HTTP."""
    HTTP_BOOT_URI = "HttpBootUri"
    """The property ComputerSystem.Boot.HttpBootUri."""
    HTTP_DEV1_URI = "HttpDev1Uri"
    """The BIOS attributes of Dell for the same."""
    URL_BOOT_FILE = "UrlBootFile"
    """The BIOS attribute of HPE for the same."""
    ASSET_TAG = "AssetTag"
    """A writable AssetTag of the system."""
    CHASSIS_ASSET_TAG = "ChassisAssetTag"
    """A writable AssetTag of the chassis."""


def carriers(text: str) -> frozenset[Carrier]:
    """Carriers joined by +, such as VirtualMedia+AssetTag; `None` for none. Raises ValueError."""
    return frozenset(Carrier(name) for name in text.split("+") if name != "None")


@dataclass(frozen=True)
class Options:
    """Times are in seconds and vary by `jitter`; the defaults suit a demonstration."""

    power: float = 0.5
    """From a reset until the power state has changed; real machines need 3 to 10."""
    boot: float = 1.5
    """From power-on until the operating system runs; real machines need 60 to 600."""
    erase: float = 2.0
    """Duration of the erasure of a drive; real ones need seconds to days."""
    shutdown: float = 0.5
    """Duration of a shutdown of the operating system."""
    jitter: float = 0.2
    """Fraction by which times vary between machines and boots."""
    latency: float = 0.0
    """Median response time of a BMC; 0 responds at once."""
    latency_spread: float = 0.4
    """Sigma of the lognormal distribution of that time."""
    bmc_reset: float = 10.0
    """How long a BMC is unreachable during its own restart."""
    stale: float = 10.0
    """Age of the power state that a BMC with the fault stale_power reports."""
    slow: float = 8.0
    """Response time of a BMC with the fault slow."""
    late: float = 120.0
    """Delay of the report of a machine with the fault reports_late."""
    error_rate: float = 0.2
    """Fraction of requests that a BMC with the fault http_5xx answers with 500 or 503."""
    arm64: int = 0
    """Number of machines with arm64 processors, the last ones. All others have amd64."""
    scheme: str = "http"
    """http or https; https uses a CA created for this fleet."""
    port: int = DEFAULT_PORT
    """Port of every BMC."""
    username: str = "admin"
    """BMC account."""
    password: str = "simulated"  # noqa: S105 - factory credentials of machines that do not exist
    """Its password."""
    expand: bool = True
    """Whether BMCs support $expand, which saves requests."""
    max_sessions: int = 16
    """Concurrent sessions of one BMC."""
    session_timeout: float = 1800.0
    """Time after which an unused session expires."""

    carriers: tuple[frozenset[Carrier], ...] = (frozenset(),)
    """What each BMC offers: machine n has entry n, and the entries repeat, so that a fleet mixes boot methods."""
    medium: float = 1.0
    """From the insertion of a virtual medium until the BMC shows it as inserted; real BMCs need 1 to 30."""

    def __repr__(self) -> str:
        return f"<Options power={self.power:g} boot={self.boot:g} latency={self.latency:g} {self.scheme}:{self.port}>"
