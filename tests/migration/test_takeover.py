"""What the Go operator left goes on without a machine noticing."""

import asyncio

import pytest

from metal.api.core import SECRET
from metal.api.server import Server
from metal.kube.client.errors import NotFound
from metal.kube.meta.conditions import find, is_true
from tests.migration.site import LEFT, Doc, Left, go_crds, install, read, server_name
from tests.migration.takeover import MINUTE, Takeover, takeover

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

HELD = {
    0: "Initial", 1: "Initial", 2: "Discovery", 3: "Discovery", 4: "Discovery", 8: "Available", 14: "Reserved",
    15: "Reserved", 19: "Error",
}  # fmt: skip
"""Servers that wait for confirmation: number and state."""
OURS = ("BIOSVersion", "HTTPBootConfig", "Secret", "Namespace")
"""Kinds of which every object stays exactly as it was."""
BOUND = tuple(number for number, entry in enumerate(LEFT) if entry.claim)


def _taken(server: Server) -> tuple[str, str]:
    """Status and reason of the condition TakenOver."""
    found = find(server.status.conditions, "TakenOver")
    assert found is not None
    return found.status, found.reason


async def _say_go(site: Takeover, number: int) -> None:
    annotations = {site.kinds.key("operation"): "retry"}
    await site.client.patch(site.kinds.server, server_name(number, site.left[number]), {
        "metadata": {"annotations": annotations}})  # fmt: skip


async def test_twenty_servers_in_mixed_states_are_taken_over_and_no_machine_notices() -> None:
    """Half an hour after the takeover no power was moved, no network boot set, and every state is as it was."""
    async with takeover() as site:
        await site.begin(minutes=30)

        assert site.moved() == []
        states = [(await site.server(number)).status.state for number in range(len(LEFT))]
        expected = [entry.state for entry in LEFT]
        expected[18] = "Reserved"  # the Go operator has no way out of Error; this machine runs its claim
        assert states == expected


async def test_a_server_whose_machine_is_not_as_its_state_says_waits_for_the_word_and_says_how_to_give_it() -> None:
    """Initial and Discovery would move the machine next; others wait only where the power differs."""
    async with takeover() as site:
        await site.begin()

        waiting = {}
        for number in range(len(LEFT)):
            server = await site.server(number)
            if server.status.wait is not None and server.status.wait.for_ == "TakeoverGoAhead":
                waiting[number] = server.status.state
                assert "metal.ironcore.dev/operation=retry" in server.status.waiting_for
        assert waiting == HELD


async def test_every_field_that_the_go_operator_wrote_is_still_there() -> None:
    """Specs, owners, labels and what stood in status survive; kinds that nobody reconciles are not written at all."""
    async with takeover() as site:
        await site.begin()
        after = await site.objects_by_key()

        assert [key for key in site.before if key not in after] == []
        for key, old in site.before.items():
            _same_or_more(key, old, after[key])


def _same_or_more(key: str, old: Doc, new: Doc) -> None:
    if old["kind"] in OURS:
        assert new == old, key
        return
    for part in ("labels", "annotations"):
        assert (new["metadata"].get(part) or {}).items() >= (old["metadata"].get(part) or {}).items(), key
    assert set(new["metadata"].get("finalizers", [])) >= set(old["metadata"].get("finalizers", [])), key
    assert new["metadata"].get("ownerReferences") == old["metadata"].get("ownerReferences"), key
    if old["kind"] != "IPXEBootConfig":  # says where our boot server serves the same image
        assert new.get("spec") == old.get("spec"), key
    if old["kind"] == "ServerMaintenance":
        assert new["status"].items() >= old["status"].items(), key
    if old["kind"] == "Server":
        status = {name: value for name, value in old["status"].items() if name not in ("conditions", "state")}
        assert new["status"].items() >= status.items(), key
        kept = [condition for condition in old["status"]["conditions"] if condition in new["status"]["conditions"]]
        assert kept == old["status"]["conditions"], key


