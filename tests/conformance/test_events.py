"""Events, as v1 and as events.k8s.io/v1: the same objects under two names."""

from typing import Any

import pytest

from tests.conformance.api import Api, Obj

CORE = "/api/v1"
EVENTS = "/apis/events.k8s.io/v1"
NOW = "2030-01-01T00:00:00.123456Z"


def old_event(api: Api, name: str = "e", **more: Any) -> Obj:
    """An event as recorders of v1 write it."""
    base: Obj = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"kind": "Widget", "name": "w", "namespace": api.space, "apiVersion": "v1"},
        "reason": "Painted",
        "message": "It is red now.",
        "type": "Normal",
        "source": {"component": "painter", "host": "h1"},
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:01:00Z",
        "count": 3,
    }
    return base | more


def new_event(api: Api, name: str = "e", **more: Any) -> Obj:
    """An event as recorders of events.k8s.io write it."""
    base: Obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "regarding": {"kind": "Widget", "name": "w", "namespace": api.space},
        "reason": "Painted",
        "note": "It is red now.",
        "type": "Normal",
        "action": "Paint",
        "eventTime": NOW,
        "reportingController": "example.org/painter",
        "reportingInstance": "painter-1",
    }
    return base | more


def body(obj: Obj) -> Obj:
    """An object without what the server adds."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "apiVersion", "kind")}


async def test_an_old_event_is_read_in_both_ways(api: Api) -> None:
    """What v1 calls involvedObject, message and source is regarding, note and deprecatedSource in events.k8s.io."""
    made = (await api.create(api.path("events", base=CORE), old_event(api))).ok()

    seen = (await api.get(api.path("events", "e", base=EVENTS))).ok()

    assert (made["eventTime"], made["reportingComponent"], made["reportingInstance"]) == (None, "", "")
    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
    assert body(seen) == {
        "eventTime": None,
        "reason": "Painted",
        "regarding": made["involvedObject"],
        "note": "It is red now.",
        "type": "Normal",
        "deprecatedSource": {"component": "painter", "host": "h1"},
        "deprecatedFirstTimestamp": "2030-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2030-01-01T00:01:00Z",
        "deprecatedCount": 3,
    }


async def test_a_new_event_is_read_in_both_ways(api: Api) -> None:
    """note is v1's message, reportingController its reportingComponent; times keep their microseconds."""
    series = {"count": 2, "lastObservedTime": NOW}
    sent = new_event(api, series=series)

    made = (await api.create(api.path("events", base=EVENTS), sent)).ok()
    seen = (await api.get(api.path("events", "e", base=CORE))).ok()

    assert {name: made[name] for name in body(sent)} == body(sent)
    assert body(seen) == {
        "involvedObject": sent["regarding"],
        "reason": "Painted",
        "message": "It is red now.",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": NOW,
        "series": series,
        "action": "Paint",
        "reportingComponent": "example.org/painter",
        "reportingInstance": "painter-1",
    }


async def test_both_apis_share_their_watches_and_deletes(api: Api) -> None:
    """A watch of one sees what was written through the other, in its own form."""
    listed = (await api.get(api.path("events", base=EVENTS))).ok()
    version = listed["metadata"]["resourceVersion"]
    async with api.watch(api.path("events", base=EVENTS), resourceVersion=version) as watch:
        (await api.create(api.path("events", base=CORE), old_event(api))).ok()
        (await api.patch(api.path("events", "e", base=CORE), {"count": 4})).ok()
        (await api.delete(api.path("events", "e", base=EVENTS))).ok()
        events = await watch.many(3)

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"]["deprecatedCount"] for event in events] == [3, 4, 4]
    assert (await api.get(api.path("events", "e", base=CORE))).code == 404


@pytest.mark.parametrize(
    "selector",
    ["involvedObject.name=w", "involvedObject.kind=Widget", "reason=Painted", "type!=Warning", "source=painter"],
)
async def test_old_selectors(api: Api, selector: str) -> None:
    """Fields of the object, reason, type and the component that reports."""
    await api.create(api.path("events", base=CORE), old_event(api))
    other = old_event(api, "other", reason="Bent", type="Warning", source={"component": "bender"})
    other["involvedObject"] = {"kind": "Gadget", "name": "g", "namespace": api.space}
    (await api.create(api.path("events", base=CORE), other)).ok()

    found = (await api.get(api.path("events", base=CORE), fieldSelector=selector)).ok()

    assert [item["metadata"]["name"] for item in found["items"]] == ["e"]


