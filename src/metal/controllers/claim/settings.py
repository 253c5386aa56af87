"""Settings of the ServerClaim reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ClaimSettings:
    """Settings of the ServerClaim reconciler."""

    namespace: str = "metal-system"
    """The manager's namespace, in which claims get no server: discovery objects there are named like servers."""
    resync: float = 300.0
    """Interval between two passes of an unbound claim without any change, in seconds."""
