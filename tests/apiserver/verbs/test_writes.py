"""Create, update, patch and apply on a backend without a disk."""

from typing import Any

import pytest

from metal.apiserver.machinery.options import FieldValidation, PatchType
from metal.apiserver.machinery.status import StatusError
from tests.apiserver.widgets import running, widget

pytestmark = pytest.mark.looptime


async def test_a_new_object_gets_its_identity_from_the_server() -> None:
    """uid, creationTimestamp, generation and resourceVersion are the server's, whatever was sent; status is dropped."""
    async with running() as api:
        sent = widget(size=1)
        sent["metadata"] |= {"uid": "mine", "generation": 9, "creationTimestamp": "1999-01-01T00:00:00Z"}
        sent["status"] = {"phase": "Lied"}

        made = await api.create(sent)

        meta = made["metadata"]
        assert (meta["namespace"], meta["generation"]) == ("default", 1)
        assert meta["creationTimestamp"] == "2030-01-01T00:00:00Z"
        assert meta["uid"] != "mine"
        assert int(meta["resourceVersion"]) == api.backend.store.version
        assert "status" not in made
        assert made["spec"] == {"size": 1, "note": "plain"}


async def test_a_taken_name_is_refused() -> None:
    """A second object of the same name is refused with AlreadyExists, in kube-apiserver's words."""
    async with running() as api:
        await api.create(widget())
        with pytest.raises(StatusError) as refused:
            await api.create(widget())
        assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")
        assert refused.value.message == 'widgets.example.org "a" already exists'
        assert refused.value.details == {"name": "a", "group": "example.org", "kind": "widgets"}


async def test_generate_name_gives_a_name_that_is_free() -> None:
    """generateName is completed by five characters; two objects get two names."""
    async with running() as api:
        names = set()
        for _ in range(20):
            obj = widget()
            obj["metadata"] = {"generateName": "w-"}
            names.add((await api.create(obj))["metadata"]["name"])
        assert len(names) == 20
        assert all(name.startswith("w-") and len(name) == 7 for name in names)


@pytest.mark.parametrize(
    ("change", "code", "part"),
    [
        ({"metadata": {"name": "Upper"}}, 422, 'metadata.name: Invalid value: "Upper"'),
        ({"metadata": {}}, 422, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": {"name": "a", "labels": {"a": "b c"}}}, 422, "metadata.labels"),
        (
            {"metadata": {"name": "a", "labels": {"a": 1}}},
            400,
            "number into Go struct field ObjectMeta.labels of type string",
        ),
        ({"metadata": {"name": "a", "finalizers": "x"}}, 400, "ObjectMeta.finalizers of type []string"),
        ({"metadata": {"name": "a", "resourceVersion": "5"}}, 500, "resourceVersion should not be set"),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "does not match the namespace sent on the request"),
        ({"metadata": [1]}, 400, "cannot unmarshal array into Go value of type v1.ObjectMeta"),
        ({"kind": "Gadget"}, 422, 'kind: Invalid value: "Gadget": must be Widget'),
        ({"kind": ""}, 400, "Object 'Kind' is missing"),
        ({"apiVersion": "example.org/v2"}, 400, "does not match the expected API version (example.org/v1)"),
        ({"spec": {"size": -1}}, 422, 'Widget.example.org "a" is invalid: spec.size'),
        ({"spec": {"size": "big"}}, 422, "spec.size"),
    ],
)
async def test_a_bad_object_is_refused_by_its_field(change: dict[str, Any], code: int, part: str) -> None:
    """What breaks a rule is refused and nothing is stored."""
    async with running() as api:
        with pytest.raises(StatusError) as refused:
            await api.create({**widget(size=1), **change})
        assert refused.value.code == code
        assert part in refused.value.message
        assert await api.names() == []


async def test_a_refused_object_names_every_cause() -> None:
    """details.causes lists all that is wrong, not only the first."""
    async with running() as api:
        bad = widget("B!", size=-1)
        with pytest.raises(StatusError) as refused:
            await api.create(bad)
        causes = refused.value.body["details"]["causes"]
        assert {cause["field"] for cause in causes} == {"metadata.name", "spec.size"}
        assert refused.value.message.startswith('Widget.example.org "B!" is invalid: [')


@pytest.mark.parametrize(
    ("mode", "warned"), [(FieldValidation.IGNORE, []), (FieldValidation.WARN, ['unknown field "spec.colour"'])]
)
async def test_unknown_fields_are_pruned(mode: FieldValidation, warned: list[str]) -> None:
    """A field that the schema does not know is never stored; with Warn the caller is told."""
    async with running() as api:
        made = await api.create(widget(size=1, colour="red"), field_validation=mode)
        assert "colour" not in made["spec"]
        assert api.warnings == warned