@pytest.mark.parametrize(
    "selector", ["regarding.name=w", "regarding.kind=Widget", "reportingController=example.org/painter"]
)
async def test_new_selectors(api: Api, selector: str) -> None:
    """events.k8s.io has names of its own, and does not know those of v1."""
    await api.create(api.path("events", base=EVENTS), new_event(api))
    other = new_event(api, "other", reportingController="bender")
    other["regarding"] = {"kind": "Gadget", "name": "g", "namespace": api.space}
    (await api.create(api.path("events", base=EVENTS), other)).ok()

    found = (await api.get(api.path("events", base=EVENTS), fieldSelector=selector)).ok()
    refused = await api.get(api.path("events", base=EVENTS), fieldSelector="involvedObject.name=w")

    assert [item["metadata"]["name"] for item in found["items"]] == ["e"]
    assert (refused.code, "field label not supported: involvedObject.name" in refused.message) == (400, True)


async def test_an_event_lives_where_its_object_does(api: Api) -> None:
    """Another namespace, or none outside of default, is refused."""
    for told in ("other", ""):
        event = old_event(api, involvedObject={"kind": "Widget", "name": "w", "namespace": told})
        refused = await api.create(api.path("events", base=CORE), event)
        assert [(cause["field"], cause["message"]) for cause in refused.causes] == [
            ("involvedObject.namespace", f'Invalid value: "{told}": does not match event.namespace')
        ]


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"eventTime": None}, "eventTime", "Required value"),
        ({"type": "Loud"}, "type", 'Invalid value: "": has invalid value: Loud'),
        ({"action": ""}, "action", "Required value"),
        ({"reason": ""}, "reason", "Required value"),
        ({"reportingInstance": ""}, "reportingInstance", "Required value"),
        ({"note": "x" * 1025}, "message", 'Invalid value: "": can have at most 1024 characters'),
        ({"reason": "x" * 129}, "reason", 'Invalid value: "": can have at most 128 characters'),
        ({"deprecatedCount": 1}, "count", 'Invalid value: "": needs to be unset'),
        ({"deprecatedSource": {"component": "x"}}, "source", 'Invalid value: "": needs to be unset'),
        ({"series": {"count": 1, "lastObservedTime": NOW}}, "series.count", 'Invalid value: "": should be at least 2'),
    ],
)
async def test_new_events_are_checked(api: Api, change: Obj, field: str, told: str) -> None:
    """events.k8s.io is strict; causes name the fields as v1 does."""
    refused = await api.create(api.path("events", base=EVENTS), new_event(api) | change)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [(field, told)]


async def test_only_the_series_of_a_new_event_changes(api: Api) -> None:
    """What was said stays said."""
    (await api.create(api.path("events", base=EVENTS), new_event(api))).ok()
    path = api.path("events", "e", base=EVENTS)

    again = await api.patch(path, {"series": {"count": 2, "lastObservedTime": NOW}})
    refused = await api.patch(path, {"note": "other"})

    assert again.ok()["series"]["count"] == 2
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [
        ("message", 'Invalid value: "other": field is immutable')
    ]


@pytest.mark.parametrize("base", [CORE, EVENTS])
async def test_tables_of_events(http: Api, base: str) -> None:
    """Both APIs show the same columns."""
    (await http.create(http.path("events", base=CORE), old_event(http))).ok()
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    table = (await http.way.request("GET", http.path("events", base=base), headers=headers)).ok()

    names = [column["name"] for column in table["columnDefinitions"]]
    wide = ["Subobject", "Source", "Message", "First Seen", "Count", "Name"]
    assert names == ["Last Seen", "Type", "Reason", "Object", *wide]
    cells = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert (cells["Type"], cells["Reason"], cells["Object"]) == ("Normal", "Painted", "widget/w")
    assert (cells["Source"], cells["Count"], cells["Message"]) == ("painter, h1", 3, "It is red now.")


async def test_owners_of_an_event(api: Api) -> None:
    """The object of an event has one owner as a whole; times and names that were not sent have no owner."""
    made = (await api.create(api.path("events", base=CORE), old_event(api, eventTime=None))).ok()

    [entry] = made["metadata"]["managedFields"]
    plain: Obj = {f"f:{name}": {} for name in ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp")}
    source: Obj = {"f:component": {}, "f:host": {}}
    assert entry["fieldsV1"] == {**plain, "f:involvedObject": {}, "f:source": source}
