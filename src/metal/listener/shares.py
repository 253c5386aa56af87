"""Shares of something scarce, such as streams: so many in all, and so many of one address, token or user."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Exhausted(Exception):
    """Nothing is left, in all or for one key. `kind` is that of the key, empty when it is the total."""

    def __init__(self, kind: str = "") -> None:
        super().__init__(f"the limit of one {kind} is reached" if kind else "the limit of all is reached")
        self.kind = kind


class Shares:
    """Counts what is in use. `each`: how much one key of a kind may use; a kind without a limit is not counted."""

    def __init__(self, total: int, each: Mapping[str, int]) -> None:
        self._total, self._each = total, dict(each)
        self._used = 0
        self._by_key: Counter[tuple[str, str]] = Counter()

    def __repr__(self) -> str:
        return f"<Shares {self._used} of {self._total}>"

    @contextmanager
    def take(self, **keys: str) -> Iterator[None]:
        """Use one for the time of the block. A kind with an empty key is not limited. Raises Exhausted."""
        limited = [(kind, key) for kind, key in keys.items() if key and kind in self._each]
        for kind, key in limited:
            if self._by_key[kind, key] >= self._each[kind]:
                raise Exhausted(kind)
        if self._used >= self._total:
            raise Exhausted
        self._used += 1
        self._by_key.update(limited)
        try:
            yield
        finally:
            self._used -= 1
            for each in limited:
                self._by_key[each] -= 1
                if not self._by_key[each]:
                    del self._by_key[each]
