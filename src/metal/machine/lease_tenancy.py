"""A copy of the record of tenancy in the Lease of the machine: it shows that a Server's record is older than a tenancy.

A backup can bring back status and annotations of a Server from before a claim. Once that claim is gone, nothing at the
Server shows that its data is on the drives. The Lease (`system_lease`) is another object, `metalctl restore` does not
change it, and it is read before everything that changes the machine. Its annotation `metal.ironcore.dev/tenancy` has
the claim, its policy, `Dirty` or `Unknown`, and since when by the record's own times:

- It is written when the boot of a claim was recorded and before the machine is touched, and where data is Unknown.
- It is removed when the data is erased or accepted, or when nothing of the claim was served.
- A record without data and older than the copy is outdated: `value` raises, and nothing is done with the machine.
"""

from datetime import datetime

import msgspec

from metal.api.boot_window import BootWindow, Purpose
from metal.api.server import ServerSpec, ServerStatus
from metal.api.tenancy import Data, Tenancy
from metal.machine import kept_tenancy, tenancy


class RecordOutdated(Exception):
    """The record of a Server is older than the tenancy in the Lease of its machine, which is `kept`."""

    def __init__(self, kept: Tenancy) -> None:
        super().__init__("the status of the Server is older than the tenancy in the Lease of its machine")
        self.kept = kept


def value(old: str, spec: ServerSpec, status: ServerStatus, now: datetime) -> str:
    """What the annotation must have, which has `old`; empty for none. Raises RecordOutdated."""
    known = tenancy.read(spec, status)
    if old and _is_kept(kept_tenancy.rebuilt(old, now), known):
        return old
    if is_booting(status, known):
        return _copy(known, _latest(known.since, status.boot_window, now))
    return _copy(known, known.since or now) if tenancy.holds_data(known) else ""


def _is_kept(kept: Tenancy, known: Tenancy) -> bool:
    """Whether the copy stays as it is: the tenancy has not ended, or is newer. Raises RecordOutdated."""
    holds, is_same = tenancy.holds_data(known), kept.uid == known.uid
    if is_same and known.uid:
        return holds or not known.sanitization
    is_newer = kept.since is not None and (known.since is None or known.since < kept.since)
    if is_newer and not holds:
        raise RecordOutdated(kept)
    return is_newer or (is_same and holds)


def is_booting(status: ServerStatus, known: Tenancy) -> bool:
    """True when a network boot of the claim was recorded and the claim has not ended."""
    window = status.boot_window
    is_claims = window is not None and window.purpose == Purpose.CLAIM and window.claim_uid == known.uid
    return is_claims and not known.sanitization


def _latest(since: datetime | None, window: BootWindow | None, now: datetime) -> datetime:
    """The time of the boot, of which a record from before it has no later one."""
    times = [at for at in (since, window.opened_at if window is not None else None) if at is not None]
    return max(times, default=now)


def _copy(known: Tenancy, since: datetime) -> str:
    """Its time is one of the record itself, so that no later state of that record is older than its copy."""
    data = Data.UNKNOWN if known.data == Data.UNKNOWN else Data.DIRTY
    kept = kept_tenancy.Kept(data=data, claim_ref=known.claim_ref, policy=known.policy, since=since)
    return msgspec.json.encode(kept).decode()