async def test_a_maintenance_that_the_go_operator_began_is_watched_and_says_how_it_is_taken_up() -> None:
    """It holds its server as before; the machine is moved by nobody before the word."""
    async with takeover() as site:
        await site.begin()
        number = next(n for n, entry in enumerate(LEFT) if entry.maintained)
        server = await site.server(number)
        held = server.spec.server_maintenance_ref
        assert held is not None
        found = await site.client.get(site.kinds.maintenance, held.name, held.namespace)

        assert "metal.ironcore.dev/operation=retry" in server.status.waiting_for
        assert (found.status.state, found.status.waiting_for) == ("InMaintenance", server.status.waiting_for)


async def test_plain_text_of_a_bmcsecret_goes_into_data_and_says_the_same() -> None:
    """stringData, which the Go operator never folded, becomes data: the one thing that is written anew."""
    async with takeover() as site:
        await site.begin()

        secret = await read(site.client, "BMCSecret", "node-1-login")
        assert "stringData" not in secret
        assert secret["data"] == (await read(site.client, "BMCSecret", "node-0"))["data"]


async def test_claims_that_were_bound_count_as_booted_and_keep_their_machines() -> None:
    """A tenant's claim is Bound and Booted, by its own UID, although nobody here saw its boot."""
    async with takeover() as site:
        await site.begin()

        for number in BOUND:
            claim = await site.client.get(site.kinds.claim, f"claim-{number}", "tenants")
            server = await site.server(number)
            assert server.status.tenancy.uid == claim.metadata.uid
            assert server.status.tenancy.boot is not None
            assert server.status.tenancy.boot.claim_uid == claim.metadata.uid
            assert claim.status.phase == "Bound"
            assert is_true(claim.status.conditions, "Booted")


async def test_new_claims_get_the_available_servers_and_only_those() -> None:
    """Three servers are Available and off; a fourth claim waits."""
    async with takeover() as site:
        await site.begin()
        for name in ("new-1", "new-2", "new-3", "new-4"):
            await site.add_claim(name)
        await asyncio.sleep(10 * MINUTE)

        got = [n for n in range(len(LEFT)) if (await site.server(n)).status.tenancy.boot and not LEFT[n].claim]
        assert got == [5, 6, 7]
        assert {int(line.split()[0]) for line in site.moved()} == {5, 6, 7}


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 19])
async def test_the_word_lets_a_server_without_claim_be_discovered(number: int) -> None:
    """operation=retry walks it from Initial to Available; no other machine moves."""
    async with takeover((LEFT[number], LEFT[0])) as site:
        await site.begin()
        await _say_go(site, 0)
        await asyncio.sleep(20 * MINUTE)

        server = await site.server(0)
        assert server.status.state == "Available", server.status.waiting_for
        assert _taken(server) == ("True", "GoAhead")
        assert {int(line.split()[0]) for line in site.moved()} == {0}


@pytest.mark.parametrize("number", [14, 15])
async def test_the_word_switches_a_claimed_machine_on_and_it_comes_back_from_its_disk(number: int) -> None:
    """No network boot: whoever was in the middle of one makes a new claim."""
    async with takeover((LEFT[number],)) as site:
        await site.begin()
        await _say_go(site, 0)
        await asyncio.sleep(5 * MINUTE)

        machine = site.fleet.machines[0]
        assert machine.state.power == "On"
        assert site.fleet.history.of(machine.identity.uuid, "override", "fetch") == []


async def test_a_server_that_waits_goes_on_by_itself_once_its_machine_is_as_its_state_says() -> None:
    """A person switches the machine of a bound claim on: nothing is in doubt any more."""
    async with takeover((LEFT[15],)) as site:
        await site.begin()
        site.fleet.machines[0].reset("On")
        await asyncio.sleep(5 * MINUTE)

        server = await site.server(0)
        assert _taken(server) == ("True", "AsDeclared")
        assert is_true(server.status.conditions, "Ready")


