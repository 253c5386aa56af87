"""Requests: deadlines, limits, ETags, redirects, faults."""

import asyncio

import pytest

from metal.redfish import (
    BMCBadRequest,
    BMCBusy,
    BMCConflict,
    BMCError,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCProtocolError,
    BMCServerError,
    BMCTimeout,
    BMCUnreachable,
    ConnectionDropped,
    Limits,
    RedfishClient,
    Response,
)
from tests.redfish.fakes import HANG, ORIGIN, SESSIONS, FakeBMC, answer, client_of, complaint

pytestmark = pytest.mark.looptime
THING = "/redfish/v1/Thing"


@pytest.fixture
def bmc() -> FakeBMC:
    bmc = FakeBMC(latency=0.01)
    bmc.resources[THING] = {"@odata.id": THING, "Name": "thing"}
    return bmc


@pytest.fixture
def client(bmc: FakeBMC) -> RedfishClient:
    return client_of(bmc)


async def test_the_root_is_read_once(bmc: FakeBMC, client: RedfishClient) -> None:
    """Steady state costs one request for each read."""
    await asyncio.gather(client.root(), client.root(), client.get(THING))
    await client.root()
    assert len(bmc.seen("GET", "/redfish/v1/")) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BMCBadRequest),
        (403, BMCForbidden),
        (404, BMCNotFound),
        (405, BMCNotSupported),
        (409, BMCConflict),
        (418, BMCBadRequest),
        (500, BMCServerError),
        (501, BMCNotSupported),
        (503, BMCBusy),
        (599, BMCServerError),
        (304, BMCProtocolError),
    ],
)
async def test_each_status_has_its_error(
    bmc: FakeBMC, client: RedfishClient, status: int, kind: type[BMCError]
) -> None:
    """The message names the BMC, the request and the BMC's own message."""
    bmc.fault("GET", THING, answer(status, complaint("Sorry about that")))
    with pytest.raises(BMCError) as caught:
        await client.get(THING)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"GET {THING} on 10.0.0.1:443 was answered {status}")
    assert str(caught.value).endswith("Sorry about that.")


async def test_503_carries_retry_after(bmc: FakeBMC, client: RedfishClient) -> None:
    """Seconds are used; a date is ignored."""
    date = answer(503, retry_after="Fri, 31 Dec 1999 23:59:59 GMT")
    bmc.fault("GET", THING, answer(503, retry_after="12"), date)
    with pytest.raises(BMCBusy) as seconds:
        await client.get(THING)
    await asyncio.sleep(12)
    with pytest.raises(BMCBusy) as dated:
        await client.get(THING)
    assert seconds.value.retry_after == 12.0
    assert dated.value.retry_after is None


async def test_a_bmc_that_asks_for_a_pause_gets_no_request_until_it_is_over(
    bmc: FakeBMC, client: RedfishClient
) -> None:
    """All callers share the pause, reads and writes alike; the error says how much of it is left."""
    bmc.resources[THING] = {"@odata.id": THING}
    bmc.fault("GET", THING, answer(503, complaint("Busy for 30 s"), retry_after="30"))
    with pytest.raises(BMCBusy):
        await client.get(THING)
    asked = len(bmc.requests)
    await asyncio.sleep(20)
    with pytest.raises(BMCBusy, match="Busy for 30 s") as refused:
        await client.patch(THING, {})
    assert len(bmc.requests) == asked
    assert refused.value.retry_after == pytest.approx(10)
    await asyncio.sleep(10)
    assert (await client.get(THING)).path == THING


async def test_no_pause_is_longer_than_five_minutes(bmc: FakeBMC, client: RedfishClient) -> None:
    """A BMC that asks for a day is asked again after five minutes."""
    bmc.resources[THING] = {"@odata.id": THING}
    bmc.fault("GET", THING, answer(503, retry_after="86400"))
    with pytest.raises(BMCBusy):
        await client.get(THING)
    await asyncio.sleep(301)
    assert (await client.get(THING)).path == THING


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
async def test_what_is_no_json_object_is_a_protocol_error(bmc: FakeBMC, client: RedfishClient, body: bytes) -> None:
    """Invalid JSON, truncation and excessive nesting are rejected in the same way."""
    bmc.fault("GET", THING, Response(200, {}, body))
    with pytest.raises(BMCProtocolError, match="not a JSON object"):
        await client.get(THING)


