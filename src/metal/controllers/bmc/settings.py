"""Settings of the BMC reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BMCSettings:
    """How the BMC reconciler behaves. Durations are in seconds."""

    namespace: str = "metal-system"
    """Namespace of the Secrets that tls.caSecretRef names: the manager's own."""
    workers: int = 64
    """How many BMCs are looked at at the same time; a worker is a coroutine that mostly waits for a BMC."""
    interval: float = 60.0
    """How often a BMC is checked; a failure or recovery is noticed this late."""
    retry: float = 5.0
    """Pause after a first failed check; it doubles up to the interval."""
    contact_timeout: float = 50.0
    """How long one check may take in all; below the deadline of a reconcile, so that it ends with a condition."""
    reset_wait: float = 30.0
    """How long a BMC is left alone after its restart; none is back earlier."""
    reset_timeout: float = 600.0
    """How long a BMC may take to be back from its restart, and its Servers wait for it; big ones need five minutes."""
    auto_reset: bool = False
    """Whether a BMC that fails is restarted without being asked; some sites want to look at it first."""
    reset_after: float = 900.0
    """How long a BMC must have failed before that; a firmware update of its own takes minutes, too."""
    reset_again: float = 3600.0
    """How long no second such restart follows; what one restart does not mend, ten will not."""
    ssh_port: int = 22
    """Port of BMCs' command lines."""
    ssh_timeout: float = 45.0
    """How long a restart over SSH may take in all; slow ones need 20 s for a login."""
    event_url: str = ""
    """Base URL of our event receiver as BMCs see it; empty subscribes to no events."""
    event_heartbeat: float = 300.0
    """How long it may be silent before the BMC is asked for a test event, and the subscription is looked at."""
    event_max_age: float = 900.0
    """How long after the last event they count as flowing: two heartbeats may be lost."""
    event_slowdown: float = 5.0
    """How many times less often BMC and Servers are looked at while events flow."""
    credentials_rest: float = 3600.0
    """How long refused credentials rest unless they change; the usual lock-out counts failures within minutes."""
    logout_timeout: float = 5.0
    """How long a session may take to close when the BMC object is deleted; a dead BMC must not hold it up."""
