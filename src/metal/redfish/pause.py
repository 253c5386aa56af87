"""Honours Retry-After: after a 503 that names a time, the BMC gets no request until that time has passed.

All callers of one BMC share the pause, so it holds however many controllers, Servers and causes there are. A request
during the pause fails at once with the error that began it, and `retry_after` says how much of it is left.
"""

import asyncio
import math

from metal.redfish.errors import BMCBusy

LONGEST = 300.0
"""Longest pause in seconds, whatever the BMC asks for: some answer with a day, or with a number of milliseconds."""


class Pause:
    """The pause that one BMC asked for."""

    def __init__(self) -> None:
        self._until = -math.inf
        self._text = ""

    def begin(self, error: BMCBusy) -> None:
        """Pause as long as the error says; without Retry-After there is none."""
        if error.retry_after:
            self._until = asyncio.get_running_loop().time() + min(error.retry_after, LONGEST)
            self._text = str(error)

    @property
    def left(self) -> float:
        """Seconds until it ends; negative after it."""
        return self._until - asyncio.get_running_loop().time()

    def check(self) -> None:
        """Raises: BMCBusy during the pause."""
        if (left := self.left) > 0:
            error = BMCBusy(self._text)
            error.retry_after = left
            raise error
