"""One pass over one object: collects changes of its status, and writes their difference once as a merge patch.

Nothing is written before `commit`. A change that only touches volatile fields (texts for people and percentages, see
`volatile`) is limited to a few writes in a row and then one each `VOLATILE_EVERY` seconds; the object is then looked at
again when it is due. All other changes are written at once. `Context.own_writes` remembers each version that was
written, so that the controller is not woken by it.
"""

import random
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import msgspec

from metal.api.boot_window import Phase
from metal.api.kinds import Kinds
from metal.api.meta import Condition, Kind, ObjectMeta
from metal.bmc import calls
from metal.controllers.shared import clock_jump
from metal.controllers.shared.metrics import transitions
from metal.controllers.shared.metrics.metrics import Metrics, unregistered
from metal.controllers.shared.volatile import VolatileBudget, is_volatile
from metal.kube.cache.informer import Informer
from metal.kube.client.protocol import Client
from metal.kube.controller.events import Recorder
from metal.kube.controller.own_writes import OwnWrites
from metal.kube.controller.transitions import state_of
from metal.kube.meta.clock import Clock
from metal.kube.meta.conditions import find, set_condition
from metal.kube.meta.mergepatch import diff
from metal.kube.meta.objects import Key, key_of

_LONGEST = 32768
"""Characters of a condition's message (metav1.Condition); a longer one would make the status write fail."""


@dataclass(frozen=True)
class Context:
    """What every reconciler works with."""

    client: Client
    kinds: Kinds
    clock: Clock
    rng: random.Random
    recorder: Recorder
    metrics: Metrics = field(default_factory=unregistered)
    _own_writes: dict[str, OwnWrites] = field(default_factory=dict)
    _volatile: dict[str, VolatileBudget] = field(default_factory=dict)
    _followed: set[str] = field(default_factory=set)
    failing: dict[tuple[str, Key], tuple[float, int]] = field(default_factory=dict)
    """By kind and key, since when (loop time) and how often the API failed the passes without refusing them."""

    def own_writes(self, kind: Kind[Any]) -> OwnWrites:
        """The status writes of the controller of this kind."""
        return self._own_writes.setdefault(kind.kind, OwnWrites())

    def volatile(self, kind: Kind[Any]) -> VolatileBudget:
        """How often volatile changes of objects of this kind may be written."""
        return self._volatile.setdefault(kind.kind, VolatileBudget())

    def forget_deleted(self, kind: Kind[Any], informer: Informer[Any]) -> None:
        """From now on, drop what is remembered of an object of this kind when the object is deleted."""
        if kind.kind not in self._followed:
            self._followed.add(kind.kind)
            informer.add_handler(lambda old, new: self._forget(kind, old) if new is None else None)

    def _forget(self, kind: Kind[Any], obj: Any) -> None:
        key = key_of(obj)
        self.own_writes(kind).forget(key)
        self.volatile(kind).forget(key)
        self.failing.pop((kind.kind, key), None)

    def jitter(self, seconds: float) -> float:
        """The duration give or take a fifth, so that a fleet does not move in step."""
        return seconds * self.rng.uniform(0.8, 1.2)


