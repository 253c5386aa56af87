"""Settings of the BMC reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BMCSettings:
    """Settings of the BMC reconciler. Durations are in seconds."""

    namespace: str = "metal-system"
    """Namespace of the Secrets that tls.caSecretRef names: the manager's own."""
    workers: int = 64
    """Number of concurrent passes; a worker is a coroutine that mostly waits for a BMC."""
    interval: float = 60.0
    """Interval between two checks of a BMC; a failure or recovery is noticed after at most this time."""
    retry: float = 5.0
    """Pause after the first failed check; it doubles up to the interval."""
    contact_timeout: float = 50.0
    """Deadline of one check; shorter than that of a reconcile, so that a check ends with a condition."""
    reset_wait: float = 30.0
    """How long a BMC is not contacted after its restart; none answers earlier."""
    reset_timeout: float = 600.0
    """How long a BMC may take to restart, while its Servers wait; large ones need five minutes."""
    auto_reset: bool = False
    """Whether a BMC that fails is restarted automatically; off, since some sites want to diagnose it first."""
    reset_after: float = 900.0
    """How long a BMC must have failed before an automatic restart; a firmware update takes minutes as well."""
    reset_again: float = 3600.0
    """Shortest time between two automatic restarts; if one does not help, more will not either."""
    ssh_port: int = 22
    """SSH port of BMCs."""
    ssh_timeout: float = 45.0
    """Deadline of a restart over SSH; slow BMCs need 20 s for a login."""
    event_url: str = ""
    """Base URL of the event receiver as BMCs see it; empty disables event subscriptions."""
    event_heartbeat: float = 300.0
    """How long a BMC may send no event before the subscription is checked and a test event is requested."""
    event_max_age: float = 900.0
    """How long after the last event a BMC is still polled less often: two heartbeats may be lost."""
    event_slowdown: float = 5.0
    """How many times less often BMC and Servers are polled while events arrive."""
    credentials_rest: float = 3600.0
    """How long refused credentials are not tried again unless they change; BMCs lock accounts for failures within
    minutes."""
    logout_timeout: float = 5.0
    """Time limit of the logout when the BMC object is deleted; an unreachable BMC must not delay the deletion."""
