"""Namespaces: active when created, deleted with their content, closed to new objects meanwhile."""

import asyncio
from typing import Any

import pytest

from tests.conformance.api import GROUP, Api, Obj, config_map, widget
from tests.conformance.test_deletion import HELD, gone

SPACES = "/api/v1/namespaces"


async def begun(api: Api) -> str:
    """A second namespace; its name."""
    name = f"{api.space}-too"
    (await api.create(SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).ok()
    return name


async def test_a_namespace_is_active_and_named_in_a_label(api: Api) -> None:
    """A new namespace has a phase, a finalizer in its spec and a label that selectors can find it by."""
    name = await begun(api)

    made = (await api.get(f"{SPACES}/{name}")).ok()

    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert "generation" not in made["metadata"]
    (await api.delete(f"{SPACES}/{name}")).ok()


async def test_a_namespace_goes_with_its_content(api: Api) -> None:
    """Deletion marks it Terminating, empties it, tells in conditions what holds it, and refuses newcomers."""
    name = await begun(api)
    maps = f"{SPACES}/{name}/configmaps"
    widgets = f"/apis/{GROUP}/v1/namespaces/{name}/widgets"
    held = config_map("held")
    held["metadata"]["finalizers"] = [HELD]
    (await api.create(maps, held)).ok()
    (await api.create(widgets, widget())).ok()

    marked = (await api.delete(f"{SPACES}/{name}")).ok()
    newcomers = [await api.create(maps, config_map("new")), await api.create(widgets, widget("new"))]
    again = await api.create(SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    assert marked["status"]["phase"] == "Terminating"
    assert marked["metadata"]["deletionTimestamp"]
    assert "deletionGracePeriodSeconds" not in marked["metadata"]
    for refused, kind in zip(newcomers, ("configmaps", f"widgets.{GROUP}"), strict=True):
        assert_closed(refused, kind, name)
    assert again.message == f'object is being deleted: namespaces "{name}" already exists'
    told = await conditions(api, name)
    assert told == CONDITIONS
    (await api.patch(f"{maps}/held", {"data": {"still": "changeable"}})).ok()
    (await api.patch(f"{maps}/held", {"metadata": {"finalizers": None}})).ok()
    await gone(api, f"{SPACES}/{name}")
    for path in (maps, widgets):
        assert (await api.get(path)).ok()["items"] == []


def assert_closed(refused: Any, kind: str, name: str) -> None:
    """What a newcomer is told."""
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        f'{kind} "new" is forbidden: unable to create new content in namespace {name} because it is being terminated'
    )
    assert refused.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def conditions(api: Api, name: str) -> list[tuple[str, str, str, str]]:
    """Conditions of a namespace, once there are any and only the held object is left."""
    async with asyncio.timeout(20):
        while True:
            found: list[Obj] = (await api.get(f"{SPACES}/{name}")).ok()["status"].get("conditions", [])
            told = [(c["type"], c["status"], c["reason"], c["message"]) for c in found]
            if any("configmaps. has 1 " in message and "widgets" not in message for *_, message in told):
                assert all(c["lastTransitionTime"] for c in found)
                return told
            await asyncio.sleep(0.05)


CONDITIONS = [
    (
        "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure", "False", "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        "NamespaceContentRemaining", "True", "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    ),
    (
        "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {HELD} in 1 resource instances",
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_of_the_system_stay(api: Api, name: str) -> None:
    """They may not be deleted."""
    refused = await api.delete(f"{SPACES}/{name}")

    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_nothing_is_created_in_a_namespace_that_is_not_there(api: Api) -> None:
    """A create is told that the namespace is missing; a list is merely empty."""
    for path in (f"{SPACES}/missing/configmaps", f"/apis/{GROUP}/v1/namespaces/missing/widgets"):
        refused = await api.create(path, config_map() if "configmaps" in path else widget())

        assert (refused.code, refused.reason) == (404, "NotFound")
        assert refused.message == 'namespaces "missing" not found'
        assert (await api.get(path)).ok()["items"] == []
