"""Settings of the ServerMaintenance reconciler: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MaintenanceSettings:
    """Settings of the ServerMaintenance reconciler. Durations are in seconds."""

    enforced_namespaces: tuple[str, ...] = ("metal-system",)
    """Namespaces whose maintenances may have the policy Enforced: the manager's own, in which only administrators may
    create objects."""
    overdue: float = 28800.0
    """How long a maintenance may hold a server before the condition Overdue is set; repairs are done within a working
    day."""
