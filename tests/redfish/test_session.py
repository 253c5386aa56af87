"""Authentication: sessions, basic, refusals."""

import asyncio
import math

import pytest

from metal.redfish import BMCAuthError, BMCBusy, BMCServerError, BMCTimeout, Limits
from metal.redfish.errors import BMCError
from tests.redfish.fakes import HANG, PASSWORD, SESSIONS, USER, FakeBMC, answer, client_of, complaint

pytestmark = pytest.mark.looptime
THING = "/redfish/v1/Thing"


@pytest.fixture
def bmc() -> FakeBMC:
    bmc = FakeBMC(latency=0.01)
    bmc.resources[THING] = {"@odata.id": THING, "Name": "thing"}
    return bmc


async def test_one_login_serves_all_concurrent_callers(bmc: FakeBMC) -> None:
    """Ten concurrent callers cost one root, one login and ten reads."""
    client = client_of(bmc)
    await asyncio.gather(*(client.get(THING) for _ in range(10)))
    assert len(bmc.seen("POST", SESSIONS)) == 1
    assert client.requests == 12


async def test_the_password_is_sent_nowhere_but_to_the_session_collection(bmc: FakeBMC) -> None:
    """After the login only the token is sent."""
    await client_of(bmc).get(THING)
    bodies = [r for r in bmc.requests if PASSWORD in str(r)]
    assert [r.path for r in bodies] == [SESSIONS]
    assert bmc.seen("GET", THING)[0].headers["x-auth-token"] == "token-1"


async def test_an_expired_session_is_renewed_once_for_all(bmc: FakeBMC) -> None:
    """When the BMC loses its sessions, concurrent callers share the new login."""
    client = client_of(bmc)
    await client.get(THING)
    bmc.tokens.clear()
    await asyncio.gather(*(client.get(THING) for _ in range(4)))
    assert len(bmc.seen("POST", SESSIONS)) == 2


async def test_a_refused_password_is_offered_once(bmc: FakeBMC) -> None:
    """Ten callers and later ones get BMCAuthError after one attempt, so that no account is locked."""
    client = client_of(bmc, password="wrong")
    results = await asyncio.gather(*(client.get(THING) for _ in range(10)), return_exceptions=True)
    with pytest.raises(BMCAuthError, match=r"refused the user name or password.*no more often than every 900 s"):
        await client.get(THING)
    assert all(isinstance(result, BMCAuthError) for result in results)
    assert len(bmc.seen("POST", SESSIONS)) == 1
    assert client.session.refused


async def test_a_refusal_has_the_same_words_whenever_it_is_met(bmc: FakeBMC) -> None:
    """The text becomes a condition, which must not change at each reconcile."""
    client = client_of(bmc, password="wrong")
    words = set()
    for _ in range(3):
        with pytest.raises(BMCAuthError) as refused:
            await client.get(THING)
        words.add(str(refused.value))
        await asyncio.sleep(60)
    assert len(words) == 1


async def test_a_refused_password_is_tried_again_after_the_cool_down(bmc: FakeBMC) -> None:
    """A password that was corrected on the BMC works after the cooldown, without a restart."""
    client = client_of(bmc, limits=Limits(cooldown=60))
    bmc.password = "other"
    with pytest.raises(BMCAuthError):
        await client.get(THING)
    bmc.password = PASSWORD
    await asyncio.sleep(61)
    assert (await client.get(THING)).data["Name"] == "thing"


async def test_a_refusal_can_be_forgotten_on_purpose(bmc: FakeBMC) -> None:
    """The retry annotation allows one more attempt."""
    client = client_of(bmc, limits=Limits(cooldown=math.inf))
    bmc.fault("POST", SESSIONS, answer(403))
    with pytest.raises(BMCAuthError):
        await client.get(THING)
    client.session.forget_refusal()
    await client.get(THING)


