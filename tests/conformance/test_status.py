"""The status subresource, generation and observedGeneration."""

from tests.conformance.api import Api, widget


async def test_each_endpoint_writes_its_half(api: Api) -> None:
    """The main endpoint leaves status alone, the status endpoint spec and labels."""
    (await api.create(api.path(), {**widget(size=1), "status": {"phase": "New"}})).ok()

    status = {"status": {"phase": "Up"}, "spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}}
    part = (await api.patch(api.path(name="a", sub="status"), status)).ok()
    main = (await api.patch(api.path(name="a"), {"status": {"phase": "Lied"}, "spec": {"size": 2}})).ok()

    assert (part["spec"]["size"], part["status"], part["metadata"].get("labels")) == (1, {"phase": "Up"}, None)
    assert (main["spec"]["size"], main["status"]) == (2, {"phase": "Up"})


async def test_generation_counts_intent(api: Api) -> None:
    """Spec changes count, status and metadata do not; what a client writes into generation is ignored."""
    (await api.create(api.path(), widget(size=1))).ok()

    status = {"status": {"observedGeneration": 1}}
    seen = (await api.patch(api.path(name="a", sub="status"), status)).ok()
    labelled = (await api.patch(api.path(name="a"), {"metadata": {"labels": {"x": "y"}, "generation": 7}})).ok()
    changed = (await api.patch(api.path(name="a"), {"spec": {"size": 2}})).ok()

    generations = [obj["metadata"]["generation"] for obj in (seen, labelled, changed)]
    assert generations == [1, 1, 2]
    assert changed["status"]["observedGeneration"] == 1


async def test_status_is_checked(api: Api) -> None:
    """A status that breaks its schema is Invalid; the sentence begins at the status."""
    made = (await api.create(api.path(), widget(size=1))).ok()

    refused = await api.update(api.path(name="a", sub="status"), {**made, "status": {"phase": 5}})

    cause = 'Invalid value: "integer": phase in body must be of type string: "integer"'
    assert refused.causes == [{"reason": "FieldValueTypeInvalid", "message": cause, "field": "status.phase"}]


async def test_status_of_nothing(api: Api) -> None:
    """The status of an object that is not there is NotFound."""
    assert (await api.get(api.path(name="zz", sub="status"))).reason == "NotFound"
