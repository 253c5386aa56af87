"""The event receiver: authentication of deliveries, rate of status writes, and refusals."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.errors import ServerError, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import LoopClock, system_clock
from metal.machine.boot_window import digest
from metal.machineapi.bmcevents.receiver import EventReceiver, ReceiverSettings
from metal.machineapi.bmcevents.routes import routes
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.server import Limits, make_app, serve
from tests.controllers.rack import START
from tests.crds import crds

KINDS = kinds()
TOKEN, OTHER = "b1-token-that-nobody-knows", "b2-token"


class World:
    """The API with two BMCs, and a receiver."""

    def __init__(self, api: EmbeddedAPI, client: Client, clock: Any) -> None:
        self.client, self.clock, self.registry = client, clock, CollectorRegistry()
        self.runtime = Runtime(api.client(), rng=random.Random(1))
        self.refusals = Refusals(clock, registry=self.registry)
        informer = self.runtime.informer(KINDS.bmc)
        self.receiver = EventReceiver(
            client, KINDS, informer, self.refusals, clock=clock,
            settings=ReceiverSettings(body=1000), registry=self.registry,
        )  # fmt: skip
        self.runtime.background("events", self.receiver.run)

    async def add(self, name: str, token: str) -> None:
        """A BMC with a subscription of this token; without a token it has none."""
        protocol = {"name": "Redfish", "port": 443}
        spec = {"access": {"ip": "192.0.2.1"}, "bmcSecretRef": {"name": "s"}, "protocol": protocol}
        await self.client.create(KINDS.bmc, {"metadata": {"name": name}, "spec": spec})
        status = {"eventTokenDigest": digest(token) if token else "", "eventsSubscriptionLink": "/s/1"}
        await self.client.patch_status(KINDS.bmc, name, {"status": status})

    async def told(self, name: str = "b1") -> Any:
        """The lastEventTime in the BMC's status."""
        return (await self.client.get(KINDS.bmc, name)).status.last_event_time


@asynccontextmanager
async def world(*, started: bool = True, virtual: bool = True) -> AsyncIterator[World]:
    clock = LoopClock(START) if virtual else system_clock
    api = EmbeddedAPI(None, clock, rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    made = World(api, api.client(), clock)
    for name, token in (("b1", TOKEN), ("b2", OTHER), ("b3", "")):
        await made.add(name, token)
    if started:
        await made.runtime.start()
    try:
        yield made
    finally:
        await made.runtime.stop(grace=0.0)
        await api.stop()


@pytest.mark.looptime
async def test_an_event_is_noted_in_the_status_of_its_bmc_and_of_no_other() -> None:
    """Only lastEventTime is written; every replica and the Server controller see it there."""
    async with world() as w:
        assert w.receiver.admit("b1", TOKEN, "192.0.2.1") is None
        assert w.receiver.accept("b1").status == 200
        await asyncio.sleep(0.5)
        assert await w.told("b1") is not None
        assert await w.told("b2") is None


@pytest.mark.behaviour("BMC", "Event requests without the BMC's own token get the same refusal and are counted.")
@pytest.mark.looptime
@pytest.mark.parametrize(
    ("name", "token"), [("b1", "guess"), ("b1", ""), ("b1", OTHER), ("b2", TOKEN), ("b3", ""), ("b9", TOKEN), ("", "")]
)
async def test_a_neighbour_wakes_nobody_and_learns_nothing(name: str, token: str) -> None:
    """An unknown BMC, no subscription, a wrong token and another BMC's token get the same counted refusal."""
    async with world() as w:
        refusal = w.receiver.admit(name, token, "192.0.2.66")
        counted = w.registry.get_sample_value(
            "metal_boot_refusals_total", {"endpoint": "events", "reason": "EventTokenInvalid"}
        )
    assert refusal is not None
    assert (refusal.status, refusal.body) == (403, b"forbidden\n")
    assert counted == 1


@pytest.mark.looptime
async def test_a_bmc_that_raves_costs_a_note_every_two_seconds() -> None:
    """Any number of events causes one status write in two seconds; the last event is recorded as well."""
    async with world() as w:
        write, writes = w.client.patch_status, []

        async def counted(*arguments: Any, **options: Any) -> Any:
            writes.append(w.clock())
            return await write(*arguments, **options)

        w.client.patch_status = counted  # type: ignore[method-assign]  # counts
        for _ in range(1000):
            w.receiver.accept("b1")
            await asyncio.sleep(0.01)
        last = w.clock()
        await asyncio.sleep(3)
        noted = await w.told()
    assert 5 <= len(writes) <= 7
    assert noted >= last


@pytest.mark.looptime
async def test_a_note_that_the_api_does_not_take_is_tried_again() -> None:
    """A failed write is retried, and a BMC that was deleted meanwhile is dropped."""
    async with world() as w:
        write, failures = w.client.patch_status, [ServerError("ill"), ServerError("ill")]

        async def ill(*arguments: Any, **options: Any) -> Any:
            if failures:
                raise failures.pop()
            return await write(*arguments, **options)

        w.client.patch_status = ill  # type: ignore[method-assign]  # the API is ill for a moment
        w.receiver.accept("b1")
        w.receiver.accept("gone")
        await asyncio.sleep(10)
        assert await w.told() is not None
    assert failures == []


@pytest.mark.looptime
async def test_while_bmcs_are_not_known_yet_nobody_is_refused() -> None:
    """The answer is 503: a BMC might end its subscription after a refusal."""
    async with world(started=False) as w:
        with pytest.raises(Unavailable):
            w.receiver.admit("b1", TOKEN, "192.0.2.1")


async def test_over_http_only_the_right_path_method_and_size_is_taken() -> None:
    """Without the token a body is not read; its content is never used."""
    async with world(virtual=False) as w:
        app = make_app(routes(w.receiver), w.refusals, Limits(body_seconds=0.5))
        listening = await serve(app, "127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{listening.port}") as http:
                statuses = [
                    await _status(http, method, path, body)
                    for method, path, body in (
                        ("POST", f"/events/b1/{TOKEN}", b"{}"), ("POST", f"/events/b1/{TOKEN}", b"no JSON at all"),
                        ("POST", f"/events/b1/{TOKEN}", b"x" * 1001), ("POST", "/events/b1/guess", b"{}"),
                        ("GET", f"/events/b1/{TOKEN}", b""), ("DELETE", f"/events/b1/{TOKEN}", b""),
                        ("POST", "/events/b1", b"{}"), ("POST", f"/events/b1/{TOKEN}/more", b"{}"),
                        ("POST", f"/events/b1/{'x' * 3000}", b"{}"),
                    )
                ]  # fmt: skip
        finally:
            await listening.aclose()
    assert statuses == [200, 200, 413, 403, 405, 405, 404, 404, 414]


async def _status(http: aiohttp.ClientSession, method: str, path: str, body: bytes) -> int:
    async with http.request(method, path, data=body) as answer:
        return answer.status
