"""A pass that the API refuses: what its object's status says, and what happens afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from metal.api.bmc import TLSPolicy
from metal.api.common import LocalRef
from metal.api.core import EVENT
from metal.api.ipxe import IPXEBootConfig, IPXEBootConfigSpec
from metal.api.meta import Condition
from metal.bmc.errors import BMCServerError
from metal.boot.butane import Butane
from metal.controllers.shared.access import authorities
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.evidence.keys import KeyStore
from metal.kube.client.errors import AlreadyExists, ApiError, Forbidden, Invalid, ServerError
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import Key
from metal.machineapi.bootserver.bootable import Bootables
from tests.controllers.maintenance.test_queue import until
from tests.controllers.rack import rack
from tests.controllers.server.steps import maintain
from tests.controllers.tap import Tap
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime
QUOTA = Forbidden('secrets "s1" is forbidden: exceeded quota: secrets=10')

_ACCESS = {
    "access": {"ip": "192.0.2.2", "macAddress": "a0:b1:c2:00:00:02"},
    "bmcSecretRef": {"name": "b1"},
    "protocol": {"name": "Redfish", "port": 443},
}
RULE = {
    "conditions": [{"type": "NetworkReady", "requiredStatus": "True"}],
    "enforcementMode": "Continuous",
    "taint": {"key": "example.com/network", "effect": "NoBind"},
    "serverSelector": {"matchLabels": {"rack": "9"}},
}


def _refuse(what: str, error: ApiError) -> Callable[[str, str], Awaitable[None]]:
    async def trap(write: str, when: str) -> None:
        if write.startswith(what) and when == "before":
            raise error

    return trap


def _reconciled(conditions: tuple[Condition, ...]) -> Condition | None:
    return find(conditions, "Reconciled")


async def _reasons(w: World, reason: str) -> list[str]:
    return [event.message for event in await w.events() if event.reason == reason]


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A request that the API refuses is reported in the condition Reconciled with the API's words, and in one Event.",
)
@pytest.mark.parametrize(
    "error", [QUOTA, AlreadyExists("a webhook owns this name"), ServerError("etcd is full")], ids=lambda one: one.reason
)
async def test_a_refusal_in_mid_pass_is_reported_and_ends(error: ApiError) -> None:
    """A quota stops the discovery: the Server says so with one Event, and goes on when it is raised."""
    async with world() as w:
        w.tap.trap = _refuse("apply ServerBootConfiguration", error)
        await w.add_server()
        await asyncio.sleep(600)
        failing = await w.server()
        events = await _reasons(w, error.reason)
        writes = w.tap.count("status Server s1")
        w.tap.trap = None
        await asyncio.sleep(70)
        after = await w.server()
    said = _reconciled(failing.status.conditions)
    assert said is not None
    assert (said.status, said.reason) == ("False", error.reason)
    assert error.message in said.message
    assert len(events) == 1
    assert writes <= 12
    ended = _reconciled(after.status.conditions)
    assert ended is not None
    assert ended.status == "True"
    assert after.status.state == "Discovery"


async def test_what_the_pass_learned_is_kept() -> None:
    """The power that the BMC showed is in the status although the rest of the pass was refused."""
    async with world() as w:
        w.tap.trap = _refuse("apply Secret", QUOTA)
        await w.add_server()
        await asyncio.sleep(30)
        server = await w.server()
    assert server.status.power_state == "Off"
    assert server.status.manufacturer == "Contoso"
    assert server.status.observed_generation < server.metadata.generation or server.status.state == "Initial"


async def test_an_operation_on_the_bmc_that_succeeded_is_recorded_although_the_pass_was_refused() -> None:
    """The inventory could not be read, then it can; the API refuses the step after it."""
    async with world() as w:
        w.bmc.refuses["inventory"] = BMCServerError("500")
        w.tap.trap = _refuse("apply Secret", QUOTA)
        await w.add_server()
        before = await w.until_true(lambda s: bool(s.status.failing_operations))
        w.bmc.refuses.clear()
        after = await w.until_true(lambda s: not s.status.failing_operations, within=120)
    assert [known.operation for known in before.status.failing_operations] == ["read-inventory"]
    said = _reconciled(after.status.conditions)
    assert said is not None
    assert said.status == "False"


async def test_a_step_that_was_refused_is_repeated_until_it_succeeds() -> None:
    """An Available Server whose discovery configuration cannot be removed says why, and removes it when it may."""
    async with world() as w:
        await w.add_server()
        await w.boot_probe()
        w.tap.trap = _refuse("delete ServerBootConfiguration", QUOTA)
        await asyncio.sleep(60)
        server = await w.server()
        await asyncio.sleep(1)
        w.tap.trap = None
        after = await w.until_true(lambda s: s.spec.boot_configuration_ref is None)
    said = _reconciled(server.status.conditions)
    assert said is not None
    assert said.status == "False"
    assert after.status.state == "Available"


async def test_a_claim_says_what_the_api_refused() -> None:
    """The boot configuration of a claim cannot be written: the claim shows the API's words."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.tap.trap = _refuse("apply ServerBootConfiguration", QUOTA)
        await w.add_claim()
        claim = await w.until_claim(lambda c: _reconciled(c.status.conditions) is not None)
        w.tap.trap = None
        after = await w.until_claim(
            lambda c: (one := _reconciled(c.status.conditions)) is not None and one.status == "True"
        )
    said = _reconciled(claim.status.conditions)
    assert said is not None
    assert "exceeded quota" in said.message
    assert after.status.phase == "Bound"


