"""Ways out: of Error, of maintenance, of lost objects and exchanged machines; and what is never touched on the way."""

import asyncio

import pytest

from metal.api.boot_window import Phase
from metal.bmc.errors import BMCAuthError, BMCForbidden, BMCTimeout
from metal.bmc.power import PowerState
from tests.controllers.fakebmc import URI, UUID
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, condition, maintain, retry
from tests.controllers.world import KINDS, world

pytestmark = pytest.mark.looptime
OTHER = "99999999-2222-3333-4444-555555555599"


@pytest.mark.behaviour(
    "Server: identity and inventory", "A system with another UUID at the BMC's address is never touched."
)
async def test_another_machine_at_the_bmcs_address_is_never_touched() -> None:
    """The UUID decides: a claimed server whose BMC's address now leads elsewhere waits, and says so."""
    async with world(bmc_timeout=120.0) as w:
        await claimed_and_booted(w)
        w.bmc.uuid = OTHER
        w.bmc.lose_power()
        w.bmc.calls.clear()
        await w.until("Error", within=600)
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(300)
        server = await w.server()
        writes = w.bmc.writes()
        w.bmc.uuid = UUID
        await w.until("Available", within=600)
    assert writes == []
    assert condition(server, "BMCReachable") == ("False", "WrongSystem")
    assert server.status.failure is not None
    assert OTHER in server.status.failure.message


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A system without a UUID at the BMC's address is touched only when it shows the known serial number.",
)
@pytest.mark.parametrize("serial", ["S9", ""])
async def test_a_system_without_uuid_must_show_the_known_serial_number(serial: str) -> None:
    """Another BMC at this address shows no UUID while it starts: its machine is not switched off."""
    async with world(bmc_timeout=120.0) as w:
        await w.add_server()
        await w.discover()
        w.bmc.uuid, w.bmc.serial, w.bmc.power = "", serial, PowerState.ON
        w.bmc.calls.clear()
        server = await w.until("Error", within=600)
        writes = w.bmc.writes()
        w.bmc.serial = "S1"
        await w.until("Available", within=600)
        await w.until_true(lambda s: s.status.power_state == "Off")
    assert writes == []
    assert condition(server, "BMCReachable") == ("False", "WrongSystem")


async def test_a_uuid_with_swapped_bytes_is_the_same_machine() -> None:
    """Some firmware shows the first three groups of the UUID reversed (SMBIOS before 2.6)."""
    async with world() as w:
        w.bmc.uuid = "33221100-5544-7766-8899-AABBCCDDEEFF"
        await w.add_server(uuid="00112233-4455-6677-8899-aabbccddeeff")
        await w.discover()


async def test_a_system_that_moved_on_its_bmc_is_found_again() -> None:
    """A wrong systemURI is looked up by the UUID and corrected."""
    async with world() as w:
        await w.add_server(systemURI="/redfish/v1/Systems/old")
        await w.until("Discovery")
        server = await w.server()
    assert server.spec.system_uri == URI


@pytest.mark.behaviour(
    "Server: identity and inventory", "An empty `spec.systemURI` is filled in by the UUID of the system."
)
async def test_a_missing_system_uri_is_filled_in() -> None:
    """The system is found by its UUID, in upper and in lower case."""
    async with world() as w:
        w.bmc.uuid = UUID.upper()
        await w.add_server(systemURI="")
        server = await w.until("Discovery")
    assert server.spec.system_uri == URI


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A UUID that the BMC does not show is an Error that names `spec.systemUUID`; it ends when the UUID appears.",
)
async def test_an_unknown_uuid_is_a_named_wait_and_then_error() -> None:
    """The BMC has no such system: the sentence names the field; a corrected BMC lets it go on."""
    async with world(bmc_timeout=60.0) as w:
        await w.add_server(systemURI="", uuid=OTHER)
        failed = await w.until("Error")
        w.bmc.uuid = OTHER
        await w.until("Discovery")
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "BMCNotFound"
    assert "spec.systemUUID" in failed.status.failure.message


