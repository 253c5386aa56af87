"""How large a body may be."""

import json
from typing import Any

import pytest

from tests.conformance.api import Api, config_map, widget
from tests.conformance.ways import APPLY, JSON_PATCH, MERGE

LIMIT = 3 * 1024 * 1024
TOLD = (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


def padded(obj: Any, size: int) -> bytes:
    """The object as JSON of so many bytes: spaces count."""
    text = json.dumps(obj).encode()
    return text + b" " * (size - len(text))


@pytest.mark.parametrize("built_in", [False, True])
async def test_the_limit_of_a_new_object(http: Api, built_in: bool) -> None:
    """Up to 3 MiB are read, a byte more is refused; what is stored counts for nothing."""
    path, obj = (http.path("configmaps", base="/api/v1"), config_map()) if built_in else (http.path(), widget())

    fits = await http.way.request("POST", path, padded(obj, LIMIT))
    passes = await http.way.request("POST", path, padded({**obj, "metadata": {"name": "b"}}, LIMIT + 1))

    assert fits.code == 201
    assert (passes.code, passes.reason, passes.message) == TOLD
    assert (await http.get(f"{path}/b")).code == 404


@pytest.mark.parametrize(("kind", "patch"), [(MERGE, {}), (JSON_PATCH, []), (APPLY, widget())])
async def test_the_limit_of_a_patch(http: Api, kind: str, patch: Any) -> None:
    """It is the same for patches of every kind."""
    (await http.create(http.path(), widget())).ok()
    query = {"fieldManager": "m"}

    fits = await http.way.request("PATCH", http.path(name="a"), padded(patch, LIMIT), query=query, content=kind)
    passes = await http.way.request("PATCH", http.path(name="a"), padded(patch, LIMIT + 1), query=query, content=kind)

    assert fits.code == 200
    assert (passes.code, passes.reason, passes.message) == TOLD


async def test_the_limit_of_a_delete(http: Api) -> None:
    """Options of a delete are a body, too; the object stays."""
    (await http.create(http.path(), widget())).ok()

    refused = await http.way.request("DELETE", http.path(name="a"), padded({}, LIMIT + 1))

    assert (refused.code, refused.reason, refused.message) == TOLD
    (await http.get(http.path(name="a"))).ok()
