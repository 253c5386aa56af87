"""How far an erasure has come, and how long it will take still."""

from datetime import datetime

from metal.api.sanitization import DriveErasure, Result, SanitizationEvidence, SanitizationProgress

_UNDER_WAY = (Result.PENDING, Result.RUNNING, "")


def progress(evidence: SanitizationEvidence) -> SanitizationProgress:
    """How far an erasure has come, of all drives together. Drives are erased side by side: the slowest one counts."""
    drives, now = evidence.status.drives, evidence.status.updated_at
    total = sum(max(drive.size, 1) for drive in drives)
    share = sum(max(d.size, 1) * (100 if d.result == Result.SUCCEEDED else min(d.percent, 100)) for d in drives)
    done = sum(drive.result == Result.SUCCEEDED for drive in drives)
    left = [_seconds_left(drive, now) for drive in drives if drive.result in _UNDER_WAY]
    known = [seconds for seconds in left if seconds is not None]
    time_left = _spoken(max(known, default=0.0)) if len(known) == len(left) else ""
    return SanitizationProgress(
        percent=share // total if total else 0,
        time_left=time_left,
        message=f"{done} of {len(drives)} drives erased" + (f", about {time_left} left" if time_left else ""),
    )


def _seconds_left(drive: DriveErasure, now: datetime | None) -> float | None:
    """What the drive says, else what its pace so far says; None when neither does."""
    if drive.seconds_left is not None:
        return drive.seconds_left
    if drive.started_at is None or now is None or not 0 < drive.percent <= 100:
        return None
    return max(0.0, (now - drive.started_at).total_seconds()) * (100 - drive.percent) / drive.percent


def _spoken(seconds: float) -> str:
    """In hours and minutes; nothing when nothing is left."""
    minutes = -int(-seconds // 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest}m" if hours else f"{minutes}m" if minutes else ""
