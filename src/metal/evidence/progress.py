"""Computes the progress of an erasure and the time that is left."""

from datetime import datetime

from metal.api.sanitization import DriveErasure, Result, SanitizationEvidence, SanitizationProgress

_RUNNING = (Result.PENDING, Result.RUNNING, "")


def progress(evidence: SanitizationEvidence) -> SanitizationProgress:
    """Progress of all drives together. Drives are erased in parallel, so the slowest one determines the time left."""
    drives, now = evidence.status.drives, evidence.status.updated_at
    total = sum(max(drive.size, 1) for drive in drives)
    share = sum(max(d.size, 1) * (100 if d.result == Result.SUCCEEDED else min(d.percent, 100)) for d in drives)
    done = sum(drive.result == Result.SUCCEEDED for drive in drives)
    left = [_seconds_left(drive, now) for drive in drives if drive.result in _RUNNING]
    known = [seconds for seconds in left if seconds is not None]
    time_left = _duration(max(known, default=0.0)) if len(known) == len(left) else ""
    return SanitizationProgress(
        percent=share // total if total else 0,
        time_left=time_left,
        message=f"{done} of {len(drives)} drives erased" + (f", about {time_left} left" if time_left else ""),
    )


def _seconds_left(drive: DriveErasure, now: datetime | None) -> float | None:
    """Reported by the drive, else extrapolated from its progress; None if neither is possible."""
    if drive.seconds_left is not None:
        return drive.seconds_left
    if drive.started_at is None or now is None or not 0 < drive.percent <= 100:
        return None
    return max(0.0, (now - drive.started_at).total_seconds()) * (100 - drive.percent) / drive.percent


def _duration(seconds: float) -> str:
    """Hours and minutes; empty for 0."""
    minutes = -int(-seconds // 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest}m" if hours else f"{minutes}m" if minutes else ""
