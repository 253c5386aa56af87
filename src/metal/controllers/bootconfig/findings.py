"""Findings of one pass over a boot configuration, and the status that they amount to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from metal.api.claim import ServerBootConfiguration, ServerBootConfigurationStatus
from metal.api.meta import Condition
from metal.kube.meta.conditions import set_condition

READY, PENDING, ERROR = "Ready", "Pending", "Error"
_WORST = (ERROR, PENDING, READY)


@dataclass(frozen=True)
class Finding:
    """State of one aspect: reason, message, and seconds until it is checked again (0 for never)."""

    state: str
    reason: str
    message: str
    condition: str = ""
    """Type of its condition; empty for an aspect that is only part of waitingFor."""
    recheck_after: float = 0.0
    validated: bool = True
    """False for an aspect that is Ready although nothing is known of it; its condition is Unknown."""


def is_ready(config: ServerBootConfiguration) -> bool:
    """Whether it was reported as Ready in its present generation, so that a machine may be booting."""
    return config.status.state == READY and config.status.observed_generation == config.metadata.generation


def status_of(
    config: ServerBootConfiguration, findings: Iterable[Finding], now: datetime
) -> ServerBootConfigurationStatus:
    """The new status: the worst state of all findings; waitingFor lists each that is not Ready."""
    found = list(findings)
    old = config.status
    state = min((finding.state for finding in found), key=_WORST.index)
    conditions = old.conditions
    for finding in found:
        if finding.condition:
            conditions = set_condition(conditions, _condition(config, finding), now)
    return ServerBootConfigurationStatus(
        state=state,
        since=old.since if old.state == state and old.since else now.replace(microsecond=0),
        waiting_for="; ".join(finding.message for finding in found if finding.state != READY),
        observed_generation=old.observed_generation,
        conditions=conditions,
    )


def requeue_after(findings: Iterable[Finding]) -> float:
    """Seconds until the next check of any finding; 0 for never."""
    return min((finding.recheck_after for finding in findings if finding.recheck_after), default=0.0)


def with_condition(
    status: ServerBootConfigurationStatus, condition: Condition, now: datetime
) -> ServerBootConfigurationStatus:
    """The status with another condition."""
    return msgspec.structs.replace(status, conditions=set_condition(status.conditions, condition, now))


def _condition(config: ServerBootConfiguration, finding: Finding) -> Condition:
    return Condition(
        type=finding.condition,
        status={READY: "True", ERROR: "False"}.get(finding.state if finding.validated else PENDING, "Unknown"),
        reason=finding.reason,
        message=finding.message,
        observed_generation=config.metadata.generation,
    )
