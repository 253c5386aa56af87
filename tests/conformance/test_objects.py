"""Create, get, list, update and delete."""

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
