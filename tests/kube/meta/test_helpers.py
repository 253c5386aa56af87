"""Conditions, owners and finalizers."""

from datetime import UTC, datetime

import pytest

from metal.api.meta import Condition
from metal.kube.client.errors import Conflict
from metal.kube.controller.finalizers import add_finalizer, remove_finalizer
from metal.kube.meta import conditions
from metal.kube.meta.ownership import controller_of, controller_reference, is_controlled_by
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, WORLD, body, thing

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def ready(status: str, reason: str = "Because") -> Condition:
    return Condition(type="Ready", status=status, reason=reason)


def test_a_condition_keeps_its_moment_while_the_status_stays() -> None:
    """A new reason does not look like a transition."""
    before = conditions.set_condition((), ready("True"), EARLY)

    after = conditions.set_condition(before, ready("True", "Other"), LATE)

    assert (after[0].reason, after[0].last_transition_time) == ("Other", EARLY)


def test_a_change_of_status_is_dated_in_whole_seconds() -> None:
    """metav1.Time has no fractions."""
    before = conditions.set_condition((), ready("True"), EARLY)

    after = conditions.set_condition(before, ready("False"), LATE)

    assert after[0].last_transition_time == LATE.replace(microsecond=0)
    assert not conditions.is_true(after, "Ready")


def test_nothing_new_gives_the_very_same_tuple() -> None:
    """Callers see with `is` that there is nothing to write."""
    before = conditions.set_condition((), ready("True"), EARLY)

    assert conditions.set_condition(before, ready("True"), LATE) is before


def test_other_conditions_keep_their_places() -> None:
    """A condition is replaced where it stands and appended when new."""
    both = conditions.set_condition((ready("True"), Condition(type="B", status="True")), ready("False"), LATE)
    three = conditions.set_condition(both, Condition(type="C", status="True"), LATE)

    assert [condition.type for condition in three] == ["Ready", "B", "C"]
    assert conditions.find(three, "Nope") is None
    assert conditions.is_true(three, "C")


def test_an_owner_is_recognised_by_its_uid() -> None:
    """A namesake that was created later is not the owner."""
    owner = thing("boss", uid="1")
    child = thing("child", ownerReferences=[controller_reference(owner, THING)])

    reference = controller_of(child)

    assert reference is not None
    assert (reference.api_version, reference.kind, reference.name) == ("test.example/v1", "Thing", "boss")
    assert is_controlled_by(child, owner)
    assert not is_controlled_by(child, thing("boss", uid="2"))
    assert not is_controlled_by(owner, owner)


def test_what_was_never_created_owns_nothing() -> None:
    """Without a uid the garbage collector would delete the child."""
    with pytest.raises(ValueError, match=r"no metadata\.uid"):
        controller_reference(thing("boss"), WORLD)


async def test_finalizers_are_added_once() -> None:
    """The second time no request is made."""
    api = FakeAPI()
    obj = await api.create(THING, body("a", finalizers=["other"]))

    with_it = await add_finalizer(api, THING, obj, "mine")
    again = await add_finalizer(api, THING, with_it, "mine")

    assert with_it.metadata.finalizers == ("other", "mine")
    assert again is with_it
    assert api.count("patch") == 1


async def test_a_stale_object_does_not_undo_another_writer() -> None:
    """The patch carries the resourceVersion."""
    api = FakeAPI()
    stale = await api.create(THING, body("a"))
    await add_finalizer(api, THING, stale, "theirs")

    with pytest.raises(Conflict):
        await add_finalizer(api, THING, stale, "mine")


async def test_removing_the_last_finalizer_of_a_deleted_object_ends_it() -> None:
    """After that the object is gone, and removing it again is no error."""
    api = FakeAPI()
    await api.create(THING, body("a", finalizers=["mine"]))
    await api.delete(THING, "a", "ns")
    deleted = await api.get(THING, "a", "ns")

    await remove_finalizer(api, THING, deleted, "mine")

    assert api.snapshot(THING) == {}
    assert await remove_finalizer(api, THING, deleted, "mine") is None
    assert await remove_finalizer(api, THING, thing("b"), "mine") == thing("b")
