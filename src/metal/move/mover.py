"""The move itself.

Both homes are paused, their managers stop, all objects are copied and read back, the source is marked as moved, and the
target is released. Progress is recorded in the pause record of each home (`pause.Mark`), so that a move that was
interrupted at any point continues with the next run. Every step is idempotent. The roles in the two records:

| source  | target  | active | progress                                                  |
|---------|---------|--------|-----------------------------------------------------------|
| -       | -       | source | not started                                               |
| source  | -       | none   | pausing                                                   |
| source  | target  | none   | copying; the objects at the source are the valid ones     |
| moved   | target  | none   | verified; the objects at the target are the valid ones    |
| moved   | -       | target | done; the source stays paused for ever                    |
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from metal.api.meta import Kind
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.move.documents import (
    Doc,
    Identity,
    Moved,
    converted,
    digest,
    fetch,
    identity,
    kinds_in_order,
    without_server_fields,
)
from metal.move.homes import Home, Refused
from metal.move.inventory import Inventory, take
from metal.move.pause import Mark

_ROUNDS = 5
"""How often the copy is repeated because objects changed at the source."""


@dataclass
class Outcome:
    """The result of a move."""

    id: str
    moved: dict[str, int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)


@dataclass
class Mover:
    """Moves all objects from source to target. `say` is called with a sentence for each step, without secrets."""

    source: Home
    target: Home
    say: Callable[[str], None] = lambda _: None

    async def plan(self) -> Inventory:
        """The objects to move, after all read-only checks. Raises Refused and ApiError."""
        for home in (self.source, self.target):
            await home.check()
        self._same_groups()
        found = await take(self.source.client, self.source.kinds, self.source.namespace)
        self._none_ending(found)
        await self._check_target(await self.source.mark(), await self.target.mark())
        return found

    async def run(self) -> Outcome:
        """Move. Raises Refused when it cannot start or continue, ApiError when an API fails; run it again then."""
        for home in (self.source, self.target):
            await home.check()
        self._same_groups()
        here, there = await self.source.ensure_namespace(), await self.target.ensure_namespace()
        if here == there:
            raise Refused("source and target are the same API")
        if await self._aborted(there):
            return Outcome("")
        id = await self._begin(here, there)
        outcome = Outcome(id)
        outcome.stopped = await self._await_managers(id)
        found = await take(self.source.client, self.source.kinds, self.source.namespace)
        self._none_ending(found)
        outcome.orphaned = [str(one) for one in found.orphaned()]
        outcome.moved = found.counts()
        if (await self._pause(id)).role == "source":
            found = await self._copy(found, id)
            await self._pause(id)
            await self.source.pause(Mark(id, "moved", there, self.target.name))
            self.say(f"{self.source.name} is marked as moved: its managers stay paused")
        await self.target.release()
        self.say(f"{self.target.name} is released: its managers are active")
        return outcome

    async def _pause(self, id: str) -> Mark:
        """The pause of the source. Raises Refused when another client ended it: the managers there act again."""
        mark = await self.source.mark()
        if mark is None or mark.id != id:
            raise Refused(f"the pause of {self.source.name} was ended by another client: run this again")
        return mark

    def _same_groups(self) -> None:
        a, b = self.source.kinds, self.target.kinds
        if (a.group, a.boot_group) != (b.group, b.boot_group):
            raise Refused(f"the API groups differ: {a.group} and {b.group}")

    def _none_ending(self, found: Inventory) -> None:
        if ending := found.ending():
            names = ", ".join(str(one) for one in ending[:5])
            raise Refused(f"{names} at {self.source.name} is being deleted: wait until it is removed, then try again")

    async def _check_target(self, mine: Mark | None, theirs: Mark | None) -> None:
        """Require that the target is empty, or has objects of an earlier attempt or an earlier move only."""
        if theirs is not None and theirs.role in ("target", "moved"):
            return
        if mine is not None and mine.role == "moved":
            raise Refused(f"the objects of {self.source.name} were moved to {mine.where}; they are no longer valid")
        found = await self.target.objects()
        if found:
            names = ", ".join(str(identity(doc)) for doc in found[:5])
            raise Refused(f"{self.target.name} has {len(found)} objects of its own ({names} …): it must be empty")

    async def _begin(self, here: str, there: str) -> str:
        """Create both pause records and return the id of the move; an unfinished move keeps its id."""
        mine, theirs = await self.source.mark(), await self.target.mark()
        if mine is not None and mine.peer != there:
            raise Refused(f"{self.source.name} is in the middle of a move to or from {mine.where}: finish that one")
        if mine is not None and mine.role == "moved" and (theirs is None or theirs.id != mine.id):
            raise Refused(f"the objects of {self.source.name} were moved to {mine.where}: there is nothing to move")
        await self._check_target(mine, theirs)
        id = _unfinished(mine, theirs, here) or uuid.uuid4().hex[:12]
        if (
            mine is None or mine.role == "target"
        ):  # the target of a move whose source is marked as moved: its objects are the valid ones
            await self.source.pause(Mark(id, "source", there, self.target.name))
        if theirs is None or theirs.role == "moved" or theirs.id != id:
            left = theirs is not None and (theirs.role == "moved" or theirs.leftovers)
            await self.target.pause(Mark(id, "target", here, self.source.name, leftovers=left))
        self.say(f"both homes are paused for move {id}")
        return id

    async def _aborted(self, there: str) -> bool:
        """Abort an unfinished move in the opposite direction: remove the copy and release the original home."""
        mine, theirs = await self.source.mark(), await self.target.mark()
        if mine is None or mine.role != "target":
            return False
        if theirs is not None and (theirs.role, theirs.id) != ("source", mine.id):
            return False
        await self._await_managers(mine.id)
        await self._clear(mine)
        if mine.leftovers:
            await self.source.pause(Mark(mine.id, "moved", there, self.target.name))
        await self.target.release()
        if not mine.leftovers:
            await self.source.release()
        self.say(f"the unfinished move {mine.id} is aborted: {self.target.name} is active again, with all its objects")
        return True

    async def _await_managers(self, id: str) -> list[str]:
        stopped = [f"{name} at {home.name}" for home in (self.source, self.target) for name in await home.stopped(id)]
        self.say(f"all managers have stopped: {', '.join(stopped) or 'none is running'}")
        return stopped

    async def _copy(self, found: Inventory, id: str) -> Inventory:
        """Copy until the source did not change meanwhile; users and DHCP hooks ignore the pause."""
        mark = await self.target.mark()
        for _ in range(_ROUNDS):
            await _Copy(self.target, found, id, self.say, replace=mark is not None and mark.leftovers).run()
            again = await take(self.source.client, self.source.kinds, self.source.namespace)
            if again.versions() == found.versions():
                return found
            self.say(f"objects at {self.source.name} changed meanwhile; copying again")
            self._none_ending(found := again)
        raise Refused(f"other clients keep changing objects at {self.source.name}: stop them, and run this again")

    async def _clear(self, mark: Mark) -> None:
        """Remove the objects that the aborted move created at the source of this run."""
        home = self.source
        for kind in reversed(kinds_in_order(home.kinds)):
            for doc in await fetch(home.client, kind):
                if _put_by(doc, _note(home), mark.id) and kind.kind != "Namespace":
                    await _remove(home, kind, doc)


def _unfinished(mine: Mark | None, theirs: Mark | None, here: str) -> str:
    """The id of the move to continue, also when another client ended the pause of the source; empty without one."""
    if mine is not None:
        return mine.id if mine.role != "target" else ""
    return theirs.id if theirs is not None and (theirs.role, theirs.peer) == ("target", here) else ""


def _note(home: Home) -> str:
    return home.kinds.key("moved-by")


def _put_by(doc: Doc, annotation: str, id: str) -> bool:
    return str(doc["metadata"].get("annotations", {}).get(annotation, "")) == id


async def _remove(home: Home, kind: Kind[Any], doc: Doc) -> None:
    """Delete an object and its finalizers, which no manager would remove while all are paused."""
    me, uid = identity(doc), doc["metadata"]["uid"]
    try:
        if doc["metadata"].get("finalizers"):
            await home.client.patch(kind, me.name, {"metadata": {"uid": uid, "finalizers": None}}, me.namespace)
        await home.client.delete(kind, me.name, me.namespace, uid=uid)
    except NotFound:
        return


@dataclass
class _Copy:
    """Creates all objects, then sets their status with the new UIDs, then reads everything back."""

    target: Home
    found: Inventory
    id: str
    say: Callable[[str], None]
    replace: bool = False
    """The objects at the target were moved away before and may be replaced."""
    moved: dict[str, Moved] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = {kind.kind: kind for kind in kinds_in_order(self.target.kinds)}
        self.note = _note(self.target)

    async def run(self) -> None:
        """Copy all objects and verify the result. Raises Refused when they differ."""
        there = {
            kind: {identity(doc): doc for doc in await fetch(self.target.client, k)} for kind, k in self.kinds.items()
        }
        await self._clear_others(there)
        for doc in self.found.documents:
            await self._put(doc, there[doc["kind"]].get(identity(doc)))
        self.say(f"{len(self.found.documents)} objects exist at the target")
        for doc in self.found.documents:
            await self._put_status(doc)
        self.say("their status is set")
        await self._verify()
        self.say("all objects were read back and are identical")

    async def _clear_others(self, there: dict[str, dict[Identity, Doc]]) -> None:
        """Remove objects that an earlier move left at the target; keep those of this move."""
        for name in reversed(list(self.kinds)):
            for me, doc in list(there[name].items()):
                if self.kinds[name].group and not _put_by(doc, self.note, self.id):
                    await _remove(self.target, self.kinds[name], doc)
                    del there[name][me]

    async def _put(self, doc: Doc, old: Doc | None) -> None:
        kind, wanted = self.kinds[doc["kind"]], self._converted(doc)
        if old is not None and not self._is_same(wanted, old) and doc["kind"] != "Namespace":
            if not self.replace and not _put_by(old, self.note, self.id):
                raise Refused(
                    f"{identity(doc)} is at {self.target.name} already, with other content: remove or rename it"
                )
            await _remove(self.target, kind, old)
            old = None
        new = old if old is not None else await self._create(kind, wanted)
        mine, theirs = doc["metadata"], new["metadata"]
        self.moved[mine["uid"]] = Moved(
            mine["uid"], mine.get("generation", 0), theirs["uid"], theirs.get("generation", 0)
        )

    def _is_same(self, wanted: Doc, old: Doc) -> bool:
        return digest(_without_status(wanted)) == digest(_without_status(without_server_fields(old, self.note)))

    async def _create(self, kind: Kind[Any], wanted: Doc) -> Doc:
        body = _without_status(wanted)
        notes = {**body["metadata"].get("annotations", {}), self.note: self.id}
        body = {**body, "metadata": {**body["metadata"], "annotations": notes}}
        try:
            return {**msgspec.json.decode(await self.target.client.create(kind, body)), "kind": kind.kind}
        except AlreadyExists:
            raise Refused(f"{identity(wanted)} appeared at {self.target.name} meanwhile: try again") from None

    async def _put_status(self, doc: Doc) -> None:
        status = self._converted(doc).get("status")
        if not status or not self.kinds[doc["kind"]].group:
            return
        me = identity(doc)
        await self.target.client.patch_status(self.kinds[me.kind], me.name, {"status": status}, me.namespace)

    async def _verify(self) -> None:
        there = {identity(doc): doc for kind in self.kinds.values() for doc in await fetch(self.target.client, kind)}
        for doc in self.found.documents:
            me = identity(doc)
            if me.kind == "Namespace":
                continue
            found = there.get(me)
            if found is None or digest(self._converted(doc)) != digest(without_server_fields(found, self.note)):
                raise Refused(f"{me} differs at {self.target.name}: another client changed it; run this again")

    def _converted(self, doc: Doc) -> Doc:
        return converted(doc, self.moved, self.note)


def _without_status(doc: Doc) -> Doc:
    return {key: value for key, value in doc.items() if key not in ("status", "kind")}