async def test_401_for_ever_is_an_auth_error_after_one_more_login(bmc: FakeBMC) -> None:
    """After two logins with useless sessions there is no further one for a minute."""
    client = client_of(bmc)
    bmc.fault("GET", THING, *[answer(401)] * 10)
    for _ in range(3):
        with pytest.raises(BMCAuthError, match="401 all the same"):
            await client.get(THING)
    assert len(bmc.seen("POST", SESSIONS)) == 2
    assert len(bmc.seen("GET", THING)) == 2


@pytest.mark.parametrize("status", [404, 405, 501, 400])
async def test_without_session_service_basic_authentication_is_used(bmc: FakeBMC, status: int) -> None:
    """The missing collection is requested once."""
    bmc.fault("POST", SESSIONS, answer(status))
    client = client_of(bmc)
    await client.get(THING)
    await client.get(THING)
    assert len(bmc.seen("POST", SESSIONS)) == 1
    assert bmc.seen("GET", THING)[-1].headers["authorization"].startswith("Basic ")


async def test_a_root_without_sessions_means_basic_without_asking(bmc: FakeBMC) -> None:
    """No login is tried where the root names no session collection."""
    bmc.resources["/redfish/v1/"].pop("Links")
    await client_of(bmc).get(THING)
    assert not bmc.seen("POST")


async def test_a_root_that_names_only_the_session_service_leads_to_its_sessions(bmc: FakeBMC) -> None:
    """SessionService/Sessions is the path of the standard."""
    bmc.resources["/redfish/v1/"].pop("Links")
    bmc.resources["/redfish/v1/"]["SessionService"] = {"@odata.id": "/redfish/v1/SessionService"}
    await client_of(bmc).get(THING)
    assert bmc.seen("POST", SESSIONS)


@pytest.mark.parametrize(
    "full", [answer(503), answer(400, complaint("Too many sessions.", "Base.1.8.SessionLimitExceeded"))]
)
async def test_when_all_sessions_are_in_use_basic_stands_in_for_a_while(bmc: FakeBMC, full: object) -> None:
    """After five minutes a session is tried again."""
    bmc.fault("POST", SESSIONS, full)
    client = client_of(bmc)
    await client.get(THING)
    await asyncio.sleep(301)
    await client.get(THING)
    assert "authorization" in bmc.seen("GET", THING)[0].headers
    assert "x-auth-token" in bmc.seen("GET", THING)[1].headers


async def test_full_and_no_basic_is_busy_not_wrong_password(bmc: FakeBMC) -> None:
    """A refused fallback to basic authentication proves nothing about the password."""
    bmc.basic = False
    bmc.fault("POST", SESSIONS, *[answer(503)] * 5)
    client = client_of(bmc)
    with pytest.raises(BMCBusy, match="no free session"):
        await client.get(THING)


