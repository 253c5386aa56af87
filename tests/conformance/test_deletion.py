"""Deletion: finalizers, preconditions, owners and their dependents, whole collections."""

import asyncio
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, config_map, widget
from tests.conformance.test_list import labelled, names

HELD = "example.org/held"
NOBODY = "00000000-0000-0000-0000-000000000001"
PATIENCE = 20.0


def held(name: str = "a", *finalizers: str) -> Obj:
    """A widget that finalizers hold."""
    made = widget(name)
    made["metadata"]["finalizers"] = list(finalizers or (HELD,))
    return made


def maps(api: Api, name: str = "") -> str:
    """Path of ConfigMaps: a cluster's garbage collector knows them from its start, new kinds half a minute later."""
    return api.path("configmaps", name, base="/api/v1")


async def until(api: Api, path: str, done: Any) -> Obj:
    """The body of an answer that satisfies `done`, given its code and metadata; fails after PATIENCE."""
    async with asyncio.timeout(PATIENCE):
        while True:
            got = await api.get(path)
            if done(got.code, got.body.get("metadata", {})):
                return got.body
            await asyncio.sleep(0.03)


async def gone(api: Api, path: str) -> None:
    """Wait until an object is no more."""
    await until(api, path, lambda code, _: code == 404)


async def owned(api: Api, name: str, *owners: Obj, block: bool = False, hold: bool = False) -> Obj:
    """Create a ConfigMap with owners."""
    made = config_map(name)
    made["metadata"]["ownerReferences"] = [reference(owner, block=block) for owner in owners]
    if hold:
        made["metadata"]["finalizers"] = [HELD]
    return (await api.create(maps(api), made)).ok()


def reference(owner: Obj, *, block: bool = False) -> Obj:
    """An entry of ownerReferences."""
    meta = owner["metadata"]
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**kind, "name": meta["name"], "uid": meta["uid"], **({"blockOwnerDeletion": True} if block else {})}


async def release(api: Api, path: str) -> None:
    """Take the finalizers off."""
    (await api.patch(path, {"metadata": {"finalizers": None}})).ok()


async def test_an_unheld_object_goes_at_once(api: Api) -> None:
    """Deleting an object without finalizers answers with a Status of success and removes it."""
    made = (await api.create(api.path(), widget())).ok()

    answer = (await api.delete(api.path(name="a"))).ok()

    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"]["uid"] == made["metadata"]["uid"]
    missing = await api.get(api.path(name="a"))
    assert (missing.code, missing.reason) == (404, "NotFound")
    assert missing.message == 'widgets.conformance.example.org "a" not found'


