"""Keeps BMCs that do not answer from occupying the workers that the others need.

A request to a BMC that is gone takes until the connection attempt gives up, some seconds, in which a worker waits.
With a thousand such BMCs of ten thousand, every worker would wait. So a BMC whose last request got no answer is
*silent*, and requests to silent BMCs share a small budget: `budget` of them are in flight at a time, one for each BMC.
Any other fails at once with the error that the BMC gave last, which costs nothing and leads to the same condition.

With many silent BMCs each gets its turn: an attempt is refused until as much time has passed since the last one as all
of them together need (`CONNECT` each, divided by the budget). With few there is no pause. The first answer of any kind
ends the silence. A BMC that was never asked is not silent, unless its status says that it did not answer before this
process was started (`expect`).

A BMC that answered until now is learned to be silent by an attempt without the budget. Where many become silent at the
same time (a switch, a power feed), these attempts would occupy the workers for a minute; so while more than `budget`
BMCs have become silent within RECENT, such an attempt to connect is given up after CONNECT_HURRIED instead of CONNECT.
"""

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from metal.redfish import Response, Transport
from metal.redfish.errors import BMCError, BMCTimeout, BMCUnreachable
from metal.redfish.transport import ConnectionDropped

CONNECT = 5.0
"""Seconds after which an attempt to connect is given up."""
CONNECT_HURRIED = 2.5
"""The same while many BMCs become silent. TCP repeats a lost SYN after one second, and the TLS handshake of a slow BMC
takes one: a BMC with both is not silent."""
RECENT = 60.0
"""Seconds for which a BMC counts as one that became silent recently: the interval of the checks."""


@dataclass
class _Silence:
    """A BMC that did not answer: its last error, when it was asked last, and whether it is being asked."""

    error: BMCError
    asked_at: float
    in_flight: bool = False


class SilentBMCs:
    """The BMCs of a pool that do not answer, and the budget that requests to them share."""

    def __init__(self, budget: int) -> None:
        self._budget = max(1, budget)
        self._silent: dict[str, _Silence] = {}
        self._became_silent_at: deque[float] = deque(maxlen=self._budget + 1)
        self._in_flight = 0

    def __len__(self) -> int:
        return len(self._silent)

    def connect_timeout(self, key: str) -> float:
        """Seconds after which an attempt to connect that begins now is given up; CONNECT within the budget."""
        last = self._became_silent_at
        are_many = len(last) > self._budget and _now() - last[0] < RECENT
        return CONNECT_HURRIED if are_many and key not in self._silent else CONNECT

    def guard(self, key: str, transport: Transport) -> Transport:
        """The transport of one BMC within the budget."""
        return _Guarded(self, key, transport)

    def enter(self, key: str) -> bool:
        """Begin a request; True when it uses the budget. Raises the last error of a silent BMC that must wait."""
        known = self._silent.get(key)
        if known is None:
            return False
        pause = len(self._silent) * CONNECT / self._budget
        waits = len(self._silent) > self._budget and _now() - known.asked_at < pause
        if known.in_flight or waits or self._in_flight >= self._budget:
            raise type(known.error)(str(known.error))
        known.in_flight, known.asked_at = True, _now()
        self._in_flight += 1
        return True

    def leave(self, key: str) -> None:
        """A request that used the budget has ended."""
        self._in_flight -= 1
        if (known := self._silent.get(key)) is not None:
            known.in_flight = False

    def failed(self, key: str, error: BMCError) -> None:
        """The BMC did not answer."""
        known = self._silent.get(key)
        if known is None:
            self._silent[key] = _Silence(error, _now())
            self._became_silent_at.append(_now())
        else:
            known.error = error

    def expect(self, key: str, error: BMCError) -> None:
        """The BMC did not answer another process; it can be asked at once, within the budget."""
        self._silent.setdefault(key, _Silence(error, -math.inf))

    def answered(self, key: str) -> None:
        """The BMC answered, or is forgotten."""
        self._silent.pop(key, None)


class _Guarded:
    """A transport whose requests use the budget while its BMC is silent."""

    def __init__(self, silent: SilentBMCs, key: str, inner: Transport) -> None:
        self._silent, self._key, self._inner = silent, key, inner

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None, timeout: float
    ) -> Response:
        """See Transport."""
        counts, began = self._silent.enter(self._key), _now()
        try:
            response = await self._inner.request(method, path, headers=headers, body=body, timeout=timeout)
        except ConnectionDropped:
            raise
        except (BMCUnreachable, BMCTimeout) as error:
            self._silent.failed(self._key, error)
            raise
        except asyncio.CancelledError:
            if _now() - began >= CONNECT:
                self._silent.failed(self._key, BMCTimeout(f"The BMC did not answer {method} {path} in time."))
            raise
        else:
            self._silent.answered(self._key)
            return response
        finally:
            if counts:
                self._silent.leave(self._key)

    async def aclose(self) -> None:
        """See Transport."""
        await self._inner.aclose()


def _now() -> float:
    return asyncio.get_running_loop().time()
