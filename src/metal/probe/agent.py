"""The main loop of the probe: gathers a report and sends it until the registry accepts it.

A transient failure (no connection, 5xx, 429) leads to a retry of the same report, with exponential backoff and jitter,
without a limit unless `deadline` is set: without the report the server cannot be discovered. A refused token or a
malformed report ends the run with its own exit code. With `interval` a new report follows after each accepted one.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from metal.probe.registry import Malformed, NotAccepted, Refused

DONE, MALFORMED, GAVE_UP, REFUSED = 0, 65, 75, 77
"""Exit codes, as sysexits.h names them: EX_OK, EX_DATAERR, EX_TEMPFAIL, EX_NOPERM."""

log = logging.getLogger("metalprobe")


@dataclass
class Agent:
    """One run of the probe. Clock and randomness are injected for tests."""

    gather: Callable[[], dict[str, Any]]
    """Gathers a new report."""
    register: Callable[[dict[str, Any]], None]
    """Sends it; raises as Registry.register does."""
    sleep: Callable[[float], None]
    now: Callable[[], float]
    """Seconds, from any origin."""
    interval: float = 0.0
    """Seconds between an accepted report and the next; 0 ends after the first."""
    deadline: float = 0.0
    """Seconds within which a report must be accepted; 0 retries without limit."""
    once: bool = False
    """Make one attempt only."""
    longest_wait: float = 30.0
    """Maximum seconds between two attempts."""
    random: random.Random = field(default_factory=random.Random)

    def run(self) -> int:
        """Returns an exit code."""
        while True:
            code = self._report()
            if code != DONE or self.interval <= 0 or self.once:
                return code
            self.sleep(self.interval)

    def _report(self) -> int:
        data = self.gather()
        started, attempt = self.now(), 0
        try:
            while (failure := self._attempt(data)) is not None:
                wait = self._wait(attempt, failure.retry_after)
                if self.once or 0 < self.deadline < self.now() - started + wait:
                    return _final(GAVE_UP, failure)
                log.warning("%s; trying again in %.1f s", failure, wait)
                self.sleep(wait)
                attempt += 1
        except Refused as refused:
            return _final(REFUSED, refused)
        except Malformed as malformed:
            return _final(MALFORMED, malformed)
        log.info("the registry accepted the report")
        return DONE

    def _attempt(self, data: dict[str, Any]) -> NotAccepted | None:
        try:
            self.register(data)
        except NotAccepted as failure:
            return failure
        return None

    def _wait(self, attempt: int, asked: float) -> float:
        """Doubles from 1 s, with jitter, so that the machines of a rack do not retry at the same time."""
        longest = min(self.longest_wait, 2.0 ** min(attempt, 16))
        return max(longest * self.random.uniform(0.5, 1.0), min(asked, 10 * self.longest_wait))


def _final(code: int, reason: Exception) -> int:
    log.error("not reported: %s", reason)
    return code