class Reported(Protocol):
    """An object whose status has state, since, waiting_for and conditions."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def status(self) -> Any: ...


T = TypeVar("T", bound=Reported)


class StatusScope(Generic[T]):
    """The pending status of one object. Nothing is written before `commit`."""

    moments: ClassVar[clock_jump.Moments] = clock_jump.Moments()
    """What is corrected when the clock was set back."""

    def __init__(self, context: Context, kind: Kind[T], informer: Informer[T], obj: T, empty: msgspec.Struct) -> None:
        self.context, self.kind, self.informer, self.obj = context, kind, informer, obj
        self.now = context.clock().replace(microsecond=0)
        context.forget_deleted(kind, informer)
        self._own, self._volatile = context.own_writes(kind), context.volatile(kind)
        self._empty = empty
        self.generation_observed = True
        """Whether what is written counts as the result of the object's present generation."""
        self.status: Any = self._read(obj)
        calls.set_reason(self._why)

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.obj.metadata.name

    def _read(self, obj: T) -> Any:
        return clock_jump.corrected(obj.status or self._empty, self.now, self.moments)

    def _why(self) -> str:
        """Why this pass writes to a BMC, for the log: the pending state, the boot that starts, and what is awaited."""
        state, awaited = state_of(self.status), getattr(self.status, "waiting_for", "")
        window = getattr(self.status, "boot_window", None)
        boot = f", {window.purpose} boot {window.id}" if window is not None and window.phase == Phase.OPEN else ""
        waits = f", waits for {awaited}" if awaited else ""
        return f"{self.kind.kind} {self.name} in {state or 'no state'}{boot}{waits}"

    def set(self, **changes: Any) -> None:
        """Change fields of the pending status."""
        self.status = msgspec.structs.replace(self.status, **changes)

    def state(self, state: str, waiting_for: str = "") -> None:
        """Be in a state, since now if it is another one than before."""
        since = self.status.since if self.status.state == state and self.status.since else self.now
        self.set(state=state, since=since, waiting_for=waiting_for)

    def condition(self, type: str, status: bool, reason: str, message: str) -> bool:
        """Set a condition; True when its status or reason changed."""
        old = find(self.status.conditions, type)
        new = Condition(
            type=type,
            status="True" if status else "False",
            reason=reason,
            message=message[:_LONGEST],
            observed_generation=self.obj.metadata.generation,
        )
        self.set(conditions=set_condition(self.status.conditions, new, self.now))
        return old is None or (old.status, old.reason) != (new.status, new.reason)

    def report(self, type: str, status: bool, reason: str, message: str) -> None:
        """Set a condition, and record an Event when its status or reason changed."""
        if self.condition(type, status, reason, message):
            self.event("Normal" if status else "Warning", reason, message)

    def event(self, type: str, reason: str, message: str) -> None:
        """Record an Event on the object."""
        self.context.recorder.event(self.obj, self.kind, type, reason, message)

    async def commit(self) -> None:
        """Write what changed, if anything, and log a transition. Raises Conflict when the object changed meanwhile."""
        if self.generation_observed and "observed_generation" in self.status.__struct_fields__:
            self.set(observed_generation=self.obj.metadata.generation)
        old, new = self.obj.status or self._empty, self.status
        changes = _changes(old, new)
        volatile = is_volatile(old, new)
        if not changes or (volatile and self._is_too_soon()):
            return
        body = {"metadata": {"resourceVersion": self.obj.metadata.resource_version}, "status": changes}
        fresh = await self.context.client.patch_status(self.kind, self.name, body, self.obj.metadata.namespace)
        self._own.note(fresh)
        if volatile:
            self._volatile.spend(key_of(fresh))
        self.adopt(fresh)
        transitions.record(self.context.metrics, self.kind, self.obj, old, new)

    def _is_too_soon(self) -> bool:
        """Whether a write of volatile changes must wait; a later pass, which is queued, writes them."""
        key = key_of(self.obj)
        left = self._volatile.seconds_left(key)
        if left:
            self._own.wake_after(key, left)
        return left > 0

    async def patch(self, changes: dict[str, Any]) -> None:
        """Change metadata, spec or data now, guarded by resourceVersion; the pending status stays pending."""
        metadata = {**changes.get("metadata", {}), "resourceVersion": self.obj.metadata.resource_version}
        body = {**changes, "metadata": metadata}
        fresh = await self.context.client.patch(self.kind, self.name, body, self.obj.metadata.namespace)
        pending = self.status
        self.adopt(fresh)
        self.status = pending

    def keep_learned(self) -> None:
        """The API refused a request of this pass: keep what may be committed nevertheless, by default everything.

        status.observedGeneration stays, for the pass did not act on all of the spec.
        """
        self.generation_observed = False

    def discard(self) -> None:
        """Return to the status that was read or written last."""
        self.status = self.obj.status or self._empty

    def adopt(self, obj: T) -> None:
        """Continue with a newer version of the object."""
        self.obj, self.status = obj, self._read(obj)
        self.informer.observe(obj)


def _changes(old: msgspec.Struct, new: msgspec.Struct) -> dict[str, Any]:
    """The merge patch between two statuses. A field that was not set is the same object, and is not compared."""
    names = zip(new.__struct_fields__, new.__struct_encode_fields__, strict=True)
    touched = {wire for name, wire in names if getattr(old, name) is not getattr(new, name)}
    if not touched:
        return {}
    return diff(_plain(old, touched), _plain(new, touched))


def _plain(status: msgspec.Struct, touched: set[str]) -> dict[str, Any]:
    plain = cast("dict[str, Any]", msgspec.to_builtins(status))
    return {name: value for name, value in plain.items() if name in touched}
