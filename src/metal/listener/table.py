"""The open connections of a listener: who is admitted, and who is closed when a limit is reached.

Each connection is in a phase. Where an address, or the listener, has as many connections as it may have, a new one
takes the place of one that has nothing in progress: first one in a TLS handshake, then a new one, one with unfinished
headers, an idle one, one with an unfinished body. Of those it is the one that has been so for the longest time, of
bodies the one of which the least was received. It must have been so for some seconds; until then the new one is
refused, which costs less than to set it up. An idle connection was served and is asked again, unlike headers that are
unfinished after seconds. A connection whose request is being
answered, such as a watch or the transfer of an image, is never closed for another; the new one is
refused. When the listener is full, the address with the most connections loses one, so that one client cannot close the
connections of others.
"""

import ipaddress
from collections.abc import Callable, Iterator
from enum import IntEnum

from metal.listener.limits import ConnectionLimits
from metal.listener.report import Reason, Report

_ADDRESSES_SEARCHED = 32
"""Addresses, from the one with the most connections, in which a connection without a request is searched."""


class Phase(IntEnum):
    """What a connection does, in the order in which it loses its place."""

    HANDSHAKE = 0
    """The TLS handshake is not complete."""
    NEW = 1
    """No byte of a request was received yet."""
    HEAD = 2
    """A part of request line and headers was received."""
    IDLE = 3
    """Its last request was answered."""
    BODY = 4
    """A part of a body is to be received."""
    BUSY = 5
    """A request is being answered."""


class Entry:
    """One open connection. `close` ends its transport; it is set by the owner of the transport."""

    __slots__ = ("address", "close", "group", "phase", "received", "since", "stalled_since")

    def __init__(self, address: str, now: float) -> None:
        self.address, self.group = address, group_of(address)
        self.phase, self.since = Phase.HANDSHAKE, now
        self.received = 0
        self.stalled_since: float | None = None
        self.close: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        return f"<Entry {self.address} {self.phase.name}>"

    def enter(self, phase: Phase, now: float) -> None:
        """Begin a phase."""
        self.phase, self.since, self.received = phase, now, 0


class Table:
    """Admits connections and closes those that exceed a limit or deadline."""

    def __init__(self, limits: ConnectionLimits, total: int, report: Report, now: Callable[[], float]) -> None:
        self._limits, self._total, self._report, self._now = limits, total, report, now
        self._groups: dict[str, set[Entry]] = {}
        self._by_size: dict[int, dict[str, None]] = {}
        self._largest = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._groups.get(entry.group, ())

    def __repr__(self) -> str:
        return f"<Table {self._count} of {self._total} connections, {len(self._groups)} addresses>"

    def admit(self, address: str) -> Entry | None:
        """The entry of a new connection, or None when it is refused."""
        entry = Entry(address, self._now())
        own = self._groups.get(entry.group, ())
        if len(own) >= self._limits.per_address and not self._evict_from(entry.group):
            self._report.closed(Reason.ADDRESS_LIMIT, address)
            return None
        if self._count >= self._total and not self._evict_one():
            self._report.closed(Reason.TOTAL_LIMIT, address)
            return None
        members = self._groups.setdefault(entry.group, set())
        members.add(entry)
        self._resized(entry.group, len(members) - 1, len(members))
        return entry

    def remove(self, entry: Entry) -> bool:
        """Forget a connection; False when it was forgotten before."""
        members = self._groups.get(entry.group)
        if members is None or entry not in members:
            return False
        members.remove(entry)
        self._resized(entry.group, len(members) + 1, len(members))
        if not members:
            del self._groups[entry.group]
        return True

    def end(self, entry: Entry, reason: Reason) -> None:
        """Close a connection because of a limit."""
        if self.remove(entry):
            self._report.closed(reason, entry.address)
        entry.close()

    def note(self, entry: Entry, reason: Reason) -> None:
        """Count a problem of a connection that is answered and closed by its protocol."""
        self._report.closed(reason, entry.address)

    def exhausted(self) -> None:
        """The process has no descriptor for a new connection: give up one that has nothing in progress."""
        self._report.closed(Reason.NO_DESCRIPTORS, "")
        self._evict_one(keep=0.0)

    def expire(self) -> None:
        """Close every connection whose phase takes longer than it may."""
        now = self._now()
        late = [(entry, late) for entry in self._entries() if (late := self._overdue(entry, now)) is not None]
        for entry, reason in late:
            if entry.phase is Phase.IDLE:
                # The ordinary end of a connection that is kept for the next request: no limit was exceeded.
                self.remove(entry)
                entry.close()
            else:
                self.end(entry, reason)

    def close_waiting(self) -> None:
        """Close every connection on which no request is being answered."""
        for entry in [entry for entry in self._entries() if entry.phase is not Phase.BUSY]:
            self.remove(entry)
            entry.close()

    def _entries(self) -> Iterator[Entry]:
        return (entry for members in self._groups.values() for entry in members)

    def _overdue(self, entry: Entry, now: float) -> Reason | None:
        limits = self._limits
        if entry.phase is Phase.BUSY:
            stalled = entry.stalled_since is not None and now - entry.stalled_since > limits.stall_seconds
            return Reason.RESPONSE_STALLED if stalled else None
        seconds, reason = {
            Phase.HANDSHAKE: (limits.handshake_seconds, Reason.HANDSHAKE_TIMEOUT),
            Phase.NEW: (limits.first_byte_seconds, Reason.FIRST_BYTE_TIMEOUT),
            Phase.IDLE: (limits.idle_seconds, Reason.EVICTED),
            Phase.HEAD: (limits.head_seconds, Reason.HEAD_TIMEOUT),
            Phase.BODY: (limits.body_seconds + entry.received / limits.body_rate, Reason.BODY_TIMEOUT),
        }[entry.phase]
        return reason if now - entry.since > seconds else None

    def _evict_one(self, keep: float | None = None) -> bool:
        """Close a connection of the address that has the most."""
        searched = 0
        for size in range(self._largest, 0, -1):
            for group in list(self._by_size.get(size, ())):
                if searched == _ADDRESSES_SEARCHED:
                    return False
                searched += 1
                if self._evict_from(group, keep):
                    return True
        return False

    def _evict_from(self, group: str, keep: float | None = None) -> bool:
        now = self._now()
        waiting = [
            entry
            for entry in self._groups.get(group, ())
            if entry.phase is not Phase.BUSY and now - entry.since >= (self._keep(entry) if keep is None else keep)
        ]
        if not waiting:
            return False
        self.end(min(waiting, key=lambda entry: (entry.phase, entry.received, entry.since)), Reason.EVICTED)
        return True

    def _keep(self, entry: Entry) -> float:
        limits = self._limits
        return limits.keep_served_seconds if entry.phase >= Phase.IDLE else limits.keep_seconds

    def _resized(self, group: str, before: int, after: int) -> None:
        self._count += after - before
        self._report.open(self._count)
        if (same := self._by_size.get(before)) is not None:
            same.pop(group, None)
            if not same:
                del self._by_size[before]
        if after:
            self._by_size.setdefault(after, {})[group] = None
        self._largest = max(self._largest, after)
        while self._largest and self._largest not in self._by_size:
            self._largest -= 1


def group_of(address: str) -> str:
    """What counts as one client: an IPv4 address, or a /64 network, of which each client has all the addresses."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
