"""In which order a claim looks at servers: a ring of hashed names, which every claim enters at a place of its own."""

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import blake2b

from metal.api.claim import ServerClaim
from metal.api.server import Server


class Ring:
    """Names of servers. The order is the same in every process, and different claims seldom begin with the same server.

    A search that ends at the first server that fits looks at a few of them, however many there are.
    """

    def __init__(self) -> None:
        self._places: list[tuple[bytes, str]] = []

    def __len__(self) -> int:
        return len(self._places)

    def note(self, old: Server | None, new: Server | None) -> None:
        """Handler of an informer: what came is added, what went is removed."""
        if old is None and new is not None:
            self._add(new.metadata.name)
        elif old is not None and new is None:
            self._remove(old.metadata.name)

    def names(self, claim: ServerClaim) -> Iterator[str]:
        """Every name once, from the claim's place on. The ring must not change meanwhile."""
        places = self._places
        start = bisect_left(places, (_hashed(claim.metadata.uid), ""))
        for at in range(start - len(places), start):
            yield places[at][1]

    def _add(self, name: str) -> None:
        entry = (_hashed(name), name)
        at = bisect_left(self._places, entry)
        if self._places[at : at + 1] != [entry]:
            self._places.insert(at, entry)

    def _remove(self, name: str) -> None:
        entry = (_hashed(name), name)
        at = bisect_left(self._places, entry)
        if self._places[at : at + 1] == [entry]:
            del self._places[at]


def _hashed(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
