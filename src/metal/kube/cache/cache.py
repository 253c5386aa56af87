"""Objects of one kind by key, with indexes that stay in step."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from metal.kube.meta.objects import Key, Object, key_of

T = TypeVar("T", bound=Object)
IndexFn = Callable[[T], Iterable[str]]
Change = tuple[T | None, T | None]
"""(old, new), with None for "is not there"."""


class Cache(Generic[T]):
    """A dictionary of objects and any number of named indexes over it. Objects must be immutable."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._functions: dict[str, IndexFn[T]] = {}
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {}
        self._values: dict[str, dict[Key, tuple[str, ...]]] = {}
        """What each index function gave for the objects here, so that it runs once for each version of an object."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        """The object, or None."""
        return self._objects.get(key)

    def items(self) -> list[T]:
        """All objects at this moment."""
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects whose index function gave `value`. Raises KeyError for an index that was never added."""
        return list(self._indexes[name].get(value, {}).values())

    def index_values(self, name: str) -> list[str]:
        """Every value that some object has in the index."""
        return list(self._indexes[name])

    def add_index(self, name: str, function: IndexFn[T]) -> None:
        """Add an index over the objects here and to come. The same name twice needs the same function."""
        if name in self._functions:
            if self._functions[name] is not function:
                raise ValueError(f"index {name!r} exists with another function: choose another name")
            return
        self._functions[name] = function
        self._indexes[name], self._values[name] = {}, {}
        for key, obj in self._objects.items():
            self._index(name, key, obj)

    def put(self, obj: T) -> T | None:
        """Store an object; returns what it replaces."""
        key = key_of(obj)
        old = self._objects.get(key)
        self._objects[key] = obj
        for name in self._functions:
            self._index(name, key, obj)
        return old

    def remove(self, key: Key) -> T | None:
        """Forget an object; returns it."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name in self._functions:
                self._unindex(name, key, self._values[name].pop(key, ()))
        return old

    def replace(self, fresh: Mapping[Key, T]) -> list[Change[T]]:
        """Hold exactly these objects; returns what really changed, removals first."""
        gone = [(key, obj) for key, obj in self._objects.items() if key not in fresh]
        changes: list[Change[T]] = []
        for key, obj in gone:
            self.remove(key)
            changes.append((obj, None))
        for key, obj in fresh.items():
            old = self._objects.get(key)
            if old is None or not same(old, obj):
                self.put(obj)
                changes.append((old, obj))
        return changes

    def _index(self, name: str, key: Key, obj: T) -> None:
        index, known = self._indexes[name], self._values[name]
        values, old = tuple(set(self._functions[name](obj))), known.get(key, ())
        self._unindex(name, key, (value for value in old if value not in values))
        for value in values:
            index.setdefault(value, {})[key] = obj
        if values:
            known[key] = values
        else:
            known.pop(key, None)

    def _unindex(self, name: str, key: Key, values: Iterable[str]) -> None:
        index = self._indexes[name]
        for value in values:
            members = index[value]
            del members[key]
            if not members:
                del index[value]


def same(one: Object, other: Object) -> bool:
    """Whether two reads saw the same version of the same object."""
    a, b = one.metadata, other.metadata
    return a.resource_version == b.resource_version and a.uid == b.uid
