"""Which BMCs are contacted and enrolled: networks, approvals, expected ones, and passwords without encryption."""

import asyncio
import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from metal.controllers.endpoint.mac_prefixes import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.access.enrolment_policy import EnrolmentPolicy, plain
from tests.controllers.rack import KINDS, Rack, condition, rack, ready, soon, system

pytestmark = pytest.mark.looptime
APPROVAL = KINDS.key("approval")


def policy(*networks: str, manual: bool = False, expected: tuple[str, ...] = ()) -> BMCEndpointDefaults:
    made = EnrolmentPolicy(tuple(map(ipaddress.ip_network, networks)), manual, frozenset(map(plain, expected)))
    return BMCEndpointDefaults(policy=made)


async def until(r: Rack, state: str, name: str = "e1") -> Any:
    """Wait for the BMC to be in this state."""

    async def check() -> Any:
        found = await r.bmc(name) if await r.exists(KINDS.bmc, name) else None
        return found if found is not None and found.status.state == state else None

    return await soon(check)


async def approve(r: Rack, name: str = "e1") -> None:
    await r.user.patch(KINDS.bmc, name, {"metadata": {"annotations": {APPROVAL: "approved"}}})


@pytest.mark.behaviour("Endpoint", "Nothing is sent to an address outside of enrolment.networks; a condition says so.")
async def test_a_lease_outside_of_the_networks_of_bmcs_is_not_contacted() -> None:
    """No certificate is read and no password sent; the condition names the option."""
    async with rack(started=False) as r:
        r.defaults = replace(policy("198.51.100.0/24"), trust_on_first_use=True)
        await r.start()
        bmc = r.plug(1)
        await r.lease(1)
        await asyncio.sleep(600)
        endpoint = await r.endpoint()
        assert not await r.exists(KINDS.bmc, "e1")
    assert (endpoint.status.state, ready(endpoint)) == ("Pending", ("False", "AddressNotAllowed"))
    assert "enrolment.networks" in condition(endpoint).message
    assert (bmc.calls, r.pool.looks) == ([], [])


@pytest.mark.behaviour("BMC", "A BMC object whose address is outside of enrolment.networks is not contacted.")
async def test_a_bmc_outside_of_the_networks_is_not_contacted() -> None:
    """Whoever created it."""
    async with rack(started=False) as r:
        r.defaults = policy("198.51.100.0/24", "2001:db8::/32")
        await r.start()
        bmc = r.plug(1)
        await r.add_bmc(1, tls={"trustOnFirstUse": True})
        found = await until(r, "Pending", "b1")
        await asyncio.sleep(300)
    assert ready(found) == ("False", "AddressNotAllowed")
    assert (bmc.calls, r.pool.looks) == ([], [])


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("192.0.2.7", True), ("::ffff:192.0.2.7", True), ("192.0.3.7", False), ("2001:db8::1", True),
        ("fe80::1%eth0", False), ("bmc.example.com", False), ("", False),
    ],
)  # fmt: skip
def test_an_address_is_compared_in_any_spelling(address: str, allowed: bool) -> None:
    """A host name is in no network."""
    networks = policy("192.0.2.0/24", "2001:db8::/32").policy
    assert (networks.outside(address) == "") is allowed
    assert EnrolmentPolicy().outside(address) == ""


@pytest.mark.behaviour(
    "Endpoint", "With enrolment.approval Manual nothing is sent to a BMC found by its lease until it is approved."
)
async def test_with_manual_approval_a_bmc_waits_and_nothing_is_sent() -> None:
    """BMC and Endpoint say what they wait for; after the approval the BMC is enrolled."""
    async with rack(started=False) as r:
        r.defaults = replace(policy(manual=True), trust_on_first_use=True)
        await r.start()
        bmc = r.plug(1)
        await r.lease(1)
        waiting = await until(r, "PendingApproval")
        await asyncio.sleep(4000)
        endpoint, quiet = await r.endpoint(), (list(bmc.calls), list(r.pool.looks))
        assert not await r.exists(KINDS.bmc_secret, "e1")
        await approve(r)
        await until(r, "Enabled")
        enrolled = await r.endpoint()
        servers = await r.servers()
    assert quiet == ([], [])
    assert waiting.metadata.annotations[APPROVAL] == "pending"
    assert ready(waiting) == ("False", "PendingApproval")
    assert "metalctl approve bmc/e1" in waiting.status.waiting_for
    assert ready(endpoint) == ("False", "PendingApproval")
    assert "metalctl approve bmc/e1" in endpoint.status.waiting_for
    assert ready(enrolled) == ("True", "BMCCreated")
    assert list(servers) == ["e1-system-0"]


async def test_a_bmc_with_its_secret_waits_for_the_approval_as_well() -> None:
    """A BMCSecret that exists already does not replace the approval."""
    async with rack(started=False) as r:
        r.defaults = policy(manual=True)
        await r.start()
        bmc = r.plug(1)
        await r.add_secret("e1", "pw-factory")
        await r.lease(1)
        await until(r, "PendingApproval")
        await asyncio.sleep(300)
    assert bmc.calls == []