async def test_a_taken_over_claim_switches_its_machine_and_never_boots_it_from_the_network() -> None:
    """Off and On again: the tenant's disk starts, and the boot server is not asked."""
    async with takeover((LEFT[9],)) as site:
        await site.begin()
        for power in ("Off", "On"):
            await site.client.patch(site.kinds.claim, "claim-0", {"spec": {"power": power}}, "tenants")
            await asyncio.sleep(5 * MINUTE)
            assert site.fleet.machines[0].state.power == power

        assert site.fleet.history.of(site.fleet.machines[0].identity.uuid, "override", "fetch") == []


async def test_a_taken_over_claim_can_be_deleted_and_its_server_becomes_available() -> None:
    """The Go operator's finalizer goes with it, its boot configuration too; its Ignition stays with its owner."""
    async with takeover((LEFT[9],)) as site:
        await site.begin()
        await site.client.delete(site.kinds.claim, "claim-0", "tenants")
        await asyncio.sleep(10 * MINUTE)

        with pytest.raises(NotFound):
            await site.client.get(site.kinds.claim, "claim-0", "tenants")
        with pytest.raises(NotFound):
            await site.client.get(site.kinds.boot_config, "claim-0", "tenants")
        assert (await site.client.get(SECRET, "claim-0", "tenants")).metadata.name == "claim-0"
        assert (await site.server(0)).status.state == "Available"


async def test_a_claim_that_was_not_bound_yet_boots_as_any_other() -> None:
    """Phase Unbound and a machine that is off: nothing ever ran there for this claim."""
    async with takeover((Left("Reserved", claim="On", phase="Unbound"),)) as site:
        await site.begin()

        server = await site.server(0)
        assert server.status.tenancy.boot is not None, server.status.waiting_for
        assert server.status.tenancy.boot.image == "images.sim/demo:latest"


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0])
async def test_a_manager_that_is_killed_while_it_takes_over_moves_nothing_either(seconds: float) -> None:
    """Whatever was written before it died, the next one finds the same servers in the same states."""
    async with takeover() as site:
        await site.start_manager()
        await asyncio.sleep(seconds)
        await site.restart_manager()
        await asyncio.sleep(10 * MINUTE)

        assert site.moved() == []
        waits = {n: (await site.server(n)).status.wait for n in range(len(LEFT))}
        assert {n for n, wait in waits.items() if wait and wait.for_ == "TakeoverGoAhead"} == set(HELD)


async def test_every_taken_over_object_can_be_deleted() -> None:
    """Servers, BMCs, BMCSecrets and Endpoints go, whoever's finalizers they carry, and no machine moves."""
    async with takeover() as site:
        await site.begin()
        for kind in (site.kinds.endpoint, site.kinds.server, site.kinds.bmc, site.kinds.bmc_secret):
            for item in (await site.client.list(kind)).items:
                await site.client.delete(kind, item.metadata.name)
        await asyncio.sleep(5 * MINUTE)

        for kind in (site.kinds.endpoint, site.kinds.server, site.kinds.bmc, site.kinds.bmc_secret):
            assert [item.metadata.name for item in (await site.client.list(kind)).items] == []
        assert site.moved() == []


async def test_with_crds_that_drop_our_fields_every_server_is_left_alone() -> None:
    """Somebody started our manager and forgot our CRDs: the boots of a day would be forgotten while under way."""
    async with takeover(LEFT[:10]) as site:
        await install(site.client, [_without_our_fields(crd) for crd in go_crds()])
        await site.begin(minutes=30)

        assert site.moved() == []
        ready = find((await site.server(5)).status.conditions, "Ready")
        assert ready is not None
        assert ready.reason == "CustomResourceDefinitions"


def _without_our_fields(crd: Doc) -> Doc:
    """Of a status, conditions and plain words are kept."""
    if crd["spec"]["names"]["kind"] != "Server":
        return crd
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    text = {"type": "string"}
    status = {
        "type": "object",
        "properties": {"state": text, "powerState": text, "conditions": {"type": "array", "items": loose}},
    }
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {"spec": loose, "status": status},
    }
    return crd