async def test_a_finalizer_holds_an_object(api: Api) -> None:
    """A deleted object with a finalizer gets a deletionTimestamp and generation, and goes with its last finalizer."""
    (await api.create(api.path(), held("a", "example.org/x", "example.org/y"))).ok()

    marked = (await api.delete(api.path(name="a"))).ok()
    again = (await api.delete(api.path(name="a"))).ok()

    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert again == marked
    last = (await api.patch(api.path(name="a"), {"metadata": {"finalizers": ["example.org/y"]}})).ok()
    assert last["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    (await api.patch(api.path(name="a"), {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(api.path(name="a"))).code == 404


async def test_a_dying_object_takes_no_new_finalizer(api: Api) -> None:
    """Finalizers may go and change places, but none may come."""
    (await api.create(api.path(), held("a", "example.org/x", "example.org/y"))).ok()
    (await api.delete(api.path(name="a"))).ok()
    order = ["example.org/y", "example.org/x"]

    refused = await api.patch(api.path(name="a"), {"metadata": {"finalizers": [*order, "example.org/z"]}})
    turned = await api.patch(api.path(name="a"), {"metadata": {"finalizers": order}})

    told = "no new finalizers can be added if the object is being deleted"
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == (
        'Widget.conformance.example.org "a" is invalid: metadata.finalizers: Forbidden: '
        f'{told}, found new finalizers []string{{"example.org/z"}}'
    )
    assert turned.ok()["metadata"]["finalizers"] == order
    await release(api, api.path(name="a"))


async def test_a_dying_object_can_still_be_changed(api: Api) -> None:
    """Spec may change while finalizers hold it; the deletion time may not be taken back."""
    (await api.create(api.path(), held())).ok()
    marked = (await api.delete(api.path(name="a"))).ok()

    changed = (await api.patch(api.path(name="a"), {"spec": {"size": 2}})).ok()
    kept = (await api.patch(api.path(name="a"), {"metadata": {"deletionTimestamp": None}})).ok()

    assert changed["metadata"]["generation"] == 3
    assert kept["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    await release(api, api.path(name="a"))


async def test_a_name_is_taken_until_its_object_is_gone(api: Api) -> None:
    """A create in the place of a dying object is told that it is being deleted."""
    (await api.create(api.path(), held())).ok()
    (await api.delete(api.path(name="a"))).ok()

    refused = await api.create(api.path(), widget())

    assert (refused.code, refused.reason) == (409, "AlreadyExists")
    assert refused.message == 'object is being deleted: widgets.conformance.example.org "a" already exists'
    await release(api, api.path(name="a"))


async def test_a_watch_hears_both_steps(api: Api) -> None:
    """The mark is MODIFIED, the end is DELETED with the deletion time still on it."""
    made = (await api.create(api.path(), held())).ok()
    async with api.watch(api.path(), resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        (await api.delete(api.path(name="a"))).ok()
        await release(api, api.path(name="a"))

        marked, end = await watch.many(2)

    assert (marked["type"], end["type"]) == ("MODIFIED", "DELETED")
    assert end["object"]["metadata"]["deletionTimestamp"] == marked["object"]["metadata"]["deletionTimestamp"]


async def test_preconditions_protect_namesakes(api: Api) -> None:
    """A delete meant for another uid or version is a Conflict that tells both, and changes nothing."""
    meta = (await api.create(api.path(), widget())).ok()["metadata"]

    other = await api.delete(api.path(name="a"), {"preconditions": {"uid": "other"}})
    older = await api.delete(api.path(name="a"), {"preconditions": {"resourceVersion": "1"}})

    kind = 'Operation cannot be fulfilled on Widget.conformance.example.org "a": '
    assert (other.code, other.reason, older.code, older.reason) == (409, "Conflict", 409, "Conflict")
    assert other.message == (
        f"{kind}the UID in the precondition (other) does not match the UID in record ({meta['uid']}). "
        "The object might have been deleted and then recreated"
    )
    assert older.message == (
        f"{kind}the ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
        f"({meta['resourceVersion']}). The object might have been modified"
    )
    mine = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    (await api.delete(api.path(name="a"), {"preconditions": mine})).ok()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"propagationPolicy": "Slowly"},
            'propagationPolicy: Unsupported value: "Slowly": supported values: "Foreground", "Background", "Orphan", '
            '"nil"',
        ),
        (
            {"propagationPolicy": "Foreground", "orphanDependents": True},
            'propagationPolicy: Invalid value: "Foreground": orphanDependents and deletionPropagation cannot be both '
            "set",
        ),
        ({"dryRun": ["Some"]}, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
    ],
)
async def test_options_that_are_not_known(api: Api, options: Obj, told: str) -> None:
    """A delete with an unknown option deletes nothing and names the option."""
    (await api.create(api.path(), widget())).ok()

    refused = await api.delete(api.path(name="a"), options)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == f'DeleteOptions.meta.k8s.io "" is invalid: {told}'
    assert (await api.get(api.path(name="a"))).code == 200


async def test_a_dry_run_deletes_nothing(api: Api) -> None:
    """dryRun=All answers as a delete would, and leaves the object."""
    made = (await api.create(api.path(), widget())).ok()

    answer = (await api.delete(api.path(name="a"), dryRun="All")).ok()

    assert answer["status"] == "Success"
    assert (await api.get(api.path(name="a"))).ok() == made


async def test_dependents_follow_in_the_background(api: Api) -> None:
    """By default the owner is removed at once and its dependents after it, recursively."""
    owner = (await api.create(maps(api), config_map("owner"))).ok()
    child = await owned(api, "child", owner)
    await owned(api, "grandchild", child)

    answer = (await api.delete(maps(api, "owner"))).ok()

    assert answer["status"] == "Success"
    await gone(api, maps(api, "child"))
    await gone(api, maps(api, "grandchild"))


async def test_in_the_foreground_the_owner_goes_last(api: Api) -> None:
    """The owner waits under a finalizer for dependents that block it, and for no others."""
    owner = (await api.create(maps(api), config_map("owner"))).ok()
    await owned(api, "blocking", owner, block=True, hold=True)
    await owned(api, "other", owner, hold=True)

    marked = (await api.delete(maps(api, "owner"), propagationPolicy="Foreground")).ok()

    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    for name in ("blocking", "other"):
        dying = await until(api, maps(api, name), lambda _, meta: meta.get("deletionTimestamp"))
        assert [ref["name"] for ref in dying["metadata"]["ownerReferences"]] == ["owner"]
    assert (await api.get(maps(api, "owner"))).code == 200
    await release(api, maps(api, "blocking"))
    await gone(api, maps(api, "owner"))
    assert (await api.get(maps(api, "other"))).code == 200
    await release(api, maps(api, "other"))


async def test_orphans_stay_and_are_let_go(api: Api) -> None:
    """With Orphan the owner is removed when every dependent has lost its reference."""
    owner = (await api.create(maps(api), config_map("owner"))).ok()
    await owned(api, "orphan", owner)

    marked = (await api.delete(maps(api, "owner"), {"propagationPolicy": "Orphan"})).ok()

    assert marked["metadata"]["finalizers"] == ["orphan"]
    await gone(api, maps(api, "owner"))
    left = (await api.get(maps(api, "orphan"))).ok()
    assert "ownerReferences" not in left["metadata"]
    assert "deletionTimestamp" not in left["metadata"]