async def test_unknown_fields_are_refused_when_strict() -> None:
    """fieldValidation=Strict answers 400 and names the field."""
    async with running() as api:
        with pytest.raises(StatusError, match=r'strict decoding error: unknown field "spec.colour"') as refused:
            await api.create(widget(size=1, colour="red"), field_validation=FieldValidation.STRICT)
        assert refused.value.code == 400
        assert await api.names() == []


async def test_a_dry_run_answers_and_stores_nothing() -> None:
    """dryRun=All validates and shows the outcome of create, patch and delete without any of them happening."""
    async with running() as api:
        made = await api.create(widget(size=1), dry_run=True)
        assert made["spec"]["note"] == "plain"
        assert await api.names() == []
        await api.create(widget(size=1))
        before = api.backend.store.version
        assert (await api.patch("a", {"spec": {"size": 2}}, dry_run=True))["spec"]["size"] == 2
        assert await api.delete("a", dry_run=True)
        assert (await api.get("a"))["spec"]["size"] == 1
        assert api.backend.store.version == before


async def test_generation_counts_changes_of_intent_only() -> None:
    """metadata.generation grows with spec, not with labels and not with status."""
    async with running() as api:
        await api.create(widget(size=1))
        assert (await api.patch("a", {"spec": {"size": 2}}))["metadata"]["generation"] == 2
        assert (await api.patch("a", {"metadata": {"labels": {"x": "y"}}}))["metadata"]["generation"] == 2
        assert (await api.patch("a", {"status": {"phase": "Up"}}, sub="status"))["metadata"]["generation"] == 2


async def test_without_a_status_subresource_status_is_intent_too() -> None:
    """A kind without the status subresource takes status on its main endpoint and counts it in generation."""
    async with running() as api:
        gadget = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}}
        await api.create({**gadget, "status": {"phase": "New"}}, "gadgets")
        changed = await api.patch("g", {"status": {"phase": "Up"}}, "gadgets")
        assert changed["status"] == {"phase": "Up"}
        assert changed["metadata"]["generation"] == 2


async def test_each_endpoint_writes_its_own_half() -> None:
    """The main endpoint leaves status alone, the status endpoint everything else."""
    async with running() as api:
        await api.create(widget(size=1))
        main = await api.patch("a", {"spec": {"size": 2}, "status": {"phase": "Lied"}})
        assert "status" not in main
        part = await api.patch(
            "a", {"spec": {"size": 9}, "status": {"phase": "Up"}, "metadata": {"labels": {"x": "y"}}}, sub="status"
        )
        assert part["spec"]["size"] == 2
        assert part["status"] == {"phase": "Up"}
        assert "labels" not in part["metadata"]


async def test_a_stale_resource_version_is_a_conflict() -> None:
    """An update or patch that carries an old resourceVersion changes nothing and says so as kube-apiserver does."""
    async with running() as api:
        old = await api.create(widget(size=1))
        await api.patch("a", {"spec": {"size": 2}})
        for attempt in (api.update(old), api.patch("a", {"metadata": old["metadata"]})):
            with pytest.raises(StatusError) as refused:
                await attempt
            assert (refused.value.code, refused.value.reason) == (409, "Conflict")
            assert refused.value.message == (
                'Operation cannot be fulfilled on widgets.example.org "a": the object has been modified; '
                "please apply your changes to the latest version and try again"
            )
        assert (await api.get("a"))["spec"]["size"] == 2


async def test_an_update_must_say_which_version_it_changes() -> None:
    """A custom resource is not overwritten blindly; a ConfigMap is, as on every Kubernetes."""
    async with running() as api:
        await api.create(widget(size=1))
        with pytest.raises(StatusError, match=r"metadata.resourceVersion: .*must be specified for an update"):
            await api.update(widget(size=2))
        await api.create({"metadata": {"name": "c"}, "data": {"a": "1"}}, "configmaps")
        changed = await api.update({"metadata": {"name": "c"}, "data": {"a": "2"}}, "configmaps")
        assert changed["data"] == {"a": "2"}


async def test_another_uid_is_another_object() -> None:
    """A write meant for a deleted namesake is refused."""
    async with running() as api:
        await api.create(widget(size=1))
        with pytest.raises(StatusError, match=r"metadata\.uid: .*field is immutable") as refused:
            await api.patch("a", {"metadata": {"uid": "gone"}, "spec": {"size": 2}})
        assert refused.value.code == 422


