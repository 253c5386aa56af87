"""Deletes: finalizers, preconditions, dependents, namespaces, CRDs, old Events."""

import asyncio
from typing import Any

import pytest

from metal.apiserver.machinery.options import DeleteOptions, ListOptions, PatchType, Propagation
from metal.apiserver.machinery.status import StatusError
from tests.apiserver.widgets import Api, crd, running, widget

pytestmark = pytest.mark.looptime


def owned(name: str, *owners: dict[str, Any], block: bool = False) -> dict[str, Any]:
    """A widget that belongs to others."""
    obj = widget(name)
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}
        | ({"blockOwnerDeletion": True} if block else {})
        for o in owners
    ]
    return obj


async def settled(api: Api, namespace: str = "") -> list[str]:
    """Widgets left once the collector has nothing more to do."""
    await asyncio.sleep(5)
    return await api.names(namespace=namespace)


async def test_an_unheld_object_goes_at_once() -> None:
    """Without finalizers a delete removes, and a second one finds nothing."""
    async with running() as api:
        await api.create(widget())
        assert await api.delete("a")
        with pytest.raises(StatusError) as refused:
            await api.delete("a")
        assert refused.value.code == 404


async def test_a_finalizer_holds_an_object_until_it_is_removed() -> None:
    """The delete is marked by a time; the object goes with its last finalizer, and takes no new one."""
    async with running() as api:
        obj = widget()
        obj["metadata"]["finalizers"] = ["example.org/one", "example.org/two"]
        await api.create(obj)
        assert not await api.delete("a")
        marked = await api.get("a")
        assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
        assert marked["metadata"]["generation"] == 2
        assert not await api.delete("a")
        assert await api.get("a") == marked
        with pytest.raises(StatusError, match="no new finalizers can be added"):
            await api.patch("a", {"metadata": {"finalizers": ["example.org/one", "example.org/new"]}})
        await api.patch("a", {"metadata": {"finalizers": ["example.org/one"]}})
        assert await api.names() == ["a"]
        await api.patch("a", {"metadata": {"finalizers": []}})
        assert await api.names() == []


async def test_preconditions_protect_namesakes() -> None:
    """A delete for another uid or version changes nothing."""
    async with running() as api:
        made = (await api.create(widget()))["metadata"]
        for wrong in ({"uid": "other"}, {"resource_version": "1"}):
            with pytest.raises(StatusError, match="in the precondition") as refused:
                await api.delete("a", **wrong)
            assert refused.value.code == 409
        assert await api.delete("a", uid=made["uid"], resource_version=made["resourceVersion"])


async def test_dependents_follow_their_owner() -> None:
    """In the background all generations of dependents go; other objects stay."""
    async with running() as api:
        root = await api.create(widget("root"))
        child = await api.create(owned("child", root))
        await api.create(owned("grandchild", child))
        await api.create(widget("bystander"))
        await api.delete("root", propagation=Propagation.BACKGROUND)
        assert await settled(api) == ["bystander"]


async def test_one_living_owner_is_enough() -> None:
    """An object of two owners outlives the first and drops the reference to it."""
    async with running() as api:
        one, two = await api.create(widget("one")), await api.create(widget("two"))
        await api.create(owned("shared", one, two))
        await api.delete("one")
        assert await settled(api) == ["shared", "two"]
        assert [o["name"] for o in (await api.get("shared"))["metadata"]["ownerReferences"]] == ["two"]
        await api.delete("two")
        assert await settled(api) == []


async def test_an_object_born_to_a_dead_owner_goes() -> None:
    """A reference to a uid that does not exist is no claim to life."""
    async with running() as api:
        dead = await api.create(widget("dead"))
        await api.delete("dead")
        await api.create(owned("late", dead))
        assert await settled(api) == []


async def test_orphans_stay_and_are_let_go() -> None:
    """With Orphan the dependents lose the reference and live on."""
    async with running() as api:
        root = await api.create(widget("root"))
        await api.create(owned("child", root))
        await api.delete("root", propagation=Propagation.ORPHAN)
        assert await settled(api) == ["child"]
        assert "ownerReferences" not in (await api.get("child"))["metadata"]


async def test_in_the_foreground_the_owner_goes_last() -> None:
    """The owner waits for dependents that block it, also for their finalizers."""
    async with running() as api:
        root = await api.create(widget("root"))
        held = owned("child", root, block=True)
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await api.create(held)
        assert not await api.delete("root", propagation=Propagation.FOREGROUND)
        assert await settled(api) == ["child", "root"]
        assert "deletionTimestamp" in (await api.get("child"))["metadata"]
        await api.patch("child", {"metadata": {"finalizers": None}})
        assert await settled(api) == []


