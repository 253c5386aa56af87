"""How a simulated fleet behaves. The docstring under each option says what it means and its unit."""

from dataclasses import dataclass

DEFAULT_PORT = 8000
"""Port that all simulated BMCs share, each on an address of its own."""


@dataclass(frozen=True)
class Options:
    """Times are seconds and vary by `jitter`; the defaults suit somebody who watches."""

    power: float = 0.5
    """From a reset until the power state has changed; real machines need 3 to 10."""
    boot: float = 1.5
    """From power to the operating system having done its work; real machines need 60 to 600."""
    erase: float = 2.0
    """How long a drive takes to be erased; real ones need seconds to days."""
    shutdown: float = 0.5
    """How long an operating system takes to shut down."""
    jitter: float = 0.2
    """Share by which times differ from machine to machine and from boot to boot."""
    latency: float = 0.0
    """Median time that a BMC takes to answer; 0 answers at once."""
    latency_spread: float = 0.4
    """Sigma of the lognormal distribution of that time."""
    bmc_reset: float = 10.0
    """How long a BMC is away after its own restart."""
    stale: float = 10.0
    """How old the power state is that a BMC with the fault stale_power reports."""
    slow: float = 8.0
    """How long every answer of a BMC with the fault slow takes."""
    late: float = 120.0
    """How much later than usual a machine with the fault reports_late reports."""
    error_rate: float = 0.2
    """Share of requests that a BMC with the fault http_5xx answers with 500 or 503."""
    scheme: str = "http"
    """http or https; https uses a CA made for this fleet."""
    port: int = DEFAULT_PORT
    """Port of every BMC."""
    username: str = "admin"
    """BMC account."""
    password: str = "simulated"  # noqa: S105 - factory credentials of machines that do not exist
    """Its password."""
    expand: bool = True
    """Whether BMCs offer $expand, which saves requests."""
    max_sessions: int = 16
    """Sessions that one BMC holds at the same time."""
    session_timeout: float = 1800.0
    """How long an unused session lives."""

    def __repr__(self) -> str:
        return f"<Options power={self.power:g} boot={self.boot:g} latency={self.latency:g} {self.scheme}:{self.port}>"
