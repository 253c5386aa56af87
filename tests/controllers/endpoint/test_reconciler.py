"""From a lease to a BMC and its BMCSecret."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from metal.api.core import NAMESPACE
from metal.bmc.errors import BMCForbidden, BMCNotFound, BMCServerError, BMCTLSError, BMCUnreachable
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client.errors import Conflict
from tests.controllers.rack import KINDS, NS, PREFIXES, Rack, condition, rack, ready, soon

pytestmark = pytest.mark.looptime


async def done(r: Rack, name: str = "e1", *, state: str = "Ready", within: float = 10.0) -> Any:
    """Wait for the Endpoint to be in this state."""

    async def check() -> Any:
        found = await r.endpoint(name)
        return found if found.status.state == state else None

    return await soon(check, within=within)


@pytest.mark.behaviour(
    "Endpoint", "A known MAC prefix yields a BMC and a BMCSecret with references, protocol, port and console."
)
async def test_a_known_prefix_yields_a_bmc_and_its_secret() -> None:
    """Name, references, protocol, port, console and the manager's UUID are set."""
    async with rack(started=False) as r:
        r.plug(1)
        await r.start(bmcs=False)
        await r.lease(1)
        endpoint = await done(r)
        bmc, secret = await r.bmc("e1"), await r.secret("e1")
        events = await r.events()
    assert ready(endpoint) == ("True", "BMCCreated")
    assert bmc.spec.endpoint_ref is not None
    assert bmc.spec.endpoint_ref.name == bmc.spec.bmc_secret_ref.name == "e1"
    assert (bmc.spec.protocol.name, bmc.spec.protocol.port, bmc.spec.bmc_uuid) == ("Redfish", 8443, "manager-1")
    assert bmc.spec.console_protocol is not None
    assert bmc.spec.console_protocol.name == "SSH"
    assert secret.data == {"username": b"factory", "password": b"pw-factory"}
    assert bmc.metadata.owner_references == ()
    assert ("e1", "BMCCreated") in events


@pytest.mark.behaviour("Endpoint", "MAC prefixes match in any case and with any separator.")
@pytest.mark.parametrize("spelling", ["A0-B1-C2-00-00-01", "A0B1C2000001"])
async def test_case_and_separators_do_not_matter(spelling: str) -> None:
    """The Endpoint may spell the address differently from the file."""
    async with rack() as r:
        r.plug(1)
        await r.lease(1, mac=spelling)
        await done(r)


@pytest.mark.behaviour(
    "Endpoint", "An unknown MAC prefix creates nothing and emits no Event; a condition gives the reason."
)
async def test_the_lease_of_a_host_is_nothing_special() -> None:
    """An unknown prefix creates nothing and causes no request, retry or Event; a condition has the reason."""
    async with rack() as r:
        await r.lease(1, mac="52:54:00:00:00:01")
        endpoint = await done(r, state="Ignored")
        await asyncio.sleep(3600)
        later, events = await r.endpoint(), await r.events()
        assert not await r.exists(KINDS.bmc, "e1")
    assert ready(endpoint) == ("False", "NotABMC")
    assert later.metadata.resource_version == endpoint.metadata.resource_version
    assert events == []
    assert r.pool.bmcs == {}


@pytest.mark.behaviour(
    "Endpoint", "Credentials of a prefix are tried in order, each once; the accepted ones become the BMCSecret."
)
async def test_credentials_are_tried_in_order() -> None:
    """The second one is accepted: it becomes the BMCSecret, and the first was tried once."""
    async with rack() as r:
        bmc = r.plug(1, password="pw-integrator")
        await r.lease(1)
        await done(r)
        secret = await r.secret("e1")
    assert secret.data["username"] == b"integrator"
    assert bmc.logins == ["pw-factory"]


