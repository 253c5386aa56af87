"""Settings of the Endpoint reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EndpointSettings:
    """How the Endpoint reconciler behaves. Durations are in seconds."""

    workers: int = 64
    """How many Endpoints are looked at at the same time; a worker is a coroutine that mostly waits for a BMC."""
    contact_timeout: float = 45.0
    """How long one talk with a BMC may take in all; slow ones need 20 s for a login and a list."""
    retry: float = 10.0
    """Pause after the first failure to reach a BMC; it doubles with each."""
    retry_most: float = 300.0
    """Longest such pause; a BMC that asked for a lease answers within minutes or is broken."""
    credentials_rest: float = 3600.0
    """How long refused credentials rest; the usual lock-out counts failures within minutes."""
    logout_timeout: float = 5.0
    """How long a session may take to close; a dead BMC must not hold anything up."""
