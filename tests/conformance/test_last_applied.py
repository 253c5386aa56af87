"""`kubectl apply` and `kubectl apply --server-side` take turns: an annotation tells what was applied last."""

import json

from tests.conformance.api import Api, Obj, widget

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def annotated(obj: Obj, text: str = "{}", **more: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ANNOTATION: text, **more}}}


def annotations(obj: Obj) -> Obj:
    return dict(obj["metadata"].get("annotations", {}))


async def test_kubectl_keeps_the_annotation_true(api: Api) -> None:
    """An apply by kubectl rewrites an annotation that is there: all that was applied, but for the annotation itself."""
    (await api.create(api.path(), annotated(widget(size=1)))).ok()
    sent = widget(size=2, note="a < b & c > d \u2028")
    sent["metadata"] |= {"annotations": {"a": "b"}, "labels": {"x": "y"}}

    after = (await api.apply(api.path(name="a"), sent, "kubectl", force=True)).ok()

    text = annotations(after)[ANNOTATION]
    assert json.loads(text) == sent
    assert r"a \u003c b \u0026 c \u003e d \u2028" in text
    assert text == text.strip() + "\n"
    assert text.index("apiVersion") < text.index("kind") < text.index("metadata") < text.index("spec")


async def test_the_annotation_leaves_itself_out(api: Api) -> None:
    """What it said before is no part of what it says now."""
    sent = annotated(widget(size=2), "old")

    after = (await api.apply(api.path(name="a"), sent, "kubectl")).ok()

    assert json.loads(annotations(after)[ANNOTATION]) == {
        **widget(size=2),
        "metadata": {"name": "a", "annotations": {}},
    }


async def test_nobody_owns_what_it_says_now(api: Api) -> None:
    """The rewritten annotation keeps its first owner."""
    (await api.create(api.path(), annotated(widget(size=1)), fieldManager="first")).ok()

    after = (await api.apply(api.path(name="a"), widget(size=1), "kubectl", force=True)).ok()

    owners = [
        entry["manager"]
        for entry in after["metadata"]["managedFields"]
        if f"f:{ANNOTATION}" in entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})
    ]
    assert owners == ["first"]


async def test_the_same_apply_again_changes_nothing(api: Api) -> None:
    """The annotation says so already."""
    (await api.create(api.path(), annotated(widget(size=1)))).ok()
    first = (await api.apply(api.path(name="a"), widget(size=2), "kubectl", force=True)).ok()

    again = (await api.apply(api.path(name="a"), widget(size=2), "kubectl")).ok()

    assert again == first


async def test_others_leave_the_annotation_alone(api: Api) -> None:
    """Another manager does not rewrite the annotation, and none is added."""
    (await api.create(api.path(), annotated(widget("told", size=1)))).ok()
    (await api.create(api.path(), widget("untold", size=1))).ok()

    by_other = (await api.apply(api.path(name="told"), widget("told", size=2), "ci", force=True)).ok()
    untold = (await api.apply(api.path(name="untold"), widget("untold", size=2), "kubectl", force=True)).ok()

    assert annotations(by_other) == {ANNOTATION: "{}"}
    assert annotations(untold) == {}


async def test_an_annotation_that_grows_too_long_goes(api: Api) -> None:
    """Annotations may come to 256 KiB: kubectl's own gives way, and the apply succeeds."""
    (await api.create(api.path(), annotated(widget(size=1), kept="yes"))).ok()

    after = (await api.apply(api.path(name="a"), widget(note="x" * 300_000), "kubectl", force=True)).ok()

    assert annotations(after) == {"kept": "yes"}
    assert len(after["spec"]["note"]) == 300_000


async def test_the_status_is_not_told(api: Api) -> None:
    """An apply to the status leaves metadata alone."""
    (await api.create(api.path(), annotated(widget(size=1)))).ok()
    sent = {**widget(), "status": {"phase": "Done"}}

    after = (await api.apply(api.path(name="a", sub="status"), sent, "kubectl")).ok()

    assert (annotations(after), after["status"]) == ({ANNOTATION: "{}"}, {"phase": "Done"})
