"""HTTPClient on a real socket: requests as the API expects them, every bad answer as one of our errors."""

import asyncio
import random
from typing import Any

import pytest

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Invalid,
    Malformed,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection
from metal.kube.client.protocol import Client, EventType, WatchEvent
from tests.kube.client.wireserver import Server, cut, hang, json, serving, status, stream, text
from tests.kube.things import EVENT, THING, WORLD, Thing

A = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7"}, "spec": {"size": 3}}


def client(server: Server, **options: Any) -> HTTPClient:
    return HTTPClient(Connection(server.url), rng=random.Random(1), **options)


def page(*names: str, version: str = "9", more: str = "") -> dict[str, Any]:
    items = [{"metadata": {"name": name, "namespace": "ns"}} for name in names]
    return {"kind": "ThingList", "metadata": {"resourceVersion": version, "continue": more}, "items": items}


async def collect(server: Server, **options: Any) -> list[WatchEvent[Thing]]:
    async with client(server, **options) as api:
        return [event async for event in api.watch(THING, resource_version="5")]


def test_it_is_a_client() -> None:
    """The contract is met, as far as types can say."""
    checked: Client = HTTPClient(Connection("http://127.0.0.1:1"))
    assert repr(checked) == "<HTTPClient http://127.0.0.1:1>"


async def test_get_reads_one_object() -> None:
    """The path says group, version, namespace and name; the answer is the struct."""
    async with serving(json(A), json(A), json(A)) as server, client(server) as api:
        obj = await api.get(THING, "a", "ns")
        await api.get(WORLD, "a")
        await api.get(EVENT, "a", "ns")

    assert (obj.spec.size, obj.metadata.resource_version) == (3, "7")
    assert [seen.path for seen in server.seen] == [
        "/apis/test.example/v1/namespaces/ns/things/a",
        "/apis/test.example/v1/worlds/a",
        "/api/v1/namespaces/ns/events/a",
    ]


async def test_odd_names_cannot_leave_their_place_in_the_path() -> None:
    """A slash or question mark in a name is escaped."""
    async with serving(json(A)) as server, client(server) as api:
        await api.get(THING, "../x?y", "n/s")

    assert server.seen[0].path == "/apis/test.example/v1/namespaces/n%2Fs/things/..%2Fx%3Fy"


async def test_create_fills_in_the_type() -> None:
    """apiVersion and kind are added; the namespace comes from the object."""
    async with serving(json(A, 201)) as server, client(server) as api:
        obj = await api.create(THING, {"metadata": {"name": "a", "namespace": "ns"}})

    assert obj.metadata.name == "a"
    [seen] = server.seen
    assert (seen.method, seen.path) == ("POST", "/apis/test.example/v1/namespaces/ns/things")
    assert (seen.body["apiVersion"], seen.body["kind"]) == ("test.example/v1", "Thing")


async def test_a_missing_namespace_or_name_is_refused_without_asking() -> None:
    """A namespaced kind needs a namespace, an object a name."""
    async with serving() as server, client(server) as api:
        with pytest.raises(BadRequest, match=r"metadata\.namespace is missing"):
            await api.create(THING, {"metadata": {"name": "a"}})
        with pytest.raises(BadRequest, match=r"metadata\.name is missing"):
            await api.get(WORLD, "")

    assert server.seen == []


async def test_patches_are_merge_patches_and_status_has_its_own_path() -> None:
    """Content type and path as the API wants them."""
    async with serving(json(A), json(A)) as server, client(server) as api:
        await api.patch(THING, "a", {"spec": {"size": 1}}, "ns")
        await api.patch_status(THING, "a", {"status": {"phase": "x"}}, "ns")

    assert [seen.method for seen in server.seen] == ["PATCH", "PATCH"]
    assert {seen.headers["Content-Type"] for seen in server.seen} == {"application/merge-patch+json"}
    assert server.seen[0].body == {"spec": {"size": 1}}
    assert server.seen[1].path.endswith("/things/a/status")


async def test_apply_names_its_manager() -> None:
    """Server-side apply with fieldManager and force."""
    async with serving(json(A), json(A)) as server, client(server) as api:
        await api.apply(THING, {"metadata": {"name": "a", "namespace": "ns"}}, manager="me")
        await api.apply(THING, {"metadata": {"name": "a", "namespace": "ns"}}, manager="me", force=False)

    assert server.seen[0].headers["Content-Type"] == "application/apply-patch+yaml"
    assert server.seen[0].body["kind"] == "Thing"
    assert [seen.query for seen in server.seen] == [
        {"fieldManager": "me", "force": "true"},
        {"fieldManager": "me", "force": "false"},
    ]


