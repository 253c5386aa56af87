"""Settings of the Endpoint reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EndpointSettings:
    """Settings of the Endpoint reconciler. Durations are in seconds."""

    workers: int = 64
    """Number of concurrent passes; a worker is a coroutine that mostly waits for a BMC."""
    contact_timeout: float = 45.0
    """Deadline for contacting a BMC; slow ones need 20 s for a login and a list."""
    retry: float = 10.0
    """Pause after the first failure to reach a BMC; it doubles with each further one."""
    retry_most: float = 300.0
    """Longest such pause; a BMC that requested a lease answers within minutes, or is broken."""
    credentials_rest: float = 3600.0
    """How long refused credentials are not tried again; BMCs lock accounts for failures within minutes."""
    logout_timeout: float = 5.0
    """Time limit of a logout; an unreachable BMC must not delay a pass."""