async def test_an_error_behind_200_is_an_error(bmc: FakeBMC, client: RedfishClient) -> None:
    """Some BMCs answer 200 with an error instead of the resource."""
    bmc.fault("GET", THING, answer(200, complaint("Not ready yet")))
    with pytest.raises(BMCServerError, match="Not ready yet"):
        await client.get(THING)


async def test_a_success_reported_as_error_is_a_success(bmc: FakeBMC, client: RedfishClient) -> None:
    """HPE reports successes in `error`; only a critical message is a failure."""
    bmc.fault("POST", THING, answer(200, complaint("Done", "Base.1.4.Success", Severity="OK")))
    bmc.fault("POST", THING, answer(200, complaint("Broken", Severity="Critical")))
    assert (await client.post(THING, {})).status == 200
    with pytest.raises(BMCBadRequest, match=r"did not carry out POST .*: Broken\."):
        await client.post(THING, {})


async def test_a_hang_ends_at_the_deadline(bmc: FakeBMC) -> None:
    """A BMC that never answers costs its own caller the deadline, and no more."""
    client = client_of(bmc, limits=Limits(deadline=7))
    await client.get(THING)
    bmc.fault("GET", THING, HANG)
    start = asyncio.get_running_loop().time()
    with pytest.raises(BMCTimeout, match="did not answer GET /redfish/v1/Thing within 7 s"):
        await client.get(THING)
    assert asyncio.get_running_loop().time() - start == pytest.approx(7)


