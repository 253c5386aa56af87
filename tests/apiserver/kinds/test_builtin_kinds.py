"""Rules of the built-in kinds and of CustomResourceDefinitions."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from metal.apiserver.crd import crds
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.machinery.records import CRDS, Record
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.journal import Change, Loaded, MemoryJournal
from tests.apiserver.widgets import crd, running, widget

pytestmark = pytest.mark.looptime


def secret(**more: Any) -> dict[str, Any]:
    """A Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **more}


async def test_the_namespaces_of_the_system_are_there() -> None:
    """default and kube-system exist, Active and labelled with their name."""
    async with running() as api:
        assert await api.names("namespaces") == ["default", "kube-system"]
        space = await api.get("default", "namespaces")
        assert space["status"] == {"phase": "Active"}
        assert space["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}


async def test_a_namespace_has_the_name_of_a_label() -> None:
    """Dots are fine for most names, not for namespaces."""
    async with running() as api:
        with pytest.raises(StatusError, match="RFC 1123 label"):
            await api.create({"metadata": {"name": "a.b"}}, "namespaces")


async def test_plain_text_of_a_secret_is_folded_into_its_data() -> None:
    """stringData wins over data, is never read back, and the type is Opaque unless told."""
    async with running() as api:
        made = await api.create(secret(data={"a": "MQ==", "b": "MQ=="}, stringData={"a": "ü"}), "secrets")
        assert "stringData" not in made
        assert made["type"] == "Opaque"
        assert base64.b64decode(made["data"]["a"]).decode() == "ü"
        patched = await api.patch("s", {"stringData": {"b": "2"}}, "secrets")
        assert patched["data"] == {"a": made["data"]["a"], "b": "Mg=="}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"data": {"a": base64.b64encode(b"x" * (1024 * 1024 + 1)).decode()}}, "data"),
        ({"type": "Other"}, "type"),
    ],
)
async def test_secrets_are_checked(change: dict[str, Any], field: str) -> None:
    """Data has at most 1 MiB; the type never changes. No value appears in the refusal."""
    async with running() as api:
        await api.create(secret(data={"p": "aHVudGVyMg=="}), "secrets")
        with pytest.raises(StatusError) as refused:
            await api.patch("s", change, "secrets")
        assert [cause["field"] for cause in refused.value.body["details"]["causes"]] == [field]
        assert "hunter" not in refused.value.message


@pytest.mark.parametrize("field", ["data", "stringData"])
@pytest.mark.parametrize("value", [{"pin": 4711}, ["4711"], "4711"])
async def test_a_secret_of_the_wrong_type_is_not_repeated(field: str, value: Any) -> None:
    """A password that YAML took for a number is refused by its key, without the number."""
    async with running() as api:
        with pytest.raises(StatusError, match=rf"Go struct field Secret\.{field}") as refused:
            await api.create(secret(**{field: value}), "secrets")
        assert refused.value.code == 400
        assert "4711" not in refused.value.message


@pytest.mark.parametrize(("plural", "kind"), [("secrets", "Secret"), ("configmaps", "ConfigMap")])
async def test_what_is_immutable_stays(plural: str, kind: str) -> None:
    """Once immutable, neither the data nor the mark itself changes; labels do."""
    async with running() as api:
        data = {"a": "MQ=="}
        await api.create({"kind": kind, "metadata": {"name": "s"}, "data": data, "immutable": True}, plural)
        for change in ({"data": {"a": "Mg=="}}, {"immutable": False}, {"immutable": None}):
            with pytest.raises(StatusError, match="field is immutable when `immutable` is set"):
                await api.patch("s", change, plural)
        assert (await api.patch("s", {"metadata": {"labels": {"x": "y"}}}, plural))["data"] == data


