"""Options of a simulated fleet, mostly durations."""

from dataclasses import dataclass

DEFAULT_PORT = 8000
"""Port that all simulated BMCs share, each on an address of its own."""


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

    def __repr__(self) -> str:
        return f"<Options power={self.power:g} boot={self.boot:g} latency={self.latency:g} {self.scheme}:{self.port}>"