async def test_identity_does_not_change() -> None:
    """Name, creationTimestamp and generation in a patch are not taken over."""
    async with running() as api:
        made = await api.create(widget(size=1))
        with pytest.raises(StatusError, match="does not match the name on the URL"):
            await api.patch("a", {"metadata": {"name": "b"}})
        changed = await api.patch("a", {"metadata": {"creationTimestamp": None, "generation": 77, "selfLink": "x"}})
        assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
        assert changed["metadata"]["generation"] == 1


async def test_a_write_that_changes_nothing_is_no_write() -> None:
    """The resourceVersion stays, so that no watcher is woken for nothing."""
    async with running() as api:
        made = await api.create(widget(size=1))
        assert await api.patch("a", {"spec": {"size": 1}}) == made
        assert await api.update(made) == made


async def test_a_json_patch_changes_by_path() -> None:
    """RFC 6902 patches work; one that does not fit is refused with 422."""
    async with running() as api:
        await api.create(widget(size=1))
        steps = [{"op": "test", "path": "/spec/size", "value": 1}, {"op": "replace", "path": "/spec/size", "value": 5}]
        assert (await api.patch("a", steps, kind=PatchType.JSON))["spec"]["size"] == 5
        with pytest.raises(StatusError) as refused:
            await api.patch("a", steps, kind=PatchType.JSON)
        assert refused.value.code == 422


async def test_a_patch_that_is_no_object_is_refused() -> None:
    """A merge patch that replaces the object by a text is answered with 400."""
    async with running() as api:
        await api.create(widget(size=1))
        with pytest.raises(StatusError) as refused:
            await api.patch("a", "text")
        assert refused.value.code == 400


async def test_writes_to_what_is_not_there_are_refused() -> None:
    """Update and patch of a missing object answer 404."""
    async with running() as api:
        missing = {**widget(), "metadata": {"name": "a", "resourceVersion": "1"}}
        for attempt in (api.patch("a", {}), api.update(missing)):
            with pytest.raises(StatusError, match=r'widgets.example.org "a" not found') as refused:
                await attempt
            assert refused.value.code == 404


async def test_apply_creates_then_merges_and_owns() -> None:
    """Server-side apply creates what is missing; another manager's change of an owned field is a conflict or forced."""
    async with running() as api:
        made = await api.apply(widget(size=1), manager="one")
        assert made["metadata"]["managedFields"][0]["manager"] == "one"
        with pytest.raises(StatusError) as refused:
            await api.apply(widget(size=2), manager="two")
        assert refused.value.reason == "Conflict"
        assert refused.value.body["details"]["causes"][0]["field"] == ".spec.size"
        forced = await api.apply(widget(size=2), manager="two", force=True)
        assert forced["spec"]["size"] == 2
        assert forced["metadata"]["generation"] == 2
        assert await api.apply(widget(size=2), manager="two") == forced


async def test_apply_needs_a_manager() -> None:
    """Without a fieldManager nobody could own the fields."""
    async with running() as api:
        with pytest.raises(StatusError, match=r'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required'):
            await api.apply(widget(size=1), manager="")


async def test_apply_of_status_leaves_the_spec_alone() -> None:
    """The status endpoint takes applies, and needs the object to exist."""
    async with running() as api:
        wanted = {**widget(size=9), "status": {"phase": "Up"}}
        with pytest.raises(StatusError) as refused:
            await api.apply(wanted, manager="one", sub="status")
        assert refused.value.code == 404
        await api.create(widget(size=1))
        applied = await api.apply({**widget(size=9), "status": {"phase": "Up"}}, manager="one", sub="status")
        assert (applied["spec"]["size"], applied["status"]) == (1, {"phase": "Up"})


async def test_updates_are_tracked_by_manager() -> None:
    """managedFields name who wrote what, on every kind of write."""
    async with running() as api:
        await api.create(widget(size=1), manager="maker")
        changed = await api.patch("a", {"spec": {"size": 2}}, manager="changer")
        owners = {e["manager"]: e["fieldsV1"].get("f:spec", {}) for e in changed["metadata"]["managedFields"]}
        assert "f:size" in owners["changer"]
        assert "f:size" not in owners["maker"]


async def test_a_namespaced_object_needs_a_namespace_that_exists() -> None:
    """No namespace, or one that is not there, is refused."""
    async with running() as api:
        with pytest.raises(StatusError, match="an empty namespace may not be set during creation"):
            await api.create(widget(), namespace="")
        with pytest.raises(StatusError, match='namespaces "nowhere" not found') as refused:
            await api.create(widget(), namespace="nowhere")
        assert refused.value.code == 404
