"""Lists as tables: what kubectl get asks for."""

import asyncio
from typing import Any

from tests.conformance.api import Api, widget
from tests.conformance.test_crds import TEXT, fields, installed, named
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


async def test_columns_follow_the_definition(http: Api) -> None:
    """A printer column that a CRD gets later is in the next table; without columns there are name and age."""
    kind = await installed(http, named(http, fields(rack=TEXT)))
    (await kind.create(rack="r1")).ok()

    async def shown(columns: list[str]) -> list[Any]:
        async with asyncio.timeout(20):
            while True:
                table = (await http.way.request("GET", kind.at(), headers=TABLE)).ok()
                if [column["name"] for column in table["columnDefinitions"]] == columns:
                    cells: list[Any] = table["rows"][0]["cells"]
                    return cells
                await asyncio.sleep(0.05)

    before = await shown(["Name", "Age"])
    column = {"name": "Rack", "type": "string", "jsonPath": ".spec.rack"}
    await kind.change(lambda spec: spec["versions"][0].update(additionalPrinterColumns=[column]))
    after = await shown(["Name", "Rack"])

    assert before[0] == "a"
    assert after == ["a", "r1"]
    await http.delete(kind.path)