async def test_an_api_that_is_overloaded_is_not_asked_for_more_by_reports() -> None:
    """A request that fails for some seconds leaves neither a condition nor an Event."""
    async with world() as w:
        w.tap.trap = _refuse("apply Secret", ServerError("etcd is full"))
        await w.add_server()
        await asyncio.sleep(15)
        w.tap.trap = None
        await w.until("Discovery")
        server = await w.server()
        events = await _reasons(w, "InternalError")
    assert _reconciled(server.status.conditions) is None
    assert not events


async def test_an_endpoint_says_that_the_api_refused_its_bmc_secret() -> None:
    """The BMCSecret cannot be written: the Endpoint shows the reason, and goes on when it may be."""
    async with rack(started=False) as r:
        r.plug(1)
        r.client = tap = Tap(r.client)
        tap.trap = _refuse("create BMCSecret", QUOTA)
        await r.start()
        await r.lease(1)
        await asyncio.sleep(30)
        failing = _reconciled((await r.endpoint()).status.conditions)
        tap.trap = None
        await asyncio.sleep(70)
        after = await r.endpoint()
    assert failing is not None
    assert (failing.status, "Forbidden, HTTP status 403" in failing.message) == ("False", True)
    assert after.status.state == "Ready"


async def test_a_bmc_says_what_the_api_refused() -> None:
    """The Server cannot be created: the BMC shows the API's words, and creates it when it may."""
    async with rack(started=False) as r:
        r.plug(1)
        r.client = tap = Tap(r.client)
        tap.trap = _refuse("create Server", QUOTA)
        await r.start()
        await r.lease(1)
        await asyncio.sleep(30)
        failing = _reconciled((await r.bmc("e1")).status.conditions)
        tap.trap = None
        await asyncio.sleep(70)
        after = _reconciled((await r.bmc("e1")).status.conditions)
    assert failing is not None
    assert (failing.status, "exceeded quota" in failing.message) == ("False", True)
    assert after is not None
    assert after.status == "True"


async def test_a_maintenance_says_what_the_api_refused() -> None:
    """The server cannot be reserved for it: the maintenance shows the API's words."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.tap.trap = _refuse("patch Server s1", QUOTA)
        await maintain(w)
        await asyncio.sleep(30)
        failing = _reconciled((await w.client.get(KINDS.maintenance, "m1", "default")).status.conditions)
        w.tap.trap = None
        await until(w, "InMaintenance", "InMaintenance")
    assert failing is not None
    assert (failing.status, "exceeded quota" in failing.message) == ("False", True)


async def test_a_maintenance_that_is_being_deleted_says_what_the_api_refused() -> None:
    """The server cannot be released: the maintenance shows the API's words until it can."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        w.tap.trap = _refuse("patch Server s1", QUOTA)
        await maintain(w, on=False)
        await asyncio.sleep(30)
        failing = _reconciled((await w.client.get(KINDS.maintenance, "m1", "default")).status.conditions)
        w.tap.trap = None
        await w.until("Available", within=120)
    assert failing is not None
    assert (failing.status, "exceeded quota" in failing.message) == ("False", True)


async def test_a_bmc_secret_says_that_the_api_refused() -> None:
    """stringData cannot be moved: the BMCSecret shows the reason beside the state of its credentials."""
    async with rack(started=False) as r:
        r.client = tap = Tap(r.client)
        tap.trap = _refuse("patch BMCSecret", QUOTA)
        await r.start()
        await r.user.create(KINDS.bmc_secret, {"metadata": {"name": "s"}, "stringData": {"username": "root"}})
        await asyncio.sleep(30)
        secret = await r.secret("s")
        tap.trap = None
        await asyncio.sleep(70)
        after = await r.secret("s")
    assert secret.status is not None
    assert after.status is not None
    said, ended = _reconciled(secret.status.conditions), _reconciled(after.status.conditions)
    assert said is not None
    assert (said.status, said.reason) == ("False", "Forbidden")
    assert "Forbidden, HTTP status 403" in said.message
    assert "has no password" in secret.status.waiting_for
    assert ended is not None
    assert (ended.status, after.string_data) == ("True", {})


LEAK = "hunter2"
LEAKING = (
    ApiError(f'admission webhook "w" denied the request: {LEAK}', code=400, reason=LEAK),
    Invalid(
        f'BMCSecret "e1" is invalid: data.password: Invalid value: "{LEAK}"',
        details={"causes": [{"field": "data.password", "message": LEAK}, {"field": LEAK}]},
    ),
)