async def test_an_event_lives_where_its_object_does() -> None:
    """involvedObject.namespace is the Event's; Events of cluster-scoped objects live in default."""
    async with running() as api:
        event = {"kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "other"}}
        with pytest.raises(StatusError, match=r"does not match event.namespace"):
            await api.create(event, "events")
        await api.create({**event, "involvedObject": {"kind": "Gadget", "name": "g"}}, "events")
        assert await api.names("events", fields="involvedObject.kind=Gadget") == ["e"]
        assert await api.names("events", fields="involvedObject.kind=Widget") == []


async def test_a_lease_takes_micro_times() -> None:
    """renewTime with six digits comes back as it was sent."""
    async with running() as api:
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2030-01-01T00:00:00.000001Z"}
        made = await api.create({"metadata": {"name": "l"}, "spec": spec}, "leases")
        assert made["spec"] == spec


async def test_strategic_merge_knows_the_built_in_kinds() -> None:
    """Finalizers merge as a set, as kubectl expects for built-in kinds."""
    async with running() as api:
        await api.create({"metadata": {"name": "c", "finalizers": ["a.io/x"]}}, "configmaps")
        changed = await api.patch("c", {"metadata": {"finalizers": ["a.io/y"]}}, "configmaps", kind=PatchType.STRATEGIC)
        assert set(changed["metadata"]["finalizers"]) == {"a.io/x", "a.io/y"}


async def test_a_crd_is_served_once_it_is_stored() -> None:
    """Created, established and used without waiting; its names are filled in."""
    async with running() as api:
        made = await api.create(crd("Gizmo", short="gz"), "customresourcedefinitions")
        conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert made["spec"]["names"]["listKind"] == "GizmoList"
        assert made["status"]["storedVersions"] == ["v1"]
        await api.create({**widget("g"), "kind": "Gizmo"}, "gizmos")


async def test_a_crd_whose_names_are_taken_is_not_served() -> None:
    """The condition says which name clashes, and the other resource goes on."""
    async with running() as api:
        made = await api.create(crd("Gizmo", short="wd"), "customresourcedefinitions")
        conditions = {c["type"]: c for c in made["status"]["conditions"]}
        assert conditions["NamesAccepted"]["message"] == '"wd" is already in use'
        assert conditions["Established"]["status"] == "False"
        with pytest.raises(StatusError):
            api.backend.resource("example.org", "v1", "gizmos")
        await api.create(widget())


async def test_a_changed_schema_counts_at_once() -> None:
    """What the new schema forbids is refused from the next write on; stored objects stay."""
    async with running() as api:
        await api.create(widget("a", size=1))
        tighter = crd()
        tighter["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 5}}}},
        }
        del tighter["spec"]["versions"][0]["selectableFields"]
        await api.backend.install_crds([tighter])
        with pytest.raises(StatusError) as refused:
            await api.create(widget("b", size=1))
        assert refused.value.code == 422
        assert (await api.get("a"))["spec"]["size"] == 1


async def test_installing_the_same_crds_again_changes_nothing() -> None:
    """A restart writes nothing and ends no watch."""
    async with running() as api:
        before = api.backend.store.version
        await api.backend.install_crds([crd()])
        assert api.backend.store.version == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c["metadata"].update(name="other.example.org"),
        lambda c: c["spec"].update(scope="Galaxy"),
        lambda c: c["spec"].update(versions=[]),
        lambda c: c["spec"]["versions"][0].update(storage=False),
        lambda c: c["spec"]["versions"][0].pop("schema"),
        lambda c: c.pop("spec"),
        lambda c: c["spec"].pop("names"),
        lambda c: c["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(
            {"x-kubernetes-validations": [{"rule": "self.("}]}
        ),
    ],
)
async def test_a_broken_crd_is_refused(spoil: Any) -> None:
    """What could not be served is not stored."""
    async with running() as api:
        broken = crd("Gizmo", short="gz")
        broken["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object"}}
        spoil(broken)
        with pytest.raises(StatusError) as refused:
            await api.create(broken, "customresourcedefinitions")
        assert refused.value.code == 422
        assert "gizmos.example.org" not in await api.names("customresourcedefinitions")


async def test_every_version_shows_the_same_objects() -> None:
    """With conversion None only apiVersion differs between versions."""
    async with running() as api:
        two = crd("Gizmo", short="gz")
        version = two["spec"]["versions"][0]
        two["spec"]["versions"].append({**version, "name": "v2", "storage": False})
        await api.create(two, "customresourcedefinitions")
        await api.create({**widget("g", size=1), "kind": "Gizmo"}, "gizmos")
        v2 = api.backend.resource("example.org", "v2", "gizmos")
        ctx = api.ctx("g", "gizmos")
        changed = await api.backend.patch(replace(ctx, resource=v2), PatchType.MERGE, {"spec": {"size": 2}})
        assert changed.api_version == "example.org/v1"
        assert changed.decode()["spec"]["size"] == 2


async def test_a_stored_crd_that_can_no_longer_be_served_does_not_stop_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One bad CRD is logged and left out; everything else is served."""
    async with running() as api:
        stored = api.backend.store.collection(CRDS)
    journal = Remembering(stored)

    def broken(crd: dict[str, Any]) -> list[Any]:
        if crd["spec"]["names"]["kind"] == "Widget":
            raise RuntimeError("written by another version")
        return real(crd)

    real = crds.resources_of
    monkeypatch.setattr(crds, "resources_of", broken)
    async with running(journal, crds=False) as api:
        assert await api.names("gadgets") == []
        with pytest.raises(StatusError):
            api.backend.resource("example.org", "v1", "widgets")


class Remembering(MemoryJournal):
    """A journal with a past."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records

    async def open(self) -> Loaded:
        changes = [Change(CRDS.group, CRDS.plural, "", r.key.name, r.resource_version, r.body) for r in self._records]
        return Loaded(max(change.resource_version for change in changes), changes)
