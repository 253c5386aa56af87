"""Lists as tables: what kubectl get asks for."""

from tests.conformance.api import Api, widget
from tests.conformance.test_list import fill

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def test_rows_carry_what_was_asked_for(http: Api) -> None:
    """includeObject chooses between metadata, the object and nothing; anything else is refused."""
    await fill(http, "a")
    carried = {}
    for include in ("", "Metadata", "Object", "None"):
        table = await http.way.request("GET", http.path(), headers=TABLE, query={"includeObject": include})
        carried[include] = table.ok()["rows"][0]["object"]
    refused = await http.way.request("GET", http.path(), headers=TABLE, query={"includeObject": "Bogus"})

    assert carried[""] == carried["Metadata"]
    assert carried["Metadata"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in carried["Metadata"]
    assert (carried["Object"]["kind"], carried["Object"]["spec"]) == ("Widget", {"note": "plain"})
    assert carried["None"] is None
    assert (refused.code, refused.message) == (
        400,
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": must be '
        "'Metadata', 'Object', 'None', or empty",
    )


async def test_a_table_is_paged(http: Api) -> None:
    """A table has the marks of a list."""
    await fill(http, "a", "b")

    table = (await http.way.request("GET", http.path(), headers=TABLE, query={"limit": "1"})).ok()

    assert [row["cells"][0] for row in table["rows"]] == ["a"]
    assert table["metadata"]["remainingItemCount"] == 1
    assert table["metadata"]["continue"]


async def test_a_shape_that_is_not_there_is_not_acceptable(http: Api) -> None:
    """Only known shapes are given, and plain JSON where the client takes it as well."""
    (await http.create(http.path(), widget())).ok()
    only = {"Accept": "application/json;as=Foo;v=v1;g=meta.k8s.io"}
    either = {"Accept": "application/json;as=Table;v=v2;g=meta.k8s.io,application/json"}

    refused = await http.way.request("GET", http.path(), headers=only)
    plain = await http.way.request("GET", http.path(), headers=either)

    assert (refused.code, refused.reason) == (406, "NotAcceptable")
    assert plain.ok()["kind"] == "WidgetList"