async def test_delete_sends_its_preconditions() -> None:
    """uid and resourceVersion go along only when given."""
    async with serving(json({}), json({})) as server, client(server) as api:
        await api.delete(THING, "a", "ns", uid="u", resource_version="7")
        await api.delete(WORLD, "a")

    assert server.seen[0].body["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert server.seen[0].body["propagationPolicy"] == "Background"
    assert "preconditions" not in server.seen[1].body


async def test_list_follows_continue_to_the_end() -> None:
    """Pages of 500 become one; the version is the first page's; selectors go along on each."""
    async with (
        serving(json(page("a", more="t1")), json(page("b", more="t2")), json(page("c"))) as server,
        client(server) as api,
    ):
        result = await api.list(THING, labels="app=web", fields="metadata.name=a", resource_version="0")

    assert [obj.metadata.name for obj in result.items] == ["a", "b", "c"]
    assert result.resource_version == "9"
    assert [seen.query.get("continue") for seen in server.seen] == [None, "t1", "t2"]
    assert [seen.query.get("resourceVersion") for seen in server.seen] == ["0", None, None]
    assert {seen.query["limit"] for seen in server.seen} == {"500"}
    assert {seen.query["labelSelector"] for seen in server.seen} == {"app=web"}
    assert {seen.path for seen in server.seen} == {"/apis/test.example/v1/things"}


async def test_a_continue_token_that_expires_starts_the_list_again() -> None:
    """Nothing of the first attempt remains."""
    gone = status(410, "Expired")
    async with (
        serving(json(page("old", more="t")), gone, json(page("new", version="20"))) as server,
        client(server) as api,
    ):
        result = await api.list(THING)

    assert ([obj.metadata.name for obj in result.items], result.resource_version) == (["new"], "20")


async def test_a_list_that_always_expires_is_given_up() -> None:
    """After three attempts the caller hears of it."""
    async with serving(*[status(410, "Expired")] * 3) as server, client(server) as api:
        with pytest.raises(Expired):
            await api.list(THING)

    assert len(server.seen) == 3


async def test_an_empty_list_may_be_null() -> None:
    """Go encodes a nil slice as null."""
    empty = {"metadata": {"resourceVersion": "3"}, "items": None}
    async with serving(json(empty)) as server, client(server) as api:
        assert (await api.list(THING)).items == ()


async def test_watch_asks_for_bookmarks_and_an_end() -> None:
    """timeoutSeconds lies below the client's own deadline."""
    async with serving(stream()) as server:
        assert await collect(server, inactivity=100) == []

    query = server.seen[0].query
    assert (query["watch"], query["allowWatchBookmarks"], query["resourceVersion"]) == ("true", "true", "5")
    assert 60 <= int(query["timeoutSeconds"]) <= 90


def event(type: str, name: str = "a", text: str = "") -> bytes:
    obj = f'{{"metadata":{{"name":"{name}","resourceVersion":"8"}},"spec":{{"text":"{text}"}}}}'
    return f'{{"type":"{type}","object":{obj}}}\n'.encode()


async def test_watch_lines_may_come_in_any_pieces() -> None:
    """Half lines, several lines at once, blank lines, and every kind of event."""
    whole = event("ADDED", "a") + b"\n" + event("MODIFIED", "b") + event("DELETED", "c") + event("BOOKMARK")
    async with serving(stream(whole[:10], whole[10:90], whole[90:])) as server:
        events = await collect(server)

    assert [(event.type, event.object and event.object.metadata.name) for event in events] == [
        (EventType.ADDED, "a"),
        (EventType.MODIFIED, "b"),
        (EventType.DELETED, "c"),
        (EventType.BOOKMARK, None),
    ]
    assert {event.resource_version for event in events} == {"8"}


async def test_other_line_separators_inside_an_event_are_text() -> None:
    """U+0085, U+2028 and a carriage return split nothing."""
    tricky = "a\u0085b\u2028c\\r\\nd"
    async with serving(stream(event("ADDED", text=tricky))) as server:
        [only] = await collect(server)

    assert only.object is not None
    assert only.object.spec.text == "a\u0085b\u2028c\r\nd"


async def test_a_line_of_two_megabytes_is_one_event() -> None:
    """The line limit of stream readers does not apply."""
    async with serving(stream(event("ADDED", text="x" * 2_000_000), event("ADDED", "b"))) as server:
        events = await collect(server)

    assert [len(event.object.spec.text) for event in events if event.object] == [2_000_000, 0]


async def test_an_error_event_is_raised() -> None:
    """410 inside the stream is Expired, although the HTTP status was 200."""
    error = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    async with serving(stream(error)) as server:
        with pytest.raises(Expired, match="too old"):
            await collect(server)


async def test_a_watch_that_is_refused_raises() -> None:
    """An HTTP error on the watch request is the same as on any other."""
    async with serving(status(410, "Gone")) as server:
        with pytest.raises(Expired):
            await collect(server)


async def test_a_silent_watch_ends_at_the_inactivity_deadline() -> None:
    """A peer that vanished without a word is noticed."""
    async with serving(stream(event("ADDED"), then="silence")) as server:
        with pytest.raises(Unavailable, match="no answer in time"):
            await asyncio.wait_for(collect(server, inactivity=0.1), 5)


async def test_a_watch_that_is_never_answered_ends_sooner_than_a_silent_one() -> None:
    """Until its first answer a watch has the deadline of a request, not its inactivity deadline."""
    async with serving(hang) as server:
        with pytest.raises(Unavailable, match="no answer in time"):
            await asyncio.wait_for(collect(server, total=0.1, inactivity=300), 5)


async def test_a_watch_that_is_cut_raises() -> None:
    """What arrived before is delivered; a half line is not."""
    async with serving(stream(event("ADDED"), b'{"type":"MOD', then="cut")) as server, client(server) as api:
        watch = api.watch(THING, resource_version="5")
        first = await anext(watch)
        with pytest.raises(Unavailable):
            await anext(watch)

    assert first.type is EventType.ADDED


@pytest.mark.parametrize(
    "line", [b"not json\n", b'{"type":"ODD","object":{}}\n', b'{"type":"ADDED","object":{"spec":7}}\n']
)
async def test_a_watch_that_lies_raises(line: bytes) -> None:
    """Nonsense is an ApiError too."""
    async with serving(stream(line)) as server:
        with pytest.raises(Malformed):
            await collect(server)


async def test_a_watch_does_not_use_up_the_sockets_of_requests() -> None:
    """With one connection for requests, a get works beside open watches."""
    silent = stream(event("ADDED"), then="silence")
    async with serving(silent, silent, json(A)) as server, client(server, max_connections=1) as api:
        watches = [api.watch(THING, resource_version="5") for _ in range(2)]
        for watch in watches:
            await anext(watch)
        await asyncio.wait_for(api.get(THING, "a", "ns"), 2)
        for watch in watches:
            await watch.aclose()  # type: ignore[attr-defined]  # an async generator, as far as this test knows


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (status(404, "NotFound", "no such thing"), NotFound, "no such thing"),
        (status(409, "Conflict"), Conflict, "no"),
        (status(401, "Unauthorized"), Unauthorized, "no"),
        (status(422, "Invalid", "spec.size: too big"), Invalid, "too big"),
        (status(500, "InternalError"), ServerError, "no"),
        (text("<html>bad gateway</html>", 502), ServerError, "HTTP 502: <html>bad gateway"),
        (text("", 503), ServerError, "HTTP 503: no body"),
        (json({"message": "not a Status"}, 404), NotFound, "not a Status"),
        (json([1], 418), ApiError, "418"),
        (text("<html>login</html>", 200), Malformed, "cannot read a Thing"),
        (json({"metadata": {"name": "bad", "namespace": "ns"}, "spec": {"size": "x"}}), Malformed, "object ns/bad"),
        (json({}, 302, Location="http://127.0.0.1:1/"), ApiError, "302"),
        (cut, Unavailable, "GET"),
        (hang, Unavailable, "no answer in time"),
    ],
)
async def test_every_bad_answer_is_one_of_our_errors(answer: Any, error: type[ApiError], message: str) -> None:
    """The caller sees no exception of the HTTP library."""
    async with serving(answer, answer, answer) as server, client(server, total=0.2) as api:
        with pytest.raises(error, match=message) as caught:
            await api.get(THING, "a", "ns")

    assert type(caught.value) is error


