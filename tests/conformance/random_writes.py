"""Random sequences of writes by several managers to one object, and what a home makes of them."""

import random
from dataclasses import dataclass
from typing import Any

from metal.kube.meta.mergepatch import apply as merged
from tests.conformance.api import Api, Obj, Reply, config_map, widget
from tests.conformance.ways import APPLY, JSON_PATCH, MERGE, STRATEGIC

MANAGERS = ("one", "two", "three")
_FLEETING = ("uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True)
class Step:
    """One write. body: a configuration, a patch, or for an update a merge patch to what is there."""

    verb: str
    manager: str
    body: Any
    force: bool = False
    sub: str = ""


class Writer:
    """Makes steps for one object of a kind: "widgets" or "configmaps"."""

    def __init__(self, plural: str, name: str, rng: random.Random) -> None:
        self.plural, self.name, self._rng = plural, name, rng

    def steps(self, least: int = 6, most: int = 10) -> list[Step]:
        """A sequence, which an apply begins."""
        first = Step(APPLY, self._manager(), self._configuration(nulls=0.0))
        return [first, *(self._step() for _ in range(self._rng.randint(least, most) - 1))]

    def _step(self) -> Step:
        rng, custom = self._rng, self.plural == "widgets"
        verbs = [APPLY, APPLY, APPLY, APPLY, MERGE, JSON_PATCH, "update", *((MERGE, APPLY) if custom else (STRATEGIC,))]
        place = rng.randrange(len(verbs))
        verb, sub = verbs[place], "status" if custom and place >= 7 else ""
        manager, force = self._manager(), rng.random() < 0.6
        if verb == APPLY:
            return Step(verb, manager, self._status() if sub else self._configuration(), force, sub)
        if verb == JSON_PATCH:
            return Step(verb, manager, self._operations())
        change = {"status": self._phase()} if sub else self._change()
        return Step(verb, manager, change, sub=sub)

    def _manager(self) -> str:
        return self._rng.choice(MANAGERS)

    def _some(self, names: str) -> list[str]:
        chosen = [name for name in names if self._rng.random() < 0.5]
        self._rng.shuffle(chosen)
        return chosen

    def _texts(self, names: str = "kl", nulls: float = 0.0) -> Obj:
        pick = self._rng
        return {name: None if pick.random() < nulls else pick.choice("12") for name in self._some(names)}

    def _spec(self, nulls: float = 0.0) -> Obj:
        rng = self._rng
        whole: Obj = {
            "size": rng.randrange(3),
            "note": rng.choice(("plain", "fancy")),
            "tags": self._some("xyz"),
            "ports": [
                {"name": name, **({"port": rng.randrange(2)} if rng.random() < 0.7 else {})}
                for name in self._some("pqr")
            ],
            "atomic": self._some("ab"),
            "labels": self._texts(),
        }
        chosen = {name: value for name, value in whole.items() if rng.random() < 0.5} or {"note": "plain"}
        return {name: None if rng.random() < nulls else value for name, value in chosen.items()}

    def _meta(self) -> Obj:
        meta: Obj = {}
        if self._rng.random() < 0.3:
            meta["labels"] = self._texts("mn")
        if self._rng.random() < 0.2:
            meta["annotations"] = self._texts("vw")
        # Empty ones are written once more by kube-apiserver with the next write to anything.
        return {name: value for name, value in meta.items() if value}

    def _configuration(self, nulls: float = 0.02) -> Obj:
        meta = {"name": self.name, **self._meta()}
        if self.plural == "widgets":
            return {**widget(self.name, **self._spec(nulls)), "metadata": meta}
        obj: Obj = {**config_map(self.name), "metadata": meta, "data": self._texts("stu")}
        if self._rng.random() < 0.3:
            obj["binaryData"] = dict.fromkeys(self._some("bc"), "AAEC")
        if self._rng.random() < 0.1:
            del obj["data"]
        return obj

    def _phase(self) -> Obj:
        whole = {"phase": self._rng.choice(("up", "down")), "observedGeneration": self._rng.randrange(2)}
        return {name: value for name, value in whole.items() if self._rng.random() < 0.6}

    def _status(self) -> Obj:
        return {**widget(self.name), "spec": {}, "status": self._phase()}

    def _change(self) -> Obj:
        """A merge patch."""
        rng = self._rng
        change: Obj = {"metadata": self._meta()}
        if self.plural == "configmaps":
            return {**change, "data": None if rng.random() < 0.1 else self._texts("stu", nulls=0.3)}
        spec = {name: None if rng.random() < 0.3 else value for name, value in self._spec().items()}
        if isinstance(spec.get("labels"), dict):
            spec["labels"] = self._texts(nulls=0.3)
        return {**change, "spec": spec}

    def _operations(self) -> list[Obj]:
        rng = self._rng
        if self.plural == "configmaps":
            place = f"/data/{rng.choice('stu')}"
            return [{"op": rng.choice(("add", "replace")), "path": place, "value": rng.choice("12")}]
        choices: list[Obj] = [
            {"op": "add", "path": "/spec/tags", "value": self._some("xyz")},
            {"op": "add", "path": "/spec/tags/-", "value": rng.choice("xyz")},
            {"op": "remove", "path": "/spec/tags/0"},
            {"op": "add", "path": "/spec/ports", "value": [{"name": name} for name in self._some("pqr")]},
            {"op": "remove", "path": "/spec/ports/0"},
            {"op": "replace", "path": "/spec/size", "value": rng.randrange(3)},
            {"op": "remove", "path": "/spec/labels"},
            {"op": "add", "path": "/spec/atomic", "value": self._some("ab")},
        ]
        return rng.sample(choices, rng.randint(1, 2))


async def take(api: Api, plural: str, name: str, step: Step) -> Reply:
    """Take one step in one home."""
    path = api.path(plural, name, step.sub, **({"base": "/api/v1"} if plural == "configmaps" else {}))
    if step.verb == APPLY:
        return await api.apply(path, step.body, step.manager, force=step.force)
    if step.verb == "update":
        changed: Any = merged((await api.get(path)).ok(), step.body)
        return await api.update(path, changed, fieldManager=step.manager)
    return await api.patch(path, step.body, step.verb, fieldManager=step.manager)


async def look(api: Api, plural: str, name: str) -> Obj:
    """The object as it is now, with nothing of it left out."""
    return (await api.get(api.path(plural, name, **({"base": "/api/v1"} if plural == "configmaps" else {})))).ok()


def lasting(obj: Obj) -> Obj:
    """What is the same in every home: no times, no uid, no version; managers in an order of their own."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _FLEETING}
    entries = [{k: v for k, v in entry.items() if k != "time"} for entry in meta.get("managedFields", ())]
    meta["managedFields"] = sorted(entries, key=lambda e: (e["manager"], e["operation"], e.get("subresource", "")))
    return {**obj, "metadata": meta}
