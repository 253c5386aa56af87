"""Settings of the ServerClaim reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ClaimSettings:
    """How the ServerClaim reconciler behaves."""

    namespace: str = "metal-system"
    """The manager's own namespace, in which claims get no server: names of discovery objects are those of servers."""
    resync: float = 300.0
    """How often an unbound claim looks again although nothing woke it, in seconds."""
