"""Lists: pages of one moment, and what resourceVersion means."""

import base64
import json

import pytest

from tests.conformance.api import Api, Obj, Reply, config_map, widget


async def fill(api: Api, *names: str) -> str:
    """Create widgets; the version of the list after it."""
    for name in names:
        (await api.create(api.path(), widget(name))).ok()
    return version(await api.get(api.path()))


def version(listed: Reply) -> str:
    """resourceVersion of a list."""
    return str(listed.ok()["metadata"]["resourceVersion"])


def names(listed: Reply) -> list[str]:
    """Names in a list, in its order."""
    return [item["metadata"]["name"] for item in listed.ok()["items"]]


async def test_a_list_is_ordered_by_name(api: Api) -> None:
    """A list is sorted by name, independent of the order of creation, and has a list kind and a version."""
    await fill(api, "b", "c", "a")

    listed = (await api.get(api.path())).ok()

    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    assert listed["kind"] == "WidgetList"
    assert int(listed["metadata"]["resourceVersion"]) >= int(listed["items"][-1]["metadata"]["resourceVersion"])
    assert not listed["metadata"].get("continue")


async def test_a_list_of_all_namespaces_is_ordered_as_its_keys_are(api: Api) -> None:
    """Across namespaces objects come in the order of `namespace/name`, so that a dash comes before the slash."""
    longer = f"{api.space}-a"
    await api.create("/api/v1/namespaces", {"metadata": {"name": longer}})
    for space in (api.space, longer):
        (await api.create(f"/api/v1/namespaces/{space}/configmaps", config_map("ordered"))).ok()

    found = await api.get("/api/v1/configmaps", fieldSelector="metadata.name=ordered")

    ours = [i["metadata"]["namespace"] for i in found.ok()["items"] if i["metadata"]["namespace"].startswith(api.space)]
    await api.delete(f"/api/v1/namespaces/{longer}")
    assert ours == [longer, api.space]


async def test_pages_are_of_one_moment(api: Api) -> None:
    """What is created, changed or deleted between two pages changes neither them nor their version."""
    await fill(api, "a", "b", "c", "d", "e")
    first = await api.get(api.path(), limit="2")
    await api.delete(api.path(name="c"))
    await fill(api, "bb")

    second = await api.get(api.path(), limit="2", **{"continue": first.body["metadata"]["continue"]})
    third = await api.get(api.path(), limit="2", **{"continue": second.body["metadata"]["continue"]})

    assert [names(page) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.body["metadata"].get("remainingItemCount") for page in (first, second, third)] == [3, 1, None]
    assert version(first) == version(second) == version(third)
    assert not third.body["metadata"].get("continue")


async def test_the_last_page_may_be_asked_for_without_a_limit(api: Api) -> None:
    """A continue mark without limit gives all the rest."""
    await fill(api, "a", "b", "c")
    first = await api.get(api.path(), limit="1")

    rest = await api.get(api.path(), **{"continue": first.body["metadata"]["continue"]})

    assert names(rest) == ["b", "c"]


async def test_remaining_items_are_not_counted_under_a_selector(api: Api) -> None:
    """A list with a selector has no remainingItemCount."""
    for name in ("a", "b", "c"):
        (await api.create(api.path(), labelled(name, on="yes"))).ok()

    page = await api.get(api.path(), limit="2", labelSelector="on=yes")

    assert names(page) == ["a", "b"]
    assert page.body["metadata"]["continue"]
    assert "remainingItemCount" not in page.body["metadata"]


def labelled(name: str, **labels: str) -> Obj:
    """A widget with labels."""
    made = widget(name)
    made["metadata"]["labels"] = labels
    return made


async def test_a_continue_mark_tells_where_it_goes_on(api: Api) -> None:
    """The mark is base64 of the version and the key after the last one, so that it outlives the server's memory."""
    await fill(api, "a", "b")

    page = await api.get(api.path(), limit="1")

    mark = page.body["metadata"]["continue"]
    read = json.loads(base64.urlsafe_b64decode(mark + "=="))
    # From its cache kube-apiserver gives the key, from etcd the key after a slash, and takes both.
    assert read | {"start": read["start"].lstrip("/")} == {
        "v": "meta.k8s.io/v1",
        "rv": int(version(page)),
        "start": "a\0",
    }


