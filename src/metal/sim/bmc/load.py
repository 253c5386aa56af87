"""How many requests a BMC answers in a minute."""

from datetime import datetime, timedelta

_READS = ("GET", "HEAD")
_MINUTE = timedelta(minutes=1)


class Load:
    """Counts reads and writes. `busiest` has the most of each in one minute; a session is a write, too."""

    def __init__(self) -> None:
        self.busiest = {"reads": 0, "writes": 0}
        self._counted = dict(self.busiest)
        self._began: datetime | None = None

    def __repr__(self) -> str:
        return f"<Load in the busiest minute: {self.busiest}>"

    def count(self, method: str, now: datetime) -> None:
        """Count a request. The first one after a minute begins the next."""
        if self._began is None or now >= self._began + _MINUTE:
            self._began, self._counted = now, dict.fromkeys(self.busiest, 0)
        kind = "reads" if method in _READS else "writes"
        self._counted[kind] += 1
        self.busiest[kind] = max(self.busiest[kind], self._counted[kind])