async def test_one_living_owner_is_enough(api: Api) -> None:
    """Who has two owners stays while one lives, and forgets the other."""
    first = (await api.create(maps(api), config_map("first"))).ok()
    second = (await api.create(maps(api), config_map("second"))).ok()
    await owned(api, "child", first, second)

    (await api.delete(maps(api, "first"))).ok()

    left = await until(api, maps(api, "child"), lambda _, meta: len(meta.get("ownerReferences", ())) == 1)
    assert left["metadata"]["ownerReferences"] == [reference(second)]
    (await api.delete(maps(api, "second"))).ok()
    await gone(api, maps(api, "child"))


NEVER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never", "uid": NOBODY}}


async def test_whose_owner_never_was_goes(api: Api) -> None:
    """An object that is created with a missing owner is garbage collected."""
    await owned(api, "child", NEVER)

    await gone(api, maps(api, "child"))


async def test_an_owner_is_meant_by_its_name_too(api: Api) -> None:
    """A reference whose uid lives under another name points at nothing."""
    owner = (await api.create(maps(api), config_map("owner"))).ok()
    renamed = {**owner, "metadata": {**owner["metadata"], "name": "other"}}
    await owned(api, "child", renamed)

    await gone(api, maps(api, "child"))


async def test_an_owner_in_another_namespace_is_none(api: Api) -> None:
    """Owners are looked for beside their dependents; one elsewhere does not count."""
    path = "/api/v1/namespaces/default/configmaps"
    owner = (await api.create(path, config_map(f"far-{api.suffix}"))).ok()
    await owned(api, "child", owner)

    await gone(api, maps(api, "child"))

    (await api.delete(f"{path}/far-{api.suffix}")).ok()


async def test_an_owner_of_a_kind_that_nobody_knows_is_left_in_doubt(api: Api) -> None:
    """While nothing can be said about the owner, the dependent stays."""
    stranger = {"apiVersion": "nowhere.example/v1", "kind": "Stranger", "metadata": {"name": "x", "uid": NOBODY}}
    await owned(api, "child", stranger)
    await owned(api, "lost", NEVER)

    await gone(api, maps(api, "lost"))

    assert (await api.get(maps(api, "child"))).code == 200


async def test_an_owner_may_belong_to_the_cluster(api: Api) -> None:
    """A cluster-scoped owner keeps a namespaced dependent, and takes it along."""
    name = f"owner-{api.suffix}"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    owner = (await api.create(path, role)).ok()
    await owned(api, "child", owner)
    await owned(api, "lost", NEVER)
    await gone(api, maps(api, "lost"))
    assert (await api.get(maps(api, "child"))).code == 200

    (await api.delete(f"{path}/{name}")).ok()

    await gone(api, maps(api, "child"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"uid": ""}, 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
        ({"kind": ""}, 'metadata.ownerReferences.kind: Invalid value: "": must not be empty'),
        ({"name": ""}, 'metadata.ownerReferences.name: Invalid value: "": must not be empty'),
    ],
)
async def test_an_owner_reference_is_whole(api: Api, change: Obj, told: str) -> None:
    """Kind, name and uid of an owner are needed."""
    made = widget()
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": NOBODY, **change}
    ]

    refused = await api.create(api.path(), made)

    assert (refused.code, refused.message) == (422, f'Widget.conformance.example.org "a" is invalid: {told}')


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    """Matching objects are deleted, or marked if they have finalizers; the answer lists them; others stay."""
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        (await api.create(api.path(), labelled(name, colour=colour))).ok()
    (await api.patch(api.path(name="c"), {"metadata": {"finalizers": [HELD]}})).ok()

    answer = (await api.delete(api.path(), labelSelector="colour=red")).ok()

    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "c"]
    assert names(await api.get(api.path())) == ["b", "c"]
    assert (await api.get(api.path(name="c"))).ok()["metadata"]["deletionTimestamp"]
    await release(api, api.path(name="c"))


async def test_a_collection_in_a_dry_run(api: Api) -> None:
    """dryRun=All deletes nothing of a collection."""
    (await api.create(api.path(), widget())).ok()

    (await api.delete(api.path(), dryRun="All")).ok()

    assert names(await api.get(api.path())) == ["a"]


async def test_a_selector_that_cannot_be_read_deletes_nothing(api: Api) -> None:
    """A garbled selector is not the same as none."""
    (await api.create(api.path(), widget())).ok()

    refused = await api.delete(api.path(), labelSelector="a in")

    assert (refused.code, refused.message) == (400, "unable to parse requirement: found '' expected: '('")
    assert names(await api.get(api.path())) == ["a"]


async def test_nothing_is_deleted_across_namespaces(http: Api) -> None:
    """A collection of a namespaced kind is deleted in one namespace at a time, and namespaces one by one."""
    (await http.create(http.path(), widget())).ok()

    everywhere = await http.delete("/apis/conformance.example.org/v1/widgets")
    built_in = await http.delete("/api/v1/configmaps")
    spaces = await http.delete("/api/v1/namespaces")

    assert (everywhere.code, built_in.code, spaces.code) == (404, 405, 405)
    assert built_in.reason == "MethodNotAllowed"
    assert names(await http.get(http.path())) == ["a"]
