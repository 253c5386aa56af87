"""Cache: indexes follow every change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.kube.cache.cache import Cache
from metal.kube.meta.objects import Key, key_of
from tests.kube.things import Thing, thing


def by_size(obj: Thing) -> list[str]:
    return [str(obj.spec.size)] if obj.spec.size else []


def test_an_index_covers_what_was_there_before_it() -> None:
    """Adding an index late finds all objects."""
    cache: Cache[Thing] = Cache()
    cache.put(thing("a", size=1))

    cache.add_index("size", by_size)
    cache.put(thing("b", size=1))

    assert [obj.metadata.name for obj in cache.by_index("size", "1")] == ["a", "b"]


def test_an_unknown_index_is_an_error() -> None:
    """A misspelt index does not look like an empty one."""
    with pytest.raises(KeyError):
        Cache[Thing]().by_index("sise", "1")


def test_one_name_cannot_mean_two_indexes() -> None:
    """The same function twice is fine, another one under the same name is refused."""
    cache: Cache[Thing] = Cache()
    cache.add_index("size", by_size)
    cache.add_index("size", by_size)

    with pytest.raises(ValueError, match="choose another name"):
        cache.add_index("size", lambda obj: ["x"])


def test_replace_tells_only_real_changes() -> None:
    """Same version and uid is no change; a new uid under the same version is one."""
    cache: Cache[Thing] = Cache()
    for obj in (thing("same", version="1"), thing("gone", version="1"), thing("new", version="1", uid="1")):
        cache.put(obj)
    fresh = [thing("same", version="1"), thing("new", version="1", uid="2"), thing("more", version="1")]

    changes = cache.replace({key_of(obj): obj for obj in fresh})

    names = [(old and old.metadata.name, new and new.metadata.name) for old, new in changes]
    assert names == [("gone", None), ("new", "new"), (None, "more")]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans())))
@settings(max_examples=100)
def test_an_index_always_equals_a_scan(steps: list[tuple[str, int, bool]]) -> None:
    """After any puts and removals by_index gives exactly what filtering all objects gives."""
    cache: Cache[Thing] = Cache()
    cache.add_index("size", by_size)
    for name, size, remove in steps:
        if remove:
            cache.remove(Key(name, "ns"))
        else:
            cache.put(thing(name, size=size))

    for value in "0123":
        found = {key_of(obj) for obj in cache.by_index("size", value)}
        assert found == {key_of(obj) for obj in cache.items() if value in by_size(obj)}
    assert set(cache.index_values("size")) == {value for obj in cache.items() for value in by_size(obj)}