async def test_the_deadline_includes_the_wait_for_a_slot(bmc: FakeBMC) -> None:
    """Behind two hanging reads a third one times out at its deadline."""
    client = client_of(bmc, limits=Limits(deadline=7))
    await client.get(THING)
    bmc.fault("GET", THING, HANG, HANG)
    start = asyncio.get_running_loop().time()
    results = await asyncio.gather(*(client.get(THING) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [BMCTimeout] * 3
    assert asyncio.get_running_loop().time() - start == pytest.approx(7)


async def test_at_most_two_reads_and_one_write_are_in_flight(bmc: FakeBMC, client: RedfishClient) -> None:
    """Further requests wait; the login counts as a write."""
    reads = [client.get(THING) for _ in range(8)]
    writes = [client.patch(THING, {"Name": str(n)}) for n in range(4)]
    await asyncio.gather(*reads, *writes)
    assert bmc.peak == {"read": 2, "write": 1}


async def test_a_cancelled_caller_frees_its_slot(bmc: FakeBMC, client: RedfishClient) -> None:
    """Cancelling a request releases its slot."""
    bmc.fault("GET", THING, HANG, HANG)
    hanging = [asyncio.create_task(client.get(THING)) for _ in range(2)]
    await asyncio.sleep(1)
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
    assert (await client.get(THING)).data["Name"] == "thing"


async def test_a_read_on_a_dropped_connection_is_repeated_once(bmc: FakeBMC, client: RedfishClient) -> None:
    """Keep-alive connections become stale; a second failure is raised."""
    dropped = ConnectionDropped("gone")
    bmc.fault("GET", THING, dropped)
    await client.get(THING)
    bmc.fault("GET", THING, dropped, dropped)
    with pytest.raises(BMCUnreachable):
        await client.get(THING)


async def test_a_write_on_a_dropped_connection_is_not_repeated(bmc: FakeBMC, client: RedfishClient) -> None:
    """Whether the reset happened is unknown; a second one could undo it."""
    bmc.fault("POST", THING, ConnectionDropped("gone"))
    with pytest.raises(ConnectionDropped):
        await client.post(THING, {})
    assert len(bmc.seen("POST", THING)) == 1


async def test_unreachable_is_not_repeated(bmc: FakeBMC, client: RedfishClient) -> None:
    """A dead BMC is asked once per call."""
    bmc.fault("GET", "/redfish/v1/", BMCUnreachable("no route"))
    with pytest.raises(BMCUnreachable):
        await client.get(THING)
    assert client.requests == 1


async def test_patch_sends_if_match_where_an_etag_is_known(bmc: FakeBMC, client: RedfishClient) -> None:
    """From the header, else from the body."""
    bmc.etags[THING] = 'W/"1"'
    resource = await client.get(THING)
    await client.patch(THING, {"Name": "new"}, etag=resource.etag)
    assert bmc.seen("PATCH")[0].headers["if-match"] == 'W/"1"'
    bmc.etags.clear()
    bmc.resources[THING]["@odata.etag"] = '"2"'
    assert (await client.get(THING)).etag == '"2"'


async def test_after_412_a_fresh_etag_is_used_once(bmc: FakeBMC, client: RedfishClient) -> None:
    """Another client changed the resource between the read and the write."""
    bmc.etags[THING] = '"2"'
    await client.patch(THING, {"Name": "new"}, etag='"1"')
    assert [r.headers["if-match"] for r in bmc.seen("PATCH")] == ['"1"', '"2"']
    assert bmc.resources[THING]["Name"] == "new"


async def test_an_etag_that_is_refused_although_current_is_left_out(bmc: FakeBMC, client: RedfishClient) -> None:
    """Some BMCs answer 412 to their own ETags."""
    bmc.etags[THING] = '"1"'
    bmc.fault("PATCH", THING, answer(412))
    await client.patch(THING, {"Name": "new"}, etag='"1"')
    assert "if-match" not in bmc.seen("PATCH")[1].headers


async def test_412_twice_is_a_conflict(bmc: FakeBMC, client: RedfishClient) -> None:
    """The caller retries later."""
    bmc.fault("PATCH", THING, answer(412), answer(412))
    with pytest.raises(BMCConflict, match="outdated twice"):
        await client.patch(THING, {}, etag='"1"')
    assert len(bmc.seen("PATCH")) == 2


async def test_428_makes_it_fetch_an_etag(bmc: FakeBMC, client: RedfishClient) -> None:
    """A BMC that requires If-Match gets it."""
    bmc.etags[THING] = '"9"'
    bmc.fault("PATCH", THING, answer(428))
    await client.patch(THING, {"Name": "new"})
    assert bmc.seen("PATCH")[1].headers["if-match"] == '"9"'


async def test_actions_never_carry_if_match(bmc: FakeBMC, client: RedfishClient) -> None:
    """Lenovo and HPE answer 412 to a reset with an ETag (metal-operator#667)."""
    bmc.etags[THING] = '"1"'
    await client.get(THING)
    await client.post(THING, {})
    assert all("if-match" not in request.headers for request in bmc.seen("POST"))


@pytest.mark.parametrize("location", ["/redfish/v1/Thing", "https://10.0.0.1/redfish/v1/Thing", f"{ORIGIN}{THING}"])
async def test_a_redirect_within_the_bmc_is_followed(bmc: FakeBMC, client: RedfishClient, location: str) -> None:
    """Aliases and missing slashes are common."""
    bmc.fault("GET", "/redfish/v1/Alias", answer(307, location=location))
    assert (await client.get("/redfish/v1/Alias")).data["Name"] == "thing"


@pytest.mark.parametrize(
    "location",
    ["https://evil.example/redfish/v1/Thing", "//evil.example/x", "http://10.0.0.1/x", "https://10.0.0.1:444/x"],
)
async def test_a_redirect_elsewhere_is_refused(bmc: FakeBMC, client: RedfishClient, location: str) -> None:
    """Another host, port or scheme is never followed; the message says what to set."""
    bmc.fault("GET", THING, answer(302, location=location))
    with pytest.raises(BMCProtocolError, match=r"is not followed\. If that is the BMC, set its address"):
        await client.get(THING)
    assert len(bmc.seen("GET", THING)) == 1


@pytest.mark.parametrize("location", ["relative", "https://[bad", "https://10.0.0.1:x/y", "/a b", "/a\r\nX: y"])
async def test_a_redirect_to_nonsense_is_a_protocol_error(bmc: FakeBMC, client: RedfishClient, location: str) -> None:
    """No traceback, no header injection."""
    bmc.fault("GET", THING, answer(302, location=location))
    with pytest.raises(BMCProtocolError):
        await client.get(THING)


async def test_a_redirect_loop_ends(bmc: FakeBMC, client: RedfishClient) -> None:
    """Five requests, then an error."""
    bmc.fault("GET", THING, *[answer(302, location=THING)] * 20)
    with pytest.raises(BMCProtocolError, match="redirects too often"):
        await client.get(THING)
    assert len(bmc.seen("GET", THING)) == 5


async def test_a_redirected_write_is_refused(bmc: FakeBMC, client: RedfishClient) -> None:
    """A change is sent to its own path only."""
    bmc.fault("POST", THING, answer(307, location=THING))
    with pytest.raises(BMCProtocolError):
        await client.post(THING, {})


@pytest.mark.parametrize("root", [answer(404), answer(200, {"hello": "world"})])
async def test_what_is_no_bmc_is_said_so(bmc: FakeBMC, client: RedfishClient, root: Response) -> None:
    """A web server at the address gives a helpful message, without the password."""
    bmc.fault("GET", "/redfish/v1/", root)
    with pytest.raises(BMCProtocolError, match="is this address a BMC"):
        await client.get(THING)
    assert not bmc.seen("POST", SESSIONS)


async def test_202_brings_a_task(bmc: FakeBMC, client: RedfishClient) -> None:
    """The monitor is the path to poll."""
    bmc.fault("POST", THING, answer(202, {"TaskState": "New"}, location=f"{ORIGIN}/redfish/v1/TaskMonitors/7"))
    reply = await client.post(THING, {})
    assert reply.task is not None
    assert (reply.task.monitor, reply.task.state, reply.task.ended) == ("/redfish/v1/TaskMonitors/7", "New", False)


async def test_the_observer_hears_of_every_request(bmc: FakeBMC) -> None:
    """Outcomes are a small set of metric labels."""
    heard: list[tuple[str, str]] = []
    client = RedfishClient(bmc, origin=ORIGIN, observer=lambda method, outcome, _: heard.append((method, outcome)))
    bmc.fault("GET", THING, answer(200, {"@odata.id": THING}), answer(500), ConnectionDropped("x"), BMCTimeout("y"))
    await client.get(THING)
    for _ in range(2):
        with pytest.raises(BMCError):
            await client.get(THING)
    outcomes = ["2xx", "5xx", "ConnectionFailed", "Timeout"]
    assert heard == [("GET", outcome) for outcome in outcomes]
    assert client.requests == 4


async def test_a_fragment_is_not_sent(bmc: FakeBMC, client: RedfishClient) -> None:
    """A link with a fragment leads to its resource."""
    await client.get(f"{THING}#/Members/0")
    assert bmc.requests[-1].path == THING


async def test_repr_shows_live_state(bmc: FakeBMC, client: RedfishClient) -> None:
    """Origin, number of requests, and whether it is closed."""
    await client.get(THING)
    assert repr(client) == f"<RedfishClient {ORIGIN} 3 requests>"
    assert repr(client.session) == "<Session 10.0.0.1:443 session>"
    await client.aclose()
    assert repr(client).endswith(" closed>")


async def test_delete_removes(bmc: FakeBMC, client: RedfishClient) -> None:
    """DELETE follows the rules of other writes."""
    assert (await client.delete(THING)).status == 204


async def test_a_change_without_permit_is_not_sent(bmc: FakeBMC) -> None:
    """The permit is checked when the change is sent, not when it was queued; reads, login and logout do not need it."""

    def permit() -> None:
        if bmc.seen("PATCH", THING):
            raise PermissionError("not the leader")

    client = client_of(bmc, permit=permit)
    first = asyncio.create_task(client.patch(THING, {"Name": "first"}))
    queued = asyncio.create_task(client.patch(THING, {"Name": "queued"}))
    await first
    with pytest.raises(PermissionError):
        await queued
    for change in (client.patch(THING, {}), client.post(THING, {}), client.delete(THING)):
        with pytest.raises(PermissionError):
            await change
    assert len(bmc.seen("PATCH", THING)) == 1
    assert (await client.get(THING)).data["Name"] == "first"
    await client.aclose()
    assert [request for request in bmc.requests if request.method == "DELETE"]