@pytest.mark.behaviour(
    "BMCSecret",
    "A refusal of the API is shown with reason, HTTP status and paths of fields, not with its words, which may repeat "
    "a password.",
)
@pytest.mark.parametrize("error", LEAKING, ids=["webhook", "schema"])
@pytest.mark.parametrize("request_", ["patch BMCSecret b1", "status BMCSecret b1", "create BMCSecret"])
async def test_words_of_the_api_about_a_bmc_secret_are_not_shown(request_: str, error: ApiError) -> None:
    """A webhook and a schema error repeat the password in message, reason and field."""
    async with rack(started=False) as r:
        r.plug(1)
        r.plug(2)
        r.client = tap = Tap(r.client)
        tap.trap = _refuse(request_, error)
        with structlog.testing.capture_logs() as logs:
            await r.start()
            await r.lease(1)
            await r.add_secret("b1", LEAK)
            await r.user.create(KINDS.bmc, {"metadata": {"name": "b1"}, "spec": _ACCESS})
            await asyncio.sleep(100)
        shown: list[object] = [*logs, *(await r.client.list(EVENT)).items]
        shown += [(await r.secret("b1")).status, (await r.bmc("b1")).status, (await r.endpoint()).status]
    assert "HTTP status" in repr(shown)
    assert ("data.password" in repr(shown)) == isinstance(error, Invalid)
    assert LEAK not in repr(shown)


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A refusal of the API for a Secret, such as that of an Ignition, is shown with reason, HTTP status and paths of "
    "fields, not with its words.",
)
@pytest.mark.parametrize("error", LEAKING, ids=["webhook", "schema"])
async def test_words_of_the_api_about_a_secret_are_not_shown(error: ApiError) -> None:
    """The Secret with the probe's Ignition, which has a token, is refused with its content in the words."""
    async with world() as w:
        w.tap.trap = _refuse("apply Secret", error)
        with structlog.testing.capture_logs() as logs:
            await w.add_server()
            await asyncio.sleep(100)
        shown: list[object] = [*logs, *await w.events(), (await w.server()).status]
    assert "HTTP status" in repr(shown)
    assert LEAK not in repr(shown)


class _Refusing:
    """A client whose answers repeat a secret."""

    async def get(self, *_: object) -> object:
        raise LEAKING[0]


async def test_words_of_the_api_are_not_shown_when_a_secret_is_read() -> None:
    """An Ignition at its boot, the signing key of evidence and the certificates of a BMC."""
    client: Any = _Refusing()
    context: Any = SimpleNamespace(client=client)
    config = IPXEBootConfig(spec=IPXEBootConfigSpec(ignition_secret_ref=LocalRef(name="s")))
    reads = (
        Bootables(client, KINDS, Butane()).ignition(config),
        KeyStore(client, KINDS, NS, "key").signing_key(),
        authorities.read(context, NS, TLSPolicy(ca_secret_ref=LocalRef(name="s")), BMCEndpointDefaults()),
    )
    for read in reads:
        with pytest.raises(ApiError, match="HTTP status 400") as refused:
            await read
        assert LEAK not in repr(refused.value)


async def test_a_readiness_rule_says_what_the_api_refused() -> None:
    """Its finalizer cannot be written: the rule shows the API's words."""
    async with world() as w:
        w.tap.trap = _refuse("patch ServerReadinessRule", QUOTA)
        await w.client.create(KINDS.readiness_rule, {"metadata": {"name": "network"}, "spec": RULE})
        await asyncio.sleep(30)
        failing = _reconciled((await w.client.get(KINDS.readiness_rule, "network")).status.conditions)
        w.tap.trap = None
        await asyncio.sleep(70)
        after = _reconciled((await w.client.get(KINDS.readiness_rule, "network")).status.conditions)
    assert failing is not None
    assert (failing.status, "exceeded quota" in failing.message) == ("False", True)
    assert after is not None
    assert after.status == "True"


async def test_nothing_is_remembered_of_an_object_that_was_deleted() -> None:
    """The failures of a claim and the own writes of a readiness rule are dropped with the objects."""
    async with world() as w:
        await w.client.create(KINDS.readiness_rule, {"metadata": {"name": "network"}, "spec": RULE})
        await w.add_server()
        await w.discover()
        w.tap.trap = _refuse("apply ServerBootConfiguration", ServerError("etcd is full"))
        await w.add_claim()
        await asyncio.sleep(5)
        before = list(w.context.failing), repr(w.context.own_writes(KINDS.readiness_rule))
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.client.delete(KINDS.readiness_rule, "network")
        await asyncio.sleep(60)
        after = list(w.context.failing), repr(w.context.own_writes(KINDS.readiness_rule))
    assert before == ([("ServerClaim", Key("c1", "default"))], "<OwnWrites objects=1>")
    assert after == ([], "<OwnWrites objects=0>")
