"""A process that acts on an old cache gets Conflict before it can touch a tenant's machine."""

import random
from typing import cast

import msgspec
import pytest

from metal.api.boot_window import Phase
from metal.api.core import EVENT
from metal.api.server import PowerRequest, Server
from metal.bmc.errors import BMCTimeout
from metal.controllers.server.reconciler import ServerReconciler
from metal.controllers.server.scope import Deps
from metal.controllers.shared.scope import Context
from metal.evidence import outstanding
from metal.evidence.keys import KeyStore
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import Conflict
from metal.kube.controller.events import Recorder
from metal.kube.meta.objects import Key
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


class Frozen:
    """A cache that has heard nothing since it saw this server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def get(self, key: Key) -> Server | None:
        return self.server if key.name == self.server.metadata.name else None

    def observe(self, server: Server) -> None:
        self.server = server

    def by_index(self, _name: str, _value: str) -> list[Server]:
        return [self.server]

    def add_handler(self, _handler: object) -> None: ...


def _old_leader(w: World, server: Server) -> ServerReconciler:
    """Another process whose view of the server is this one; of everything else it knows as much as the leader."""
    recorder = Recorder(w.client, EVENT, clock=w.clock, component="old")
    context = Context(w.tap, KINDS, w.clock, random.Random(9), recorder)
    informer = w.runtime.informer
    servers = cast("Informer[Server]", Frozen(server))
    deps = Deps(
        context, w.settings, w.pool, servers, informer(KINDS.claim), informer(KINDS.boot_config), informer(KINDS.bmc),
        informer(KINDS.bmc_secret), informer(KINDS.endpoint), informer(KINDS.maintenance),
        informer(KINDS.evidence, labels=outstanding.selector(KINDS)),
        KeyStore(w.tap, KINDS, w.settings.namespace, "key"),
    )  # fmt: skip
    return ServerReconciler(deps)


async def _claim_whose_override_failed(w: World) -> Server:
    """Its window is open, and the BMC did not answer when it was told to boot from the network."""
    await w.add_server()
    await w.discover()
    w.bmc.refuses["set_network_boot"] = BMCTimeout("no answer")
    await w.add_claim()
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await w.settle()
    await w.config_ready("c1", "default")
    return await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "BMCOperation")


async def _booted_meanwhile(w: World) -> None:
    w.bmc.refuses.clear()
    await w.boot_claim()
    await w.until_true(lambda s: not s.status.waiting_for)
    await w.runtime.stop(grace=0.0)
    w.bmc.calls.clear()


@pytest.mark.behaviour(
    "Server: network boot", "A manager with an outdated cache reads the API before it repeats a network boot."
)
async def test_a_second_try_of_a_network_boot_asks_the_api_first() -> None:
    """To the old leader the first boot is still to be tried again; the tenant, off just now, keeps its disk."""
    async with world() as w:
        old = await _claim_whose_override_failed(w)
        await _booted_meanwhile(w)
        w.bmc.lose_power()
        with pytest.raises(Conflict):
            await _old_leader(w, old).reconcile(Key("s1"))
    assert old.status.boot_window is not None
    assert old.status.boot_window.phase == Phase.OPEN
    assert w.bmc.writes() == []
    assert not w.bmc.boot.is_network


async def test_a_second_try_to_switch_off_asks_the_api_first() -> None:
    """To the old leader the machine is still to be cut off before its first boot; the tenant runs on."""
    async with world() as w:
        old = await _claim_whose_override_failed(w)
        request = PowerRequest(
            target="Off", requested_at=w.clock(), forced_at=w.clock(), deadline=w.clock().replace(year=2027)
        )
        status = msgspec.structs.replace(old.status, boot_window=None, power_request=request)
        await _booted_meanwhile(w)
        with pytest.raises(Conflict):
            await _old_leader(w, msgspec.structs.replace(old, status=status)).reconcile(Key("s1"))
    assert w.bmc.writes() == []


async def test_an_override_that_another_process_has_just_set_is_not_cleared_by_an_old_leader() -> None:
    """To the old leader the server is free and its override a leftover; for the claim it is the way to boot."""
    async with world() as w:
        await w.add_server()
        free = await w.discover()
        w.bmc.refuses["power_on"] = BMCTimeout("no answer")
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        await w.until_true(lambda s: s.status.power_request is not None)
        await w.settle()
        await w.runtime.stop(grace=0.0)
        w.bmc.calls.clear()
        with pytest.raises(Conflict):
            await _old_leader(w, free).reconcile(Key("s1"))
    assert w.bmc.writes() == []
    assert w.bmc.boot.is_network


async def test_a_second_try_goes_through_for_the_leader_itself() -> None:
    """The question costs at most one write for each try, and the claim boots as soon as the BMC answers."""
    async with world() as w:
        await _claim_whose_override_failed(w)
        w.tap.writes.clear()
        w.bmc.refuses.clear()
        await w.until_true(lambda s: s.status.power_state == "On")
        written = w.tap.count("status Server s1") + w.tap.count("patch Server s1")
    assert w.bmc.network_boots == 2
    assert written <= 4
