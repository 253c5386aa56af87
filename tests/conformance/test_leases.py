"""Leases, as leader election uses them."""

from typing import Any

import pytest

from tests.conformance.api import Api, Obj

COORDINATION = "/apis/coordination.k8s.io/v1"


def lease(**spec: Any) -> Obj:
    """A new Lease."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}


HELD = {
    "holderIdentity": "one",
    "leaseDurationSeconds": 15,
    "acquireTime": "2030-01-01T00:00:00.000001Z",
    "renewTime": "2030-01-01T00:00:00.123456Z",
    "leaseTransitions": 0,
}


async def test_times_keep_their_microseconds(api: Api) -> None:
    """What was written is read back to the digit."""
    made = (await api.create(api.path("leases", base=COORDINATION), lease(**HELD))).ok()

    assert made["spec"] == HELD


async def test_only_one_of_two_takes_a_lease(api: Api) -> None:
    """Who writes with an old version is told Conflict, so that two candidates cannot both win."""
    path = api.path("leases", "l", base=COORDINATION)
    seen = (await api.create(api.path("leases", base=COORDINATION), lease(**HELD))).ok()

    won = await api.update(path, {**seen, "spec": {**HELD, "holderIdentity": "two"}})
    lost = await api.update(path, {**seen, "spec": {**HELD, "holderIdentity": "three"}})

    assert won.ok()["spec"]["holderIdentity"] == "two"
    assert (lost.code, lost.reason) == (409, "Conflict")
    assert lost.message == (
        'Operation cannot be fulfilled on leases.coordination.k8s.io "l": the object has been modified; please apply '
        "your changes to the latest version and try again"
    )


async def test_a_lease_is_not_overwritten_blindly(api: Api) -> None:
    """An update has to say which version it saw."""
    (await api.create(api.path("leases", base=COORDINATION), lease(**HELD))).ok()

    refused = await api.update(api.path("leases", "l", base=COORDINATION), lease(**HELD))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["metadata.resourceVersion"]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds", "Invalid value: 0: must be greater than 0"),
        ({"leaseDurationSeconds": -1}, "spec.leaseDurationSeconds", "Invalid value: -1: must be greater than 0"),
        (
            {"leaseTransitions": -1},
            "spec.leaseTransitions",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
async def test_leases_are_checked(api: Api, spec: Obj, field: str, message: str) -> None:
    """Durations are positive, transitions are counted from 0."""
    refused = await api.create(api.path("leases", base=COORDINATION), lease(**spec))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [(field, message)]


async def test_coordinated_elections_are_off(api: Api) -> None:
    """strategy and preferredHolder belong to a feature that is off by default: they are dropped."""
    sent = lease(**HELD, strategy="OldestEmulationVersion", preferredHolder="x")

    assert (await api.create(api.path("leases", base=COORDINATION), sent)).ok()["spec"] == HELD


async def test_a_time_must_be_one(api: Api) -> None:
    """What is no RFC 3339 time is refused with 400."""
    refused = await api.create(api.path("leases", base=COORDINATION), lease(renewTime="yesterday"))

    assert (refused.code, refused.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("2030-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"'),
        ("2030-01-01T00:00:00.5Z", 'cannot parse ".5Z" as ".000000"'),
        ("2030-01-01T00:00:00.123456789Z", 'cannot parse "789Z" as "Z07:00"'),
        ("2030-01-01 00:00:00.000000Z", 'cannot parse " 00:00:00.000000Z" as "T"'),
    ],
)
async def test_a_time_has_six_digits(api: Api, time: str, why: str) -> None:
    """Times of a Lease have microseconds, independent of the writer and the form."""
    path = api.path("leases", "l", base=COORDINATION)
    head = f'parsing time "{time}" as "2006-01-02T15:04:05.000000Z07:00": '

    refused = await api.create(api.path("leases", base=COORDINATION), lease(renewTime=time))
    applied = await api.apply(path, lease(renewTime=time), "m")

    told = 'Lease in version "v1" cannot be handled as a Lease: '
    assert (refused.code, refused.reason, refused.message) == (400, "BadRequest", told + head + why)
    assert (applied.code, applied.reason) == (500, "")
    assert applied.message.endswith(head + why)


async def test_times_are_kept_in_utc(api: Api) -> None:
    """A time of another zone comes back in UTC, created and applied."""
    sent = lease(renewTime="2030-01-01T02:00:00.500000+02:00")

    made = await api.create(api.path("leases", base=COORDINATION), sent)
    applied = await api.apply(api.path("leases", "l", base=COORDINATION), sent, "m", force=True)

    assert made.ok()["spec"] == applied.ok()["spec"] == {"renewTime": "2030-01-01T00:00:00.500000Z"}


async def test_the_table_shows_the_holder(http: Api) -> None:
    """kubectl's columns are Name, Holder and Age."""
    (await http.create(http.path("leases", base=COORDINATION), lease(**HELD))).ok()
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    table = (await http.way.request("GET", http.path("leases", base=COORDINATION), headers=headers)).ok()

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Holder", "Age"]
    assert table["rows"][0]["cells"][:2] == ["l", "one"]


async def test_owners_of_a_lease(api: Api) -> None:
    """A Lease always has a spec: its content has owners, the spec itself has none."""
    path = api.path("leases", "l", base=COORDINATION)
    made = (await api.create(api.path("leases", base=COORDINATION), lease(holderIdentity="one"))).ok()

    taken = (await api.patch(path, {"spec": {"holderIdentity": "two"}}, fieldManager="other")).ok()

    owned: Obj = {"f:spec": {"f:holderIdentity": {}}}
    assert [entry["fieldsV1"] for entry in made["metadata"]["managedFields"]] == [owned]
    assert [(e["manager"], e["fieldsV1"]) for e in taken["metadata"]["managedFields"]] == [("other", owned)]