async def test_a_mark_of_no_moment_goes_on_at_the_newest(api: Api) -> None:
    """Version -1 in a mark, as a 410 hands it out, lists the rest as it is now."""
    await fill(api, "a", "b", "c")
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": "b\0"})
    await api.delete(api.path(name="c"))
    await fill(api, "d")

    rest = await api.get(api.path(), **{"continue": base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")})

    assert names(rest) == ["d"]


async def test_a_garbled_mark_is_refused(api: Api) -> None:
    """An invalid continue token is a bad request."""
    refused = await api.get(api.path(), **{"continue": "abc"})

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message.startswith("invalid continue token: continue key is not valid: ")


async def test_a_mark_and_a_version_do_not_go_together(api: Api) -> None:
    """The mark brings its own version."""
    now = await fill(api, "a", "b")
    mark = (await api.get(api.path(), limit="1")).body["metadata"]["continue"]

    refused = await api.get(api.path(), resourceVersion=now, **{"continue": mark})

    assert (refused.code, refused.message) == (
        400, "specifying resource version is not allowed when using continue",
    )  # fmt: skip


async def test_version_zero_ignores_the_limit(api: Api) -> None:
    """resourceVersion 0 answers from what is at hand, and whole."""
    await fill(api, "a", "b", "c")

    listed = await api.get(api.path(), resourceVersion="0", limit="1")

    assert names(listed) == ["a", "b", "c"]
    assert not listed.body["metadata"].get("continue")


@pytest.mark.parametrize("query", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_a_known_version_is_a_lower_bound(api: Api, query: dict[str, str]) -> None:
    """A version alone, or with NotOlderThan, is answered with it or something newer."""
    then = await fill(api, "a")
    await fill(api, "b")

    listed = await api.get(api.path(), resourceVersion=then, **query)

    assert int(version(listed)) >= int(then)
    assert names(listed)[:1] == ["a"]


@pytest.mark.parametrize("query", [{"resourceVersionMatch": "Exact"}, {"limit": "500"}])
async def test_the_past_is_listed_exactly(api: Api, query: dict[str, str]) -> None:
    """Exact, and a version with a limit, show the collection as it was then, with the objects as they were."""
    then = await fill(api, "a", "b")
    await api.patch(api.path(name="a"), {"spec": {"size": 7}})
    await api.delete(api.path(name="b"))
    await fill(api, "c")

    listed = await api.get(api.path(), resourceVersion=then, **query)

    assert names(listed) == ["a", "b"]
    assert version(listed) == then
    assert "size" not in listed.body["items"][0]["spec"]


async def test_the_past_is_listed_in_pages(api: Api) -> None:
    """Exact with a limit begins pages at that version."""
    then = await fill(api, "a", "b")
    await api.delete(api.path(name="b"))

    first = await api.get(api.path(), resourceVersion=then, resourceVersionMatch="Exact", limit="1")
    second = await api.get(api.path(), limit="1", **{"continue": first.body["metadata"]["continue"]})

    assert [names(first), names(second)] == [["a"], ["b"]]
    assert version(second) == then


async def test_a_future_version_is_too_large(api: Api) -> None:
    """A version that has not happened yet is answered with 504 and a cause that clients know to retry on."""
    refused = await api.get(api.path(), resourceVersion="999999999")

    assert (refused.code, refused.reason) == (504, "Timeout")
    assert refused.message.startswith("Timeout: Too large resource version: 999999999, current: ")
    assert refused.causes == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert refused.body["details"]["retryAfterSeconds"] == 1


@pytest.mark.parametrize("text", ["abc", "-1", "1.5"])
async def test_a_version_is_a_number(api: Api, text: str) -> None:
    """Anything else is a bad request."""
    refused = await api.get(api.path(), resourceVersion=text)

    told = f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}"'
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message == f"{told}: invalid syntax"


ALONE = "resourceVersionMatch is forbidden unless resourceVersion is provided"


@pytest.mark.parametrize(
    ("query", "field", "told"),
    [
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch", f"Forbidden: {ALONE}"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"}, "resourceVersionMatch",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            {"resourceVersionMatch": "Foo", "resourceVersion": "1"}, "resourceVersionMatch",
            'Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "abc"}, "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"),
    ],
)  # fmt: skip
async def test_options_that_exclude_each_other(api: Api, query: dict[str, str], field: str, told: str) -> None:
    """A combination that makes no sense is Invalid and names the option."""
    refused = await api.get(api.path(), **query)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == f'ListOptions.meta.k8s.io "" is invalid: {field}: {told}'
    assert [cause["field"] for cause in refused.causes] == [field]
    assert refused.body["details"]["kind"] == "ListOptions"


@pytest.mark.parametrize("option", ["limit", "timeoutSeconds"])
async def test_numbers_are_whole_numbers(api: Api, option: str) -> None:
    """A limit that is no number is refused; a negative one is none."""
    refused = await api.get(api.path(), **{option: "abc"})

    assert (refused.code, refused.message) == (400, 'strconv.ParseInt: parsing "abc": invalid syntax')
    assert (await api.get(api.path(), limit="-1")).code == 200


async def test_one_object_not_older_than_a_version(http: Api) -> None:
    """A get takes a version as a lower bound, too."""
    made = (await http.create(http.path(), widget("a"))).ok()

    read = await http.get(http.path(name="a"), resourceVersion=made["metadata"]["resourceVersion"])
    garbled = await http.get(http.path(name="a"), resourceVersion="abc")

    assert read.ok() == made
    assert garbled.code == 500
    assert garbled.message.startswith('resourceVersion: Invalid value: "abc"')
