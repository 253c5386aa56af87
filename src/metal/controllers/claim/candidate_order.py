"""The order in which a claim considers servers: a ring of hashed names, which each claim enters at its own position.

Concurrent claims that all considered servers in the same order would compete for the first one. Here the hash of the
claim's UID selects where its search begins, so different claims seldom begin with the same server; the order is the
same in every process. The search ends at the first server that matches, so it considers few of them, however many
there are.
"""

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import blake2b

from metal.api.claim import ServerClaim
from metal.api.server import Server


class CandidateOrder:
    """Names of all servers, ordered by hash."""

    def __init__(self) -> None:
        self._entries: list[tuple[bytes, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def update(self, old: Server | None, new: Server | None) -> None:
        """Handler of an informer: add a new server, remove a deleted one."""
        if old is None and new is not None:
            self._add(new.metadata.name)
        elif old is not None and new is None:
            self._remove(old.metadata.name)

    def names(self, claim: ServerClaim) -> Iterator[str]:
        """Every name once, beginning at the claim's position. The servers must not change during iteration."""
        entries = self._entries
        start = bisect_left(entries, (_hashed(claim.metadata.uid), ""))
        for at in range(start - len(entries), start):
            yield entries[at][1]

    def _add(self, name: str) -> None:
        entry = (_hashed(name), name)
        at = bisect_left(self._entries, entry)
        if self._entries[at : at + 1] != [entry]:
            self._entries.insert(at, entry)

    def _remove(self, name: str) -> None:
        entry = (_hashed(name), name)
        at = bisect_left(self._entries, entry)
        if self._entries[at : at + 1] == [entry]:
            del self._entries[at]


def _hashed(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