@pytest.mark.behaviour("Endpoint", "BMCs whose MAC address is in enrolment.expected need no approval; others wait.")
@pytest.mark.parametrize("manual", [True, False])
async def test_an_expected_mac_address_is_enrolled_and_others_wait(manual: bool) -> None:
    """In any spelling, with Manual and Automatic."""
    async with rack(started=False) as r:
        r.defaults = policy(manual=manual, expected=("A0-B1-C2-00-00-01",))
        await r.start()
        r.plug(1)
        other = r.plug(2)
        await r.lease(1)
        await r.lease(2)
        await until(r, "Enabled")
        await until(r, "PendingApproval", "e2")
        await asyncio.sleep(300)
    assert other.calls == []


@pytest.mark.behaviour("BMC", "Where enrolment.expected has serial numbers, no Server is created for another BMC.")
async def test_an_unexpected_serial_number_waits_before_a_server_is_created() -> None:
    """It is read from the BMC or from a system; an approval enrols the other one."""
    async with rack(started=False) as r:
        r.defaults = policy(expected=("SN-OF SYSTEM",))
        await r.start()
        r.plug(1, present=(system(1, serial_number="sn-of-system"),))
        r.plug(2, present=(system(2, serial_number="other"),))
        await r.lease(1)
        await r.lease(2)
        await until(r, "Enabled")
        waiting = await until(r, "PendingApproval", "e2")
        await asyncio.sleep(600)
        later, first = await r.bmc("e2"), await r.servers()
        await approve(r, "e2")
        await until(r, "Enabled", "e2")
        servers = await soon(lambda: _two(r))
    assert list(first) == ["e1-system-0"]
    assert (condition(waiting, "Enrolled").status, condition(waiting, "Enrolled").reason) == (
        "False",
        "PendingApproval",
    )
    assert later.status.since == waiting.status.since
    assert set(servers) == {"e1-system-0", "e2-system-0"}


async def _two(r: Rack) -> dict[str, str] | None:
    found = await r.servers()
    return found if len(found) == 2 else None


async def test_a_bmc_that_waits_is_enrolled_when_the_configuration_no_longer_asks() -> None:
    """The next manager has another configuration."""
    async with rack(started=False) as r:
        r.defaults = policy(manual=True)
        await r.start()
        r.plug(1)
        await r.lease(1)
        await until(r, "PendingApproval")
        r.defaults = BMCEndpointDefaults()
        await r.restart()
        found = await until(r, "Enabled")
    assert found.metadata.annotations[APPROVAL] == "approved"


@pytest.mark.behaviour(
    "BMC", "With a change of enrolment.approval to Manual, enrolled BMCs stay enrolled; only new ones need an approval."
)
async def test_a_bmc_that_is_enrolled_needs_no_approval_after_a_change_to_manual() -> None:
    """The next manager has another configuration. A BMC object that the lease creates again is a new one."""
    async with rack() as r:
        for number in (1, 2):
            r.plug(number)
        await r.lease(1)
        before = await until(r, "Enabled")
        r.defaults = policy(manual=True)
        await r.restart()
        await r.lease(2)
        await until(r, "PendingApproval", "e2")
        await asyncio.sleep(600)
        after = await r.bmc("e1")
        await r.user.delete(KINDS.bmc, "e1")
        again = await until(r, "PendingApproval")
    assert (after.status.state, ready(after)[0], after.metadata.uid) == ("Enabled", "True", before.metadata.uid)
    assert APPROVAL not in after.metadata.annotations
    assert again.metadata.uid != before.metadata.uid


@pytest.mark.behaviour("Endpoint", "No password of the MAC prefix file is sent in plain text unless the entry says so.")
async def test_plain_text_needs_a_word_of_the_entry() -> None:
    """bmc.scheme http of the configuration is not sufficient; protocolScheme http of the entry is."""
    entry = (
        'macPrefixes:\n- macPrefix: "a0:b1:c2"\n  defaultCredentials:\n  - {username: factory, password: pw-factory}\n'
    )
    async with rack(started=False) as r:
        r.defaults = BMCEndpointDefaults(scheme="http")
        r.prefixes = PrefixFile(extra=parse(entry))
        await r.start()
        bmc = r.plug(1)
        await r.lease(1)
        await asyncio.sleep(60)
        refused, calls = await r.endpoint(), list(bmc.calls)
        r.prefixes = PrefixFile(extra=parse(f"{entry}  protocolScheme: http\n"))
        await r.restart()
        await until(r, "Enabled")
    assert ready(refused) == ("False", "PlainTextNotAllowed")
    assert calls == []


@pytest.mark.behaviour("Endpoint", "With bmc.verify false the first certificate is pinned before a password is sent.")
async def test_without_verification_the_first_certificate_is_pinned() -> None:
    """Any certificate is accepted only where the entry says insecureSkipVerify."""
    async with rack(started=False) as r:
        r.defaults = BMCEndpointDefaults(verify=False)
        await r.start()
        bmc = r.plug(1)
        await r.lease(1)
        found = await until(r, "Enabled")
        bmc.certificate = "cd" * 32
        await soon(lambda: _refused(r), within=120)
    assert found.spec.tls is None
    assert found.status.certificate is not None
    assert found.status.certificate.sha256 == "ab" * 32


async def _refused(r: Rack) -> bool:
    return ready(await r.bmc("e1"))[1] == "CertificateChanged"
