"""The ServerClaims that wait for a server, by what they need and by age: a free server goes to the oldest that it fits.

Claims that need the same (the same named server, selector and tolerations, and the same namespace where it decides
what they tolerate) are one group, ordered by age. A server is
compared with one claim of each group, not with all claims, and groups whose selector requires a label with one value
are found by the labels of the server. So an event of a free server costs as much with ten waiting claims as with ten
thousand that need the same.

A free server is *promised* to the oldest waiting claim that it fits and that has no promise yet: when the server
becomes free (`offer`), or when a younger claim looks at it (`may_take`). Only that claim may reserve it. The promise
ends when the claim waits no longer or the server does not fit it any more; the server then goes to the next claim. So
the order is that of age however the passes of the claims follow each other, also after a restart, when the cache is
filled in the order of names; and an old claim that the API refuses keeps one server from the others, not all of them.
Promises are kept in memory only: they decide the order, never the ownership.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from metal.api.claim import ServerClaim
from metal.api.server import Server
from metal.controllers.claim import matching
from metal.kube.meta.objects import Key, key_of

Age = tuple[datetime, str, Key]
"""Sort key of a claim: creation, UID, key."""
_LAST = datetime.max.replace(tzinfo=UTC)


def age(claim: ServerClaim) -> Age:
    """Sort key of a claim: the older first, of the same second the smaller UID."""
    meta = claim.metadata
    return meta.creation_timestamp or _LAST, meta.uid, key_of(claim)


@dataclass
class _Group:
    """Claims with the same needs, and one of them to compare servers with."""

    example: ServerClaim
    places: list[str]
    size: int = 0
    unpromised: list[Age] = field(default_factory=list)
    """Members without a promise, the oldest first."""


class WaitingClaims:
    """All waiting claims, and which of the free servers each of them gets."""

    def __init__(self, can_bind: Callable[[ServerClaim], bool]) -> None:
        self._can_bind = can_bind
        self._groups: dict[bytes, _Group] = {}
        self._by_place: dict[str, set[bytes]] = {}
        self._needs: dict[Key, tuple[bytes, Age]] = {}
        self._promised: dict[Key, str] = {}
        self._promises: dict[str, Key] = {}

    def __len__(self) -> int:
        return len(self._needs)

    def update(self, old: ServerClaim | None, new: ServerClaim | None) -> str:
        """Take in a change of a claim; returns the server that had been promised to one that waits no longer."""
        claim = new or old
        if claim is None:
            return ""
        waits = new is not None and self._can_bind(new)
        if waits and self._needs.get(key_of(claim)) == (_needs(claim), age(claim)):
            return ""  # nothing relevant changed, or a new leader is given every claim again
        server = self._remove(key_of(claim))
        if waits:
            self._add(claim)
        return server

    def offer(self, server: Server) -> Key | None:
        """The claim that gets this free server, if one waits for it."""
        if (known := self._promises.get(server.metadata.name)) is not None:
            return known
        groups = [group for group in self._groups_of(server) if group.unpromised]
        if not groups:
            return None
        _, _, key = min(groups, key=lambda group: group.unpromised[0]).unpromised.pop(0)
        self._promised[key], self._promises[server.metadata.name] = server.metadata.name, key
        return key

    def may_take(self, claim: ServerClaim, server: Server) -> bool:
        """Whether the claim may reserve this server, which fits it: no older claim gets it."""
        mine = key_of(claim)
        if mine not in self._needs:
            return True  # not in the cache yet, or as it was before
        getting = self._promises.get(server.metadata.name)
        if getting is None and mine in self._promised:
            self.withdraw(self._promised[mine])  # it takes another one than was promised
        return (getting or self.offer(server)) == mine

    def getting(self, server: str) -> Key | None:
        """The claim to which this server is promised."""
        return self._promises.get(server)

    def promised(self, key: Key) -> str:
        """Name of the server that the claim gets, or empty."""
        return self._promised.get(key, "")

    def withdraw(self, server: str) -> Key | None:
        """End the promise of this server; returns the claim that had it."""
        key = self._promises.pop(server, None)
        if key is not None:
            del self._promised[key]
            needs, mine = self._needs[key]
            insort(self._groups[needs].unpromised, mine)
        return key

    def _groups_of(self, server: Server) -> Iterator[_Group]:
        labels = (_label(key, value) for key, value in server.metadata.labels.items())
        places = ("", _name(server.metadata.name), *labels)
        needs = {one for place in places for one in self._by_place.get(place, ())}
        return (group for one in needs if matching.mismatch((group := self._groups[one]).example, server) is None)

    def _add(self, claim: ServerClaim) -> None:
        needs, mine = _needs(claim), age(claim)
        group = self._groups.get(needs)
        if group is None:
            group = self._groups[needs] = _Group(claim, list(_places(claim)))
            for place in group.places:
                self._by_place.setdefault(place, set()).add(needs)
        group.size += 1
        insort(group.unpromised, mine)
        self._needs[mine[2]] = (needs, mine)

    def _remove(self, key: Key) -> str:
        """Forget a claim; returns the server that had been promised to it."""
        if key not in self._needs:
            return ""
        server = self._promised.get(key, "")
        self.withdraw(server)
        needs, mine = self._needs.pop(key)
        group = self._groups[needs]
        del group.unpromised[bisect_left(group.unpromised, mine)]
        group.size -= 1
        if not group.size:
            del self._groups[needs]
            for place in group.places:
                self._by_place[place].discard(needs)
        return server


def _needs(claim: ServerClaim) -> bytes:
    """The same bytes for claims that the same free servers fit."""
    spec = claim.spec
    own = claim.metadata.namespace if any(matching.is_not_erased(one.key) for one in spec.tolerations) else ""
    return msgspec.json.encode((spec.server_ref, spec.server_selector, spec.tolerations, own), order="deterministic")


def _places(claim: ServerClaim) -> Iterable[str]:
    """Under what a server finds the group: its name, one of its labels, or the empty text for any server."""
    ref, selector = claim.spec.server_ref, claim.spec.server_selector
    if ref is not None:
        return (_name(ref.name),)
    labels = selector.match_labels if selector is not None else {}
    return (_label(*min(labels.items())),) if labels else ("",)


def _name(server: str) -> str:
    return f"name {server}"


def _label(key: str, value: str) -> str:
    return f"label {key}={value}"