async def test_a_list_with_one_unreadable_object_names_it() -> None:
    """The error says which object has to be repaired."""
    bad = page("good", "bad")
    bad["items"][1]["spec"] = {"size": []}
    async with serving(json(bad)) as server, client(server) as api:
        with pytest.raises(Malformed, match=r"object ns/bad"):
            await api.list(THING)


async def test_nobody_listening_is_unavailable() -> None:
    """Connection refused."""
    async with serving() as server:
        pass
    async with client(server) as api:
        with pytest.raises(Unavailable):
            await api.get(THING, "a", "ns")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"Retry_After": "soon"}, None),
        ({}, None),
    ],
)
async def test_retry_after_reaches_the_caller(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds and dates are understood, nonsense is ignored."""
    async with serving(status(429, "TooManyRequests", **headers)) as server, client(server) as api:
        with pytest.raises(TooManyRequests) as caught:
            await api.get(THING, "a", "ns")

    assert caught.value.retry_after == seconds


async def test_the_token_is_asked_for_each_request_and_shown_nowhere() -> None:
    """Tokens rotate; they appear in no repr and in no error."""
    tokens = iter(["first-token", "second-token"])
    async with serving(json(A), text("", 500)) as server:
        connection = Connection(server.url, token=lambda: next(tokens))
        async with HTTPClient(connection) as api:
            await api.get(THING, "a", "ns")
            with pytest.raises(ServerError) as caught:
                await api.get(THING, "a", "ns")

    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer first-token", "Bearer second-token"]
    assert "token" not in f"{caught.value!r} {connection!r} {api!r}"


async def test_an_informer_over_the_wire() -> None:
    """List, watch, 410 and list again through real sockets."""
    async with (
        serving(
            json(page("a")),
            stream(event("ADDED", "b")),
            status(410, "Expired"),
            json(page("c")),
            stream(then="silence"),
        ) as server,
        client(server) as api,
    ):
        informer = Informer(api, THING, rng=random.Random(1))
        names: list[str] = []
        done = asyncio.Event()

        def handle(old: Thing | None, new: Thing | None) -> None:
            names.append(f"+{new.metadata.name}" if new else f"-{old.metadata.name if old else ''}")
            if "+c" in names:
                done.set()

        informer.add_handler(handle)
        task = asyncio.ensure_future(informer.run())
        await asyncio.wait_for(done.wait(), 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert names == ["+a", "+b", "-a", "-b", "+c"]


async def test_a_call_asks_for_the_form_that_it_wants() -> None:
    """For what no kind describes: the answer comes as it is, with the query and content type given."""
    async with serving(json({"kind": "Table"}), json(A)) as server, client(server) as api:
        table = await api.call("GET", "/apis/test.example/v1/things", accept="application/json;as=Table")
        await api.call("PATCH", "/x", query={"dryRun": "All", "force": ""}, body={"a": 1}, content_type="application/y")

    assert table == b'{"kind":"Table"}'
    listed, patched = server.seen
    assert listed.headers["Accept"] == "application/json;as=Table"
    assert (patched.headers["Accept"], patched.headers["Content-Type"]) == ("application/json", "application/y")
    assert (patched.path, dict(patched.query)) == ("/x", {"dryRun": "All"})


async def test_lines_come_one_by_one_in_the_form_asked_for() -> None:
    """As a watch gives them; a refusal is an error as everywhere."""
    async with serving(stream(b'{"a":1}\n{"b"', b":2}\n"), status(410, "Expired")) as server, client(server) as api:
        lines = [line async for line in api.lines("/x", {"watch": "true"}, accept="application/json;as=Table")]
        with pytest.raises(Expired):
            _ = [line async for line in api.lines("/x", {})]

    assert lines == [b'{"a":1}', b'{"b":2}']
    assert server.seen[0].headers["Accept"] == "application/json;as=Table"


async def test_each_request_is_reported_once_with_its_code() -> None:
    """A refusal has its status, a request without an answer <error>; a watch is reported when it begins."""
    seen: list[tuple[str, str, str]] = []

    def observe(method: str, host: str, code: str, _: float) -> None:
        seen.append((method, host, code))

    answers = (json(A), status(404, "NotFound"), stream(event("ADDED")))
    async with serving(*answers) as server, client(server, observer=observe) as api:
        await api.get(THING, "a", "ns")
        with pytest.raises(ApiError):
            await api.get(THING, "a", "ns")
        async for _ in api.watch(THING, resource_version="1"):
            pass
        host = server.url.removeprefix("http://")
    async with client(server, observer=observe) as api:
        with pytest.raises(Unavailable):
            await api.get(THING, "a", "ns")

    assert seen == [("GET", host, "200"), ("GET", host, "404"), ("GET", host, "200"), ("GET", host, "<error>")]


async def test_the_host_that_is_reported_has_no_credentials_of_the_url() -> None:
    """The host becomes a label of metrics, which anybody with access to /metrics can read."""
    seen: list[str] = []
    async with serving(json(A)) as server:
        url = server.url.replace("http://", "http://user:s3cret@")
        observed = HTTPClient(Connection(url), rng=random.Random(1), observer=lambda _, host, *__: seen.append(host))
        async with observed as api:
            await api.get(THING, "a", "ns")
    assert seen == [server.url.removeprefix("http://")]