async def test_wrong_basic_credentials_are_offered_once_by_concurrent_callers(bmc: FakeBMC) -> None:
    """Without sessions, too, the BMC sees one failed attempt."""
    bmc.sessions = False
    client = client_of(bmc, password="wrong")
    results = await asyncio.gather(*(client.get(THING) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(result, BMCAuthError) for result in results)
    assert len(bmc.seen("GET", THING)) == 1


async def test_proven_basic_credentials_do_not_queue(bmc: FakeBMC) -> None:
    """After one success, two reads run concurrently."""
    bmc.sessions = False
    client = client_of(bmc)
    await client.get(THING)
    await asyncio.gather(*(client.get(THING) for _ in range(4)))
    assert bmc.peak["read"] == 2


async def test_a_closed_root_is_read_after_the_login(bmc: FakeBMC) -> None:
    """A BMC that requires a login for its root is logged into at the standard path."""
    bmc.open_root = False
    root = await client_of(bmc).root()
    assert root.systems.odata_id == "/redfish/v1/Systems"


async def test_an_ill_login_is_a_server_error_and_tried_again(bmc: FakeBMC) -> None:
    """500 proves nothing about the password."""
    bmc.fault("POST", SESSIONS, answer(500, complaint("Out of memory")))
    client = client_of(bmc)
    with pytest.raises(BMCServerError, match=r"Out of memory\."):
        await client.get(THING)
    await client.get(THING)


async def test_a_login_that_hangs_ends_with_the_request(bmc: FakeBMC) -> None:
    """The deadline includes the login, and the next caller is not blocked by it."""
    bmc.fault("POST", SESSIONS, HANG)
    client = client_of(bmc, limits=Limits(deadline=5))
    with pytest.raises(BMCTimeout, match="within 5 s"):
        await client.get(THING)
    await client.get(THING)


async def test_close_logs_out_at_this_bmc_whatever_host_the_location_names(bmc: FakeBMC) -> None:
    """BMCs use arbitrary names for themselves; only the path of the session's location is used."""
    client = client_of(bmc)
    await client.get(THING)
    await client.aclose()
    assert [r.path for r in bmc.seen("DELETE")] == [f"{SESSIONS}/token-1"]
    assert not bmc.tokens
    assert bmc.closed


async def test_close_takes_no_longer_than_its_deadline(bmc: FakeBMC) -> None:
    """A logout that hangs is cancelled."""
    client = client_of(bmc)
    await client.get(THING)
    bmc.fault("DELETE", f"{SESSIONS}/token-1", HANG)
    start = asyncio.get_running_loop().time()
    await client.aclose()
    assert asyncio.get_running_loop().time() - start == pytest.approx(1.5)
    assert bmc.closed


async def test_close_waits_for_a_login_under_way_and_undoes_it(bmc: FakeBMC) -> None:
    """No session remains when the client is closed during the login."""
    client = client_of(bmc)
    reading = asyncio.create_task(client.get(THING))
    await asyncio.sleep(0.015)
    await client.aclose()
    await asyncio.gather(reading, return_exceptions=True)
    assert bmc.seen("POST", SESSIONS)
    assert len(bmc.seen("DELETE")) == 1


async def test_after_close_nothing_is_sent(bmc: FakeBMC) -> None:
    """A controller that still has the client gets an error, not a new session."""
    client = client_of(bmc)
    await client.aclose()
    with pytest.raises(BMCError, match="closed on our side"):
        await client.get(THING)
    assert not bmc.requests


async def test_secrets_are_in_no_repr_and_no_error(bmc: FakeBMC) -> None:
    """Not even when the BMC quotes the password."""
    client = client_of(bmc)
    bmc.fault("POST", SESSIONS, answer(401, complaint(f"Password {PASSWORD} is wrong")))
    with pytest.raises(BMCAuthError) as refused:
        await client.get(THING)
    client.session.forget_refusal()
    await client.get(THING)
    bmc.fault("PATCH", THING, answer(400, complaint(f"The value {PASSWORD} is wrong")))
    with pytest.raises(BMCError) as quoted:
        await client.patch(THING, {"Password": PASSWORD})
    grant = await client.session.grant()
    shown = [repr(x) for x in (client, client.session, grant, refused.value, quoted.value)] + [str(quoted.value)]
    assert "***" in str(quoted.value)
    assert not [text for text in shown if PASSWORD in text or "token-" in text or USER in text]


async def test_no_credentials_means_no_login(bmc: FakeBMC) -> None:
    """A BMC without authentication is used without; another one gives an error that names what is missing."""
    from metal.redfish import RedfishClient

    client = RedfishClient(bmc, origin="http://10.0.0.1:80")
    with pytest.raises(BMCAuthError, match="wants a user name"):
        await client.get(THING)
    assert not bmc.seen("POST")


async def test_a_login_that_a_message_refuses_is_not_repeated_with_basic_authentication(bmc: FakeBMC) -> None:
    """An iLO answers 400 to a wrong password: the message counts, and the password is sent once."""
    bmc.script[("POST", SESSIONS)] = [answer(400, complaint("not authorized", "iLO.2.18.UnauthorizedLoginAttempt"))]
    client = client_of(bmc, classify=lambda ids: BMCAuthError if "iLO.2.18.UnauthorizedLoginAttempt" in ids else None)
    with pytest.raises(BMCAuthError, match="refused the user name or password: not authorized"):
        await client.get(THING)
    assert bmc.seen("GET", THING) == []