@pytest.mark.behaviour(
    "Server: identity and inventory", "An invalid UUID in the spec is an Error at once until the spec is corrected."
)
@pytest.mark.parametrize("uuid", ["not-a-uuid", ""])
async def test_a_uuid_that_is_none_is_an_error_at_once_until_it_is_corrected(uuid: str) -> None:
    """Retrying does not help an invalid spec, or the empty one of a program in Go; changing it does."""
    async with world() as w:
        await w.add_server(uuid=uuid)
        failed = await w.until("Error", within=5)
        calls = list(w.bmc.calls)
        await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": UUID}})
        await w.until("Discovery")
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "InvalidSpec"
    assert calls == []


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"bmc": None, "bmcRef": {"name": "nobody"}}, "BMCNotFound"),
        ({"bmc": None}, "BMCNotSet"),
        ({"bmc": {"bmcSecretRef": {"name": "nobody"}}}, "SecretNotFound"),
    ],
)
async def test_a_missing_object_is_named_and_mended_by_making_it(spec: dict[str, object], reason: str) -> None:
    """No BMC object, none named, no Secret: a condition with the name, Error after its time, and the way back."""
    async with world(bmc_timeout=60.0) as w:
        before = await w.add_server()
        await w.discover()
        await w.client.patch(KINDS.server, "s1", {"spec": spec})
        await w.until_true(lambda s: any(c.reason == reason for c in s.status.conditions), within=400)
        failed = await w.until("Error", within=300)
        inline = {"address": "10.0.0.9", "bmcSecretRef": {"name": "s1-secret"},
                  "protocol": {"name": "Redfish", "port": 443}}  # fmt: skip
        await w.client.patch(KINDS.server, "s1", {"spec": {"bmcRef": None, "bmc": inline}})
        await w.until("Available")
    assert before.spec.bmc is not None
    assert failed.status.failure is not None
    assert not failed.status.failure.reason.startswith("BMCBMC")


async def test_what_the_account_may_not_do_is_an_error_until_the_spec_or_somebody_says_otherwise() -> None:
    """Forbidden is permanent: no flapping, and retry works once the account may."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.refuses["graceful_off"] = BMCForbidden("the account may not reset systems")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Error")
        before = len(await w.events())
        await asyncio.sleep(1200)
        calm = len(await w.events()) - before
        w.bmc.refuses.clear()
        await retry(w)
        server = await w.until("Available")
    assert calm == 0
    assert server.status.tenancy.uid == ""


@pytest.mark.behaviour(
    "Server: errors and deletion", "Refused credentials emit one Event when they begin and one when they end."
)
async def test_refused_credentials_are_an_event_once() -> None:
    """An outage is told when it begins and when it ends, not at every look."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.failure = BMCAuthError("the BMC refuses the user name or password")
        await asyncio.sleep(700)
        w.bmc.failure = None
        await asyncio.sleep(200)
        events = [e.reason for e in await w.events()]
    assert events.count("AuthenticationFailed") == 1
    assert events.count("Connected") == 1


@pytest.mark.behaviour("ServerMaintenance", "A dead BMC during a maintenance neither ends it nor flaps.")
async def test_a_maintenance_with_a_dead_bmc_does_not_flap() -> None:
    """A BMC may be disconnected during a maintenance: the state stays Maintenance, and the wait reports the outage."""
    async with world(bmc_timeout=60.0) as w:
        await claimed_and_booted(w)
        await maintain(w)
        entered = await w.until("Maintenance")
        w.bmc.failure = BMCTimeout("no answer")
        await asyncio.sleep(300)
        before = w.passes()
        await asyncio.sleep(600)
        spent, server = w.passes() - before, await w.server()
        w.bmc.failure = None
        await maintain(w, on=False)
        await w.until("Reserved")
        await asyncio.sleep(200)
    assert (server.status.state, server.status.since) == ("Maintenance", entered.status.since)
    assert spent < 60
    assert "no answer" in server.status.waiting_for
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 0)


