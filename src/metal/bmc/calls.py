"""Logs every write to a BMC as one line, and attributes every request to the operation that sent it.

In come calls of the BMC protocols, through `RecordedBMC`, which the pool puts around each client. A call that may write
notes its operation in a context variable; the client below reports each change that it sends (`note_write`) and each
request that ends (`Target.observe`), in the same task and so in the same context. Out goes one line for each call that
sent a change or failed: which BMC and system, which operation with which arguments, why, and the answer. A call that
found everything as requested sent no change, and is logged at level debug; reads are not logged.

`why` is a second context variable: a controller sets it once a pass (`set_reason`) to a function, which is called only
when a line is written and so sees the state at that moment. Arguments are logged by an allowlist, because event
destinations, boot URIs and asset tags hold tokens.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from metal.bmc.errors import BMCError
from metal.bmc.metrics import UNKNOWN, Metrics, vendor_label

_log = structlog.get_logger(__name__)
WRITES = frozenset({
    "power_on", "power_off", "reset", "set_network_boot", "clear_boot_override", "set_boot_order", "reset_bios",
    "clear_tpm", "set_indicator_led", "reset_manager", "subscribe", "unsubscribe", "send_test_event",
    "insert_medium", "eject_medium", "set_medium_boot", "set_http_boot", "clear_http_boot", "set_asset_tag",
})  # fmt: skip
"""Methods of the BMC protocols that change something."""
READS = frozenset({
    "manager", "systems", "system", "inventory", "bios_attributes", "is_bios_reset_pending", "is_tpm_clear_pending",
    "subscriptions", "subscription", "media_slots", "http_boot", "asset_tags", "secure_boot", "offered_methods",
})  # fmt: skip
"""All others."""
_LOGGED = frozenset({"force", "reset_type", "target", "order", "state", "uuid", "context", "slot", "place"})
"""Arguments that hold no secret. `uri` is logged as the system, or as what is unsubscribed from."""


@dataclass
class Call:
    """One call of an operation."""

    operation: str
    sent: int = 0
    """Changes that were sent to the BMC."""


_call: ContextVar[Call | None] = ContextVar("bmc_call", default=None)
_reason: ContextVar[Callable[[], str]] = ContextVar("bmc_write_reason", default=lambda: "")


def set_reason(reason: Callable[[], str]) -> None:
    """From now on writes of this task are logged with what `reason` returns at that time."""
    _reason.set(reason)


def note_write() -> None:
    """A change is about to be sent in the present call."""
    call = _call.get()
    if call is not None:
        call.sent += 1


@dataclass
class Target:
    """One BMC, as lines and labels name it."""

    name: str
    metrics: Metrics
    vendor: str = UNKNOWN
    """Known once the BMC was asked for a system or its manager."""

    def observe(self, method: str, result: str, seconds: float) -> None:
        """Count a request that has ended."""
        call = _call.get()
        operation = call.operation if call is not None else "close"
        self.metrics.requests.labels(self.vendor, operation, method, result).inc()
        self.metrics.seconds.labels(self.vendor, operation).observe(seconds)

    def count(self, call: Call, outcome: "Outcome") -> None:
        """Count a write that sent something or failed."""
        if call.sent or outcome.result != "ok":
            self.metrics.writes.labels(self.vendor, call.operation, outcome.result).inc()

    def learn(self, answer: Any) -> None:
        """Take the vendor from an answer, where it names the manufacturer."""
        first = answer[0] if isinstance(answer, tuple) and answer else answer
        manufacturer = getattr(first, "manufacturer", "")
        if isinstance(manufacturer, str) and manufacturer:
            self.vendor = vendor_label(manufacturer)


@dataclass
class Outcome:
    """How a write ended."""

    result: str = "ok"
    error: str | None = None
    seconds: float = 0.0


Ended = Callable[[Call, Outcome], None]


@contextmanager
def logged_write(
    bmc: str, operation: str, arguments: Mapping[str, Any], ended: Ended = lambda call, outcome: None
) -> Iterator[Call]:
    """Log what happens inside as one write to this BMC, and call `ended`. Exceptions pass."""
    loop = asyncio.get_running_loop()
    call, outcome, began = Call(operation), Outcome(), loop.time()
    token = _call.set(call)
    try:
        yield call
    except BMCError as exc:
        outcome.result, outcome.error = exc.reason, str(exc)
        raise
    except BaseException as exc:
        cancelled = isinstance(exc, asyncio.CancelledError)
        outcome.result, outcome.error = ("cancelled", None) if cancelled else (type(exc).__name__, str(exc))
        raise
    finally:
        _call.reset(token)
        outcome.seconds = round(loop.time() - began, 3)
        ended(call, outcome)
        _write_line(bmc, call, outcome, arguments)


def _write_line(bmc: str, call: Call, outcome: Outcome, arguments: Mapping[str, Any]) -> None:
    level = _log.warning if outcome.result != "ok" else _log.info if call.sent else _log.debug
    level(
        "BMC write", bmc=bmc, operation=call.operation, **arguments, why=_reason.get()(), result=outcome.result,
        error=outcome.error, changes=call.sent, seconds=outcome.seconds,
    )  # fmt: skip


class RecordedBMC:
    """Implements metal.bmc.pool.BMC with the BMC inside; writes are logged, and all calls name their operation."""

    def __init__(self, bmc: object, target: Target) -> None:
        self._bmc, self._target = bmc, target

    def __repr__(self) -> str:
        return repr(self._bmc)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._bmc, name)
        if name in WRITES:
            return partial(self._write, name, method)
        return partial(self._read, name, method) if name in READS else method

    async def _read(self, name: str, method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        token = _call.set(Call(name))
        try:
            answer = await method(*args, **kwargs)
        finally:
            _call.reset(token)
        self._target.learn(answer)
        return answer

    async def _write(self, name: str, method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(method).bind(*args, **kwargs).arguments
        arguments = {key: _plain(value) for key, value in given.items() if key in _LOGGED}
        with logged_write(self._target.name, name, {"system": given.get("uri"), **arguments}, self._target.count):
            return await method(*args, **kwargs)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else list(value) if isinstance(value, tuple) else value
