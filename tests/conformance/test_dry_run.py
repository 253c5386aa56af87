"""Dry run: answered as if, and nothing stored."""

from tests.conformance.api import Api, widget


async def test_dry_run_stores_nothing(api: Api) -> None:
    """Create, update, patch, apply and delete with dryRun=All answer as if they were done, and change nothing."""
    path = api.path(name="a")
    made = (await api.create(api.path(), widget(size=1))).ok()

    created = await api.create(api.path(), widget("b", size=2), dryRun="All")
    updated = await api.update(path, {**made, "spec": {"size": 3}}, dryRun="All")
    patched = await api.patch(path, {"spec": {"size": 4}}, dryRun="All")
    applied = await api.apply(path, widget(size=5), "m", force=True, dryRun="All")
    deleted = await api.delete(path, dryRun="All")

    assert [r.code for r in (created, updated, patched, applied, deleted)] == [201, 200, 200, 200, 200]
    assert [r.body["spec"]["size"] for r in (created, updated, patched, applied)] == [2, 3, 4, 5]
    assert updated.body["metadata"]["generation"] == 2
    assert updated.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert deleted.body["status"] == "Success"
    assert (await api.get(path)).ok() == made
    assert (await api.get(api.path(name="b"))).code == 404


async def test_dry_run_is_refused_as_the_write_would_be(api: Api) -> None:
    """What breaks a rule is refused in a dry run, too."""
    assert (await api.create(api.path(), widget(size=-1), dryRun="All")).code == 422