async def test_dependents_with_finalizers_are_marked() -> None:
    """The collector does not break finalizers."""
    async with running() as api:
        root = await api.create(widget("root"))
        held = owned("child", root)
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await api.create(held)
        await api.delete("root")
        assert await settled(api) == ["child"]
        assert "deletionTimestamp" in (await api.get("child"))["metadata"]


async def test_many_dependents_go() -> None:
    """A cascade over hundreds of objects ends."""
    async with running() as api:
        root = await api.create(widget("root"))
        for number in range(300):
            await api.create(owned(f"w{number}", root))
        await api.delete("root")
        assert await settled(api) == []


async def test_a_namespace_takes_its_content_along() -> None:
    """It is Terminating while something is left in it, takes nothing new, and goes when it is empty."""
    async with running() as api:
        await api.create({"metadata": {"name": "temp"}}, "namespaces")
        held = widget("held")
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await api.create(held, namespace="temp")
        await api.create(widget("free"), namespace="temp")
        await api.create({"metadata": {"name": "c"}}, "configmaps", "temp")
        await api.delete("temp", "namespaces")
        assert await settled(api, "temp") == ["held"]
        assert (await api.get("temp", "namespaces"))["status"]["phase"] == "Terminating"
        with pytest.raises(StatusError, match="because it is being terminated") as refused:
            await api.create(widget("new"), namespace="temp")
        assert refused.value.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        ctx = api.ctx("held", namespace="temp")
        await api.backend.patch(ctx, PatchType.MERGE, {"metadata": {"finalizers": None}})
        await asyncio.sleep(5)
        assert await api.names("namespaces") == ["default", "kube-system"]
        assert await api.names("configmaps") == []


async def test_the_namespaces_of_the_system_stay() -> None:
    """default and kube-system cannot be deleted."""
    async with running() as api:
        with pytest.raises(StatusError, match='namespaces "default" is forbidden') as refused:
            await api.delete("default", "namespaces")
        assert refused.value.code == 403


async def test_a_crd_takes_its_objects_along() -> None:
    """Deleting a CRD deletes its objects, waits for their finalizers, and ends the resource; made anew it is empty."""
    async with running() as api:
        held = widget("held")
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await api.create(held)
        await api.create(widget("free"))
        await api.delete("widgets.example.org", "customresourcedefinitions")
        assert await settled(api) == ["held"]
        with pytest.raises(StatusError) as refused:
            await api.create(widget("new"))
        assert refused.value.code == 405
        await api.patch("held", {"metadata": {"finalizers": None}})
        await asyncio.sleep(5)
        with pytest.raises(StatusError) as gone:
            api.backend.resource("example.org", "v1", "widgets")
        assert gone.value.code == 404
        await api.backend.install_crds([crd()])
        assert await api.names() == []


async def test_the_watches_of_a_deleted_crd_end() -> None:
    """A watcher of a resource that is gone is not left waiting; one that begins anew sees what is new."""
    async with running() as api:
        await api.create(widget("a"))
        items = api.watch(resource_version=str(api.backend.store.version))
        await api.delete("widgets.example.org", "customresourcedefinitions")
        assert [item.type.value async for item in items] == ["DELETED"]
        await api.backend.install_crds([crd()])
        again = api.watch(resource_version=str(api.backend.store.version))
        await api.create(widget("b"))
        assert (await anext(again)).type.value == "ADDED"


async def test_a_collection_is_deleted_by_selector() -> None:
    """deletecollection takes what matches and leaves the rest."""
    async with running() as api:
        marked = widget("a")
        marked["metadata"]["labels"] = {"old": "yes"}
        await api.create(marked)
        await api.create(widget("b"))
        gone = await api.backend.delete_collection(api.ctx(), ListOptions(labels="old"), DeleteOptions())
        assert [record.key.name for record in gone] == ["a"]
        assert await api.names() == ["b"]


async def test_events_do_not_stay_for_ever() -> None:
    """An Event goes an hour after it was last seen."""
    async with running() as api:
        for name, seen in (("old", "2030-01-01T00:00:00Z"), ("new", "2030-01-01T00:50:00Z")):
            event = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "lastTimestamp": seen}
            await api.create(event, "events")
        await asyncio.sleep(30 * 60)
        assert await api.names("events") == ["new", "old"]
        await asyncio.sleep(40 * 60)
        assert await api.names("events") == ["new"]
