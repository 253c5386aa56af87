"""The pool."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from metal.bmc.errors import BMCAuthError, BMCBusy, BMCTimeout, BMCUnreachable
from metal.bmc.pool import BMCEndpoint, Pool
from metal.bmc.redfish.pool import RedfishPool, http_transport
from tests.bmc.redfish.machine import fake
from tests.redfish.fakes import HANG, PASSWORD, SESSIONS, SYSTEM, USER, FakeBMC, answer, complaint

pytestmark = pytest.mark.looptime
ACCESS = BMCEndpoint("bmc-1", "10.0.0.1", username=USER, password=PASSWORD)


class Fleet:
    """Creates fake BMCs by address and records the endpoints."""

    def __init__(self) -> None:
        self.bmcs: dict[str, FakeBMC] = {}
        self.made: list[BMCEndpoint] = []

    def __call__(self, access: BMCEndpoint) -> FakeBMC:
        self.made.append(access)
        return self.bmcs.setdefault(access.address, fake())


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_the_redfish_pool_is_a_pool(fleet: Fleet) -> None:
    """mypy checks the signatures here."""
    pool: Pool = RedfishPool(fleet)
    assert repr(pool) == "<RedfishPool 0 BMCs 0 requests>"


async def test_one_access_has_one_client(fleet: Fleet) -> None:
    """Controllers share the session; nothing is sent before the first request."""
    pool = RedfishPool(fleet)
    assert pool.get(ACCESS) is pool.get(replace(ACCESS))
    assert len(fleet.made) == 1
    assert pool.total_requests == 0


async def test_changed_credentials_replace_the_client_and_log_the_old_one_out(fleet: Fleet) -> None:
    """A rotated password is used at once."""
    pool = RedfishPool(fleet)
    await pool.get(ACCESS).systems()
    old = fleet.bmcs["10.0.0.1"]
    wrong = replace(ACCESS, password="wrong")
    with pytest.raises(BMCAuthError):
        await pool.get(wrong).systems()
    await asyncio.sleep(1)
    assert [request.path for request in old.seen("DELETE")] == [f"{SESSIONS}/token-1"]
    await pool.get(ACCESS).systems()


async def test_silent_and_paused_bmcs_are_counted(fleet: Fleet) -> None:
    """One that does not answer until it is dropped, and one that asked for a pause until that is over."""
    registry = CollectorRegistry()
    pool = RedfishPool(fleet, registry=registry)
    for address, fault in (("10.0.0.1", HANG), ("10.0.0.2", answer(503, retry_after="30"))):
        fleet.bmcs[address] = fake()
        fleet.bmcs[address].fault("GET", SYSTEM, fault)
        with pytest.raises((BMCTimeout, BMCBusy)):
            await pool.get(replace(ACCESS, key=address, address=address)).system(SYSTEM)

    def counted() -> tuple[float | None, float | None]:
        return registry.get_sample_value("metal_bmcs_silent"), registry.get_sample_value("metal_bmcs_paused")

    assert counted() == (1, 1)
    await pool.drop("10.0.0.1")
    assert counted() == (0, 1)
    await asyncio.sleep(31)
    assert counted() == (0, 0)


async def test_a_remembered_refusal_is_for_these_credentials_only(fleet: Fleet) -> None:
    """A wrong password is sent once; a corrected one works without waiting for the cooldown."""
    pool = RedfishPool(fleet)
    wrong = replace(ACCESS, password="wrong")
    for _ in range(3):
        with pytest.raises(BMCAuthError):
            await pool.get(wrong).systems()
    assert len(fleet.bmcs["10.0.0.1"].seen("POST", SESSIONS)) == 1
    assert len(await pool.get(ACCESS).systems()) == 1


async def test_drop_logs_out_and_forgets(fleet: Fleet) -> None:
    """A later get creates a new client; a dropped client cannot be used."""
    pool = RedfishPool(fleet)
    view = pool.get(ACCESS)
    await view.systems()
    await pool.drop("bmc-1")
    await pool.drop("bmc-1")
    assert fleet.bmcs["10.0.0.1"].closed
    assert not fleet.bmcs["10.0.0.1"].tokens
    with pytest.raises(BMCUnreachable, match="closed on our side"):
        await view.system(SYSTEM)
    assert pool.get(ACCESS) is not view


async def test_closing_takes_less_than_two_seconds_whatever_hangs(fleet: Fleet) -> None:
    """Ten BMCs, three of which do not answer the logout: seven log out, all are closed."""
    pool = RedfishPool(fleet)
    for n in range(10):
        access = replace(ACCESS, key=f"bmc-{n}", address=f"10.0.0.{n}")
        await pool.get(access).systems()
        if n < 3:
            fleet.bmcs[access.address].fault("DELETE", f"{SESSIONS}/token-1", HANG)
    start = asyncio.get_running_loop().time()
    await pool.aclose()
    assert asyncio.get_running_loop().time() - start < 2
    assert all(bmc.closed for bmc in fleet.bmcs.values())
    assert sum(1 for bmc in fleet.bmcs.values() if not bmc.tokens) == 7


async def test_a_dead_bmc_delays_no_other(fleet: Fleet) -> None:
    """One hangs, the other answers in its usual time."""
    pool = RedfishPool(fleet)
    dead, alive = (replace(ACCESS, key=name, address=name) for name in ("dead", "alive"))
    pool.get(dead)
    fleet.bmcs["dead"].fault("GET", "/redfish/v1/", HANG)
    waiting = asyncio.create_task(pool.get(dead).systems())
    start = asyncio.get_running_loop().time()
    await pool.get(alive).systems()
    assert asyncio.get_running_loop().time() - start < 1
    waiting.cancel()


async def test_requests_are_counted_by_bmc_and_in_metrics_without_names(fleet: Fleet) -> None:
    """Counts survive a drop; labels are vendor, operation, method and result."""
    registry = CollectorRegistry()
    pool = RedfishPool(fleet, registry=registry)
    await pool.get(ACCESS).systems()
    await pool.drop("bmc-1")
    assert pool.requests == {"bmc-1": 5}
    assert pool.total_requests == 5
    labels = {"vendor": "unknown", "operation": "systems", "method": "GET", "result": "2xx"}
    assert registry.get_sample_value("metal_redfish_requests_total", labels) == 3
    labels = {"vendor": "other", "operation": "close", "method": "DELETE", "result": "2xx"}
    assert registry.get_sample_value("metal_redfish_requests_total", labels) == 1


async def test_ipv6_addresses_are_bracketed_in_messages(fleet: Fleet) -> None:
    """[fd00::1]:443, as everywhere."""
    pool = RedfishPool(fleet)
    access = replace(ACCESS, address="fd00::1")
    assert "https://[fd00::1]:443" in repr(pool.get(access))


async def test_an_access_that_cannot_work_is_refused_with_the_field() -> None:
    """Before any request."""
    pool = RedfishPool()
    with pytest.raises(ValueError, match="fingerprint must be"):
        pool.get(replace(ACCESS, fingerprint="abc"))
    transport = http_transport(replace(ACCESS, address="fd00::1"))
    assert repr(transport) == "<HTTPTransport https://[fd00::1]>"


async def test_no_secret_shows(fleet: Fleet) -> None:
    """In the repr of pool, client, endpoint or error."""
    pool = RedfishPool(fleet)
    view = pool.get(ACCESS)
    await view.systems()
    shown = " ".join(map(repr, (pool, view, ACCESS, vars(pool))))
    assert PASSWORD not in shown
    assert "token-1" not in shown


async def test_the_clients_of_a_pool_know_the_messages_of_vendors(fleet: Fleet) -> None:
    """400 while the host is in POST is "later", so that it is repeated."""
    fleet.bmcs["10.0.0.1"] = bmc = fake()
    post = complaint("the system BIOS is in POST", "iLO.2.37.UnableToModifyDuringSystemPOST")
    bmc.script[("PATCH", SYSTEM)] = [answer(400, post)]
    with pytest.raises(BMCBusy, match="in POST"):
        await RedfishPool(fleet).get(ACCESS).set_network_boot(SYSTEM)
