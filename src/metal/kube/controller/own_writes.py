"""Remembers which versions of its objects a controller wrote, so that its own status writes cause no pass.

A controller is woken by causes: spec, metadata, the status that another client wrote, and time. What it wrote itself it
knows already; a pass that follows each write sends the same requests again, and where the status contains a countdown
or an error text that changes, each pass would cause the next one.

A status writer calls `note` with the answer to each write, before the answer enters the cache. The watch brings the
same version once more, often before the answer: `Controller.watches_own` therefore decides about status changes that
arrive during a pass when that pass has ended. A version that was noted was written over one that the writer knew
(writes are guarded by resourceVersion), so it contains nothing new. Every other version is another client's.

`wake_after` has the object looked at later, for writers that limit how often they write.
"""

from collections import deque
from collections.abc import Callable

from metal.kube.meta.objects import Key, Object, key_of

_REMEMBERED = 16
"""Versions for each object: more than one pass writes, and a watch is seldom further behind."""


class OwnWrites:
    """The last versions that one controller wrote, by object."""

    def __init__(self) -> None:
        self._versions: dict[Key, deque[tuple[str, str]]] = {}
        self._wake_after: Callable[[Key, float], None] | None = None

    def __repr__(self) -> str:
        return f"<OwnWrites objects={len(self._versions)}>"

    def note(self, obj: Object) -> None:
        """Record the answer to a status write of this controller."""
        key, meta = key_of(obj), obj.metadata
        self._versions.setdefault(key, deque(maxlen=_REMEMBERED)).append((meta.uid, meta.resource_version))

    def wrote(self, obj: Object) -> bool:
        """Whether this version of the object is the result of such a write."""
        meta = obj.metadata
        return (meta.uid, meta.resource_version) in self._versions.get(key_of(obj), ())

    def forget(self, key: Key) -> None:
        """The object was deleted."""
        self._versions.pop(key, None)

    def wake_after(self, key: Key, seconds: float) -> None:
        """Queue the key of the controller that watches with these writes, after so many seconds."""
        if self._wake_after is not None:
            self._wake_after(key, seconds)

    def serve(self, wake_after: Callable[[Key, float], None]) -> None:
        """Connect `wake_after` with the queue of a controller."""
        self._wake_after = wake_after