async def test_an_error_by_a_dead_bmc_yields_to_a_maintenance_without_flapping() -> None:
    """Error and Maintenance do not take turns."""
    async with world(bmc_timeout=60.0) as w:
        await w.add_server()
        await w.discover()
        w.bmc.failure = BMCTimeout("no answer")
        await w.until("Error", within=600)
        await maintain(w)
        await w.until("Maintenance")
        before = w.passes()
        await asyncio.sleep(600)
        spent, server = w.passes() - before, await w.server()
    assert server.status.state == "Maintenance"
    assert spent < 60


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A maintenance stops the first boot of a claim; the claim is booted afterwards.",
    issues=(300, 301, 455),
)
async def test_a_maintenance_stops_a_first_boot_and_the_claim_gets_its_boot_afterwards() -> None:
    """Nothing is served while the maintenance holds the machine."""
    async with world() as w:
        await claimed_and_booting(w)
        await maintain(w)
        held = await w.until("Maintenance")
        w.bmc.calls.clear()
        await asyncio.sleep(120)
        writes = w.bmc.writes()
        await maintain(w, on=False)
        await w.until_true(lambda s: s.status.power_state == "Off")
        await w.boot_claim()
    assert held.status.boot_window is not None
    assert held.status.boot_window.phase == Phase.CLOSED
    assert writes == []


@pytest.mark.behaviour(
    "ServerMaintenance", "A maintenance takes a server in Discovery, Available, Released and Error, and gives it back."
)
@pytest.mark.parametrize("state", ["Discovery", "Available", "Released", "Error"])
async def test_a_maintenance_takes_a_server_in_any_state_and_gives_it_back(state: str) -> None:
    """Discovery starts again afterwards, a released server stays owed to its cleanup, an untouched one is Available."""
    async with world(boot_config_timeout=60.0) as w:
        if state == "Released":
            await w.add_server(reclaimPolicy="Retain")
            await w.discover()
            await w.add_claim()
            await w.boot_claim()
            await w.client.delete(KINDS.claim, "c1", "default")
        else:
            await w.add_server()
        if state == "Available":
            await w.discover()
        await w.until(state)
        await maintain(w)
        await w.until("Maintenance")
        await maintain(w, on=False)
        await w.until(state if state in ("Released", "Available") else "Discovery")


async def test_a_claim_deleted_during_a_maintenance_is_cleaned_up_afterwards() -> None:
    """The maintenance is not disturbed; the cleanup is still owed."""
    async with world() as w:
        await claimed_and_booted(w)
        await maintain(w)
        await w.until("Maintenance")
        w.bmc.calls.clear()
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(120)
        during = w.bmc.writes()
        await maintain(w, on=False)
        server = await w.until("Available")
    assert during == []
    assert server.status.tenancy.sanitization == "None"


@pytest.mark.behaviour("Cleanup", "A change from Retain to Recycle is followed in Released.")
async def test_retain_becomes_recycle_and_the_server_is_recycled() -> None:
    """A changed reclaim policy is followed in Released too."""
    async with world() as w:
        await w.add_server(reclaimPolicy="Retain")
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.delete(KINDS.claim, "c1", "default")
        released = await w.until("Released")
        await w.client.patch(KINDS.server, "s1", {"spec": {"reclaimPolicy": "Recycle"}})
        server = await w.until("Available")
    assert released.spec.server_claim_ref is not None
    assert server.spec.server_claim_ref is None


