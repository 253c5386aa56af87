"""Create, get, list, update and delete."""

import re

from tests.conformance.api import Api, widget


async def test_created_object_is_read_back(api: Api) -> None:
    """What was created is read back with a uid, a resourceVersion, generation 1 and its defaults."""
    created = (await api.create(api.path(), widget(size=3))).ok()

    read = (await api.get(api.path(name="a"))).ok()

    assert read == created
    assert read["metadata"]["generation"] == 1
    assert read["spec"] == {"size": 3, "note": "plain"}


async def test_same_name_is_refused(api: Api) -> None:
    """A second object of the same name is refused with AlreadyExists, which names the kind and the object."""
    (await api.create(api.path(), widget())).ok()

    refused = await api.create(api.path(), widget())

    assert (refused.code, refused.reason) == (409, "AlreadyExists")
    assert refused.message == 'widgets.conformance.example.org "a" already exists'


async def test_a_name_is_made(api: Api) -> None:
    """generateName begins the name and stays in metadata; five letters and digits that cannot spell a word end it."""
    nameless = {**widget(), "metadata": {"generateName": "node-"}}

    first = (await api.create(api.path(), nameless)).ok()
    second = (await api.create(api.path(), nameless)).ok()

    assert first["metadata"]["generateName"] == "node-"
    assert re.fullmatch("node-[bcdfghjklmnpqrstvwxz2456789]{5}", first["metadata"]["name"])
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert (await api.get(api.path(name=first["metadata"]["name"]))).ok() == first