async def test_refused_credentials_rest_for_an_hour_even_across_a_restart() -> None:
    """Each credential is tried once an hour, since BMCs lock accounts; the message says what to do until then."""
    async with rack() as r:
        bmc = r.plug(1, password="unknown")
        await r.lease(1)
        endpoint = await done(r, state="Error")
        await asyncio.sleep(1800)
        await r.restart()
        await r.user.patch(KINDS.endpoint, "e1", {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(1000)
        within_the_hour = list(bmc.logins)
        await asyncio.sleep(3600)
        assert not await r.exists(KINDS.bmc, "e1")
    assert ready(endpoint) == ("False", "AuthenticationFailed")
    assert "create BMCSecret e1" in condition(endpoint).message
    assert "pw-" not in condition(endpoint).message
    assert within_the_hour == ["pw-factory", "pw-integrator"]
    assert bmc.logins == within_the_hour * 2


async def test_a_secret_made_by_hand_ends_the_rest() -> None:
    """When the BMCSecret is created, the BMC follows at once, without trying credentials."""
    async with rack() as r:
        bmc = r.plug(1, password="known-to-me")
        await r.lease(1)
        await done(r, state="Error")
        tried = len(bmc.logins)
        await r.add_secret("e1", "known-to-me")
        await done(r)
        await soon(lambda: r.exists(KINDS.server, "e1-system-0"))
    assert len(bmc.logins) == tried


async def test_a_changed_file_ends_the_rest_and_offers_only_what_is_new(tmp_path: Path) -> None:
    """Credentials that were refused within the hour are not tried again; a new one is tried within seconds."""
    path = tmp_path / "prefixes.yaml"
    path.write_text(PREFIXES)
    async with rack(started=False) as r:
        r.prefixes = PrefixFile(path)
        await r.start()
        bmc = r.plug(1, password="pw-third")
        await r.lease(1)
        await r.lease(2, mac="52:54:00:00:00:01")
        await done(r, state="Error")
        more = PREFIXES.replace("  console", "  - {username: third, password: pw-third}\n  console")
        path.write_text("macPrefixes: 3")
        await asyncio.sleep(10)
        hint = condition(await r.endpoint("e2")).message
        path.write_text(more)
        await done(r)
        secret = await r.secret("e1")
    assert "must be a list" in hint
    assert secret.data["username"] == b"third"
    assert bmc.logins == ["pw-factory", "pw-integrator"]


@pytest.mark.behaviour("Endpoint", "A changed BMCSecret or BMC is never overwritten by the Endpoint.")
async def test_a_changed_secret_is_never_overwritten() -> None:
    """Neither a rotated password nor a changed field of the BMC is changed by later passes."""
    async with rack(started=False) as r:
        r.plug(1)
        await r.start(bmcs=False)
        await r.lease(1)
        await done(r)
        await r.user.patch(KINDS.bmc_secret, "e1", {"data": {"password": "cm90YXRlZA=="}})
        await r.user.patch(KINDS.bmc, "e1", {"spec": {"protocol": {"port": 9443}, "hostname": "mine"}})
        await r.user.patch(KINDS.endpoint, "e1", {"spec": {"ip": "192.0.2.77"}})
        await r.runtime.stop(grace=0.0)
        await r.start(2, bmcs=False)
        await asyncio.sleep(600)
        bmc, secret = await r.bmc("e1"), await r.secret("e1")
    assert secret.data["password"] == b"rotated"
    assert (bmc.spec.protocol.port, bmc.spec.hostname) == (9443, "mine")


@pytest.mark.parametrize("failure", [BMCUnreachable("refused"), BMCServerError("500"), BMCTLSError("self-signed")])
async def test_a_bmc_that_does_not_answer_is_tried_again(failure: Any) -> None:
    """Nothing is created before a login succeeded; the condition has the reason, and recovery is automatic."""
    async with rack() as r:
        bmc = r.plug(1, failure=failure)
        await r.lease(1)
        endpoint = await done(r, state="Pending")
        await asyncio.sleep(120)
        assert not await r.exists(KINDS.bmc_secret, "e1")
        bmc.failure = None
        await done(r, within=300)
    assert ready(endpoint) == ("False", failure.reason)
    assert "192.0.2.1" in endpoint.status.waiting_for


async def test_retries_of_an_unreachable_bmc_grow_apart() -> None:
    """A device that is unreachable for six hours is tried about a hundred times, not thousands."""
    async with rack() as r:
        bmc = r.plug(1, failure=BMCUnreachable("refused"))
        await r.lease(1)
        await asyncio.sleep(6 * 3600)
    assert 6 * 12 < len(bmc.calls) < 6 * 12 * 2 + 20


async def test_a_bmc_that_hangs_is_cut_off() -> None:
    """A device that accepts the connection and never answers gets a condition with reason Timeout."""
    async with rack() as r:
        r.plug(1, hangs=True)
        await r.lease(1)
        endpoint = await done(r, state="Pending", within=60)
    assert ready(endpoint) == ("False", "Timeout")


@pytest.mark.behaviour("Endpoint", "Of forty Endpoints four with hanging BMCs do not delay the other thirty-six.")
async def test_dead_bmcs_delay_nobody() -> None:
    """One BMC in ten hangs from the start: all others are Ready within two seconds."""
    async with rack() as r:
        for number in range(1, 41):
            r.plug(number, hangs=number % 10 == 0)
            await r.lease(number)

        async def enrolled() -> bool:
            return len((await r.client.list(KINDS.bmc)).items) == 36

        await soon(enrolled, within=1.0)


@pytest.mark.behaviour(
    "Endpoint", "A BMC without a manager is enrolled; credentials that may not read the manager are refused."
)
@pytest.mark.parametrize("failure", [BMCNotFound("no managers"), BMCForbidden("not for you")])
async def test_a_manager_that_cannot_be_found_does_not_block(failure: Any) -> None:
    """Without a manager the systems prove the credentials; an account that may not read counts as refused."""
    async with rack() as r:
        r.plug(1, manager_failure=failure)
        await r.lease(1)
        if isinstance(failure, BMCForbidden):
            await done(r, state="Error")
        else:
            await done(r)
            assert (await r.bmc("e1")).spec.bmc_uuid == ""


@pytest.mark.behaviour(
    "Endpoint",
    "Of two Endpoints with one MAC address the older one counts; the younger is in Error and names it.",
    go="A validating webhook denies the write.",
)
async def test_two_endpoints_with_one_mac_address_are_told_apart_by_age() -> None:
    """The older one gets the BMC; the younger reports it, and takes over when the older is deleted."""
    async with rack() as r:
        r.plug(1)
        r.plug(2)
        await r.lease(1)
        await done(r)
        await asyncio.sleep(5)
        await r.lease(2, mac="A0-B1-C2-00-00-01")
        younger = await done(r, "e2", state="Error")
        assert not await r.exists(KINDS.bmc, "e2")
        await r.user.delete(KINDS.endpoint, "e1")
        await done(r, "e2")
    assert ready(younger) == ("False", "DuplicateMACAddress")
    assert "Endpoint e1" in condition(younger).message


@pytest.mark.behaviour(
    "Endpoint", "An Endpoint that is changed to the MAC address of another is in Error; the other keeps its BMC."
)
async def test_an_endpoint_that_takes_anothers_mac_address_says_so() -> None:
    """The older one keeps its BMC and address, and the change can be reverted."""
    async with rack() as r:
        for number in (1, 2):
            r.plug(number)
            await r.lease(number)
            await done(r, f"e{number}")
            await asyncio.sleep(5)
        await r.user.patch(KINDS.endpoint, "e2", {"spec": {"macAddress": "A0-B1-C2-00-00-01"}})
        changed = await done(r, "e2", state="Error")
        elder, bmc = await r.endpoint("e1"), await r.bmc("e1")
        await r.user.patch(KINDS.endpoint, "e2", {"spec": {"macAddress": "a0:b1:c2:00:00:02"}})
        await done(r, "e2")
    assert ready(changed) == ("False", "DuplicateMACAddress")
    assert "Endpoint e1" in condition(changed).message
    assert (ready(elder)[0], bmc.status.ip) == ("True", "192.0.2.1")


@pytest.mark.behaviour(
    "Endpoint", "Endpoints with empty MAC addresses are invalid and do not conflict with each other."
)
async def test_empty_mac_addresses_do_not_collide() -> None:
    """Each is invalid by itself, with an example of a valid one."""
    async with rack() as r:
        for name in ("e1", "e2"):
            await r.user.create(KINDS.endpoint, {"metadata": {"name": name}, "spec": {"ip": "192.0.2.1"}})
        for name in ("e1", "e2"):
            endpoint = await done(r, name, state="Error")
            assert ready(endpoint) == ("False", "MACAddressInvalid")
            assert "00:1a:2b" in condition(endpoint).message


async def test_an_endpoint_without_an_address_waits_for_one() -> None:
    """The lease may set the address later."""
    async with rack() as r:
        r.plug(1)
        await r.user.create(KINDS.endpoint, {"metadata": {"name": "e1"}, "spec": {"macAddress": "a0:b1:c2:00:00:01"}})
        endpoint = await done(r, state="Pending")
        await r.user.patch(KINDS.endpoint, "e1", {"spec": {"ip": "192.0.2.1"}})
        await done(r)
    assert ready(endpoint) == ("False", "AddressMissing")


async def test_a_bmc_that_was_written_by_hand_is_not_doubled() -> None:
    """When a BMC of another name has this MAC address, nothing is created."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await r.lease(1)
        endpoint = await done(r, state="Ignored")
        assert not await r.exists(KINDS.bmc, "e1")
    assert ready(endpoint) == ("False", "ManagedByOtherBMC")


@pytest.mark.behaviour("Endpoint", "A changed address of an Endpoint is copied to its BMC.")
async def test_a_moved_lease_reaches_the_bmc() -> None:
    """The BMC gets the new address and is contacted there."""
    async with rack() as r:
        r.plug(1)
        moved = r.plug(9)
        await r.lease(1)
        await done(r)
        await r.user.patch(KINDS.endpoint, "e1", {"spec": {"ip": "192.0.2.9"}})

        async def followed() -> bool:
            return (await r.bmc("e1")).status.ip == "192.0.2.9"

        await soon(followed)
    assert "systems" in moved.calls


@pytest.mark.behaviour(
    "Endpoint", "`operation=ignore` on an Endpoint stops all requests and writes until it is removed."
)
async def test_ignored_endpoints_are_left_alone() -> None:
    """operation=ignore: nothing is requested, created or written until it is removed."""
    async with rack() as r:
        r.plug(1)
        await r.runtime.stop(grace=0.0)
        await r.lease(1)
        await r.operate(KINDS.endpoint, "e1", "ignore")
        await r.start(3)
        await asyncio.sleep(60)
        assert (await r.endpoint()).status.state == ""
        await r.user.patch(KINDS.endpoint, "e1", {"metadata": {"annotations": {KINDS.key("operation"): None}}})
        await done(r)


@pytest.mark.behaviour(
    "Endpoint",
    "Deleting an Endpoint keeps its BMC and BMCSecret, and removes owner references that the Go operator wrote.",
)
async def test_deleting_an_endpoint_leaves_bmc_and_secret() -> None:
    """Owner references and a finalizer of the Go operator delete or delay nothing."""
    async with rack(started=False) as r:
        r.plug(1)
        endpoint = await r.lease(1)
        owner = {"apiVersion": KINDS.endpoint.api_version, "kind": "Endpoint", "name": "e1",
                 "uid": endpoint.metadata.uid}  # fmt: skip
        namespace = await r.client.get(NAMESPACE, NS)
        other = {"apiVersion": "v1", "kind": "Namespace", "name": NS, "uid": namespace.metadata.uid}
        await r.user.patch(KINDS.endpoint, "e1", {"metadata": {"finalizers": [KINDS.key("endpoint")]}})
        await r.add_secret("e1", "pw-factory")
        await r.user.patch(KINDS.bmc_secret, "e1", {"metadata": {"ownerReferences": [owner]}})
        spec = {
            "endpointRef": {"name": "e1"},
            "bmcSecretRef": {"name": "e1"},
            "protocol": {"name": "Redfish", "port": 1},
        }
        await r.user.create(KINDS.bmc, {"metadata": {"name": "e1", "ownerReferences": [owner, other]}, "spec": spec})
        await r.user.delete(KINDS.endpoint, "e1")
        await r.start(bmcs=False)
        await asyncio.sleep(60)
        assert not await r.exists(KINDS.endpoint, "e1")
        bmc, secret = await r.bmc("e1"), await r.secret("e1")
    assert [reference.uid for reference in bmc.metadata.owner_references] == [namespace.metadata.uid]
    assert secret.metadata.owner_references == ()


async def test_killed_between_secret_and_bmc_it_goes_on() -> None:
    """The BMCSecret that was created is used; no credentials are tried again."""
    async with rack(started=False) as r:
        device = r.plug(1)
        await r.start(bmcs=False)
        create = r.client.create

        async def killed(kind: Any, obj: Any) -> Any:
            if kind.kind == "BMC":
                raise asyncio.CancelledError
            return await create(kind, obj)

        r.client.create = killed  # type: ignore[method-assign]  # the process dies right here
        await r.lease(1)
        await soon(lambda: r.exists(KINDS.bmc_secret, "e1"))
        assert not await r.exists(KINDS.bmc, "e1")
        await r.runtime.stop(grace=0.0)
        r.client.create = create  # type: ignore[method-assign]  # the next process
        asked = len(device.calls)
        await r.start(2, bmcs=False)
        await done(r)
        assert await r.exists(KINDS.bmc, "e1")
    assert len(device.calls) == asked


async def test_a_conflict_is_tried_again_quietly() -> None:
    """Another client changes the Endpoint while its status is written."""
    async with rack() as r:
        r.plug(1)
        write, failures = r.client.patch_status, [Conflict("changed"), Conflict("changed")]

        async def contested(*arguments: Any, **options: Any) -> Any:
            if failures:
                raise failures.pop()
            return await write(*arguments, **options)

        r.client.patch_status = contested  # type: ignore[method-assign]  # the API is busy
        await r.lease(1)
        await done(r)
    assert failures == []