@pytest.mark.behaviour(
    "Cleanup", "With `reclaimPolicy: Retain` the server stays Released and off until `serverClaimRef` is removed."
)
async def test_retain_keeps_the_server_until_its_claim_reference_is_removed() -> None:
    """Released, off, named wait; then Available by hand."""
    async with world() as w:
        await w.add_server(reclaimPolicy="Retain")
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Released")
        server = await w.until_true(lambda s: s.status.waiting_for != "")
        w.bmc._arrive(PowerState.ON)
        await asyncio.sleep(300)
        power = w.bmc.power
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
        await w.until("Available")
    assert "spec.serverClaimRef" in server.status.waiting_for
    assert power is PowerState.OFF


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A tenant's Server that is deleted and created again is Reserved again, without discovery or boot.",
)
async def test_a_tenants_server_object_that_is_deleted_and_made_again_stays_the_tenants() -> None:
    """The running machine is neither discovered nor booted: the claim has it back."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await w.client.delete(KINDS.server, "s1")
        await w.until_claim(lambda c: c.status.phase == "Unbound")
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server()
        server = await w.until("Reserved")
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
        await asyncio.sleep(300)
        writes = list(w.bmc.writes())
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
    assert writes == []
    assert server.spec.server_claim_ref is not None
    assert claim.spec.server_ref is not None


async def test_an_ignored_server_can_be_deleted() -> None:
    """Deletion is possible in every state, also while operation=ignore is set."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        annotation = {"metadata": {"annotations": {KINDS.key("operation"): "ignore"}}}
        await w.client.patch(KINDS.server, "s1", annotation)
        await w.client.delete(KINDS.server, "s1")
        await asyncio.sleep(5)
        left = await w.client.list(KINDS.server)
    assert left.items == ()
    assert not [a for a in w.pool.accesses if a.key == "server/s1"]


async def test_a_server_bound_late_for_a_claim_that_has_another_is_given_back_untouched() -> None:
    """A leader that was cut off while it bound a claim is heard late: its heir had bound that claim elsewhere."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.calls.clear()
        await w.add_claim(serverRef={"name": "elsewhere"})
        ref = {"namespace": "default", "name": "c1"}
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
        server = await w.until_true(lambda s: s.spec.server_claim_ref is None and s.status.state == "Available")
    assert (server.status.tenancy.uid, w.bmc.writes()) == ("", [])


async def test_a_server_that_is_available_never_has_a_tenant() -> None:
    """A tenant's data is cleaned up first, also when the server became Available by mistake."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": {"claimRef": {"uid": "former"}}}})
        server = await w.until_true(lambda s: s.status.tenancy.sanitization == "None")
        reasons = {e.reason for e in await w.events()}
    assert server.status.tenancy.uid == ""
    assert "Cleanup" in reasons


@pytest.mark.behaviour(
    "Server: errors and deletion", "A missing boot configuration of the discovery does not affect an Available server."
)
async def test_a_missing_discovery_configuration_in_available_is_no_trouble() -> None:
    """Another client deleted it first; the server becomes Available nevertheless."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        ref = {"namespace": "metal-system", "name": "gone"}
        await w.discover()
        await w.client.patch(KINDS.server, "s1", {"spec": {"bootConfigurationRef": ref}})
        server = await w.until_true(lambda s: s.spec.boot_configuration_ref is None)
    assert server.status.state == "Available"


@pytest.mark.behaviour(
    "Server: power and resets", "The deprecated `spec.power` is cleared; power belongs to the claim or the maintenance."
)
async def test_a_deprecated_power_in_the_spec_is_cleared() -> None:
    """Power belongs to the claim or the maintenance."""
    async with world() as w:
        await w.add_server(power="On")
        await w.discover()
        free = await w.server()
        await w.add_claim(power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound")
        await w.client.patch(KINDS.server, "s1", {"spec": {"power": "On"}})
        await asyncio.sleep(200)
        claimed = await w.server()
    assert (free.spec.power, free.status.power_state) == ("", "Off")
    assert (claimed.spec.power, claimed.status.power_state, w.bmc.power) == ("", "Off", PowerState.OFF)
