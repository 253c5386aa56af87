"""A claim's opt-out: where it is not allowed it is not honored, and where it is, the server is tainted."""

import asyncio

import pytest

from metal.api.claim import ServerClaim
from metal.api.core import NAMESPACE
from tests.controllers.server.steps import claimed_and_booted, condition, operate, reasons
from tests.controllers.server.tenancy.test_sanitization import ERASE, begin_erasing, disks, released
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
TAINT = "metal.ironcore.dev/data-not-erased"
TOLERATIONS = [{"key": key, "operator": "Exists"} for key in (TAINT, "rack")]


def honored(claim: ServerClaim) -> tuple[str, str] | None:
    found = [(c.status, c.message) for c in claim.status.conditions if c.type == "SanitizationPolicyHonored"]
    return found[0] if found else None


async def opted_out(w: World) -> None:
    """A server whose claim left its data, where the site allows it."""
    await released(w, sanitizationPolicy="None")
    await w.until("Available")
    await w.settle()


@pytest.mark.behaviour("Cleanup", "A claim's weaker sanitization policy is not honored by default; the claim says so.")
async def test_a_claims_opt_out_is_not_honored_by_default() -> None:
    """The data is erased to the operator's policy, and the claim's condition names the field to change."""
    async with world(**ERASE) as w:
        await released(w, sanitizationPolicy="None", power="On")
        await begin_erasing(w)
    async with world(**ERASE) as w:
        await claimed_and_booted(w, sanitizationPolicy="None")
        claim = await w.until_claim(lambda c: honored(c) is not None)
        await w.client.patch(KINDS.claim, "c1", {"spec": {"sanitizationPolicy": "Purge"}}, "default")
        stronger = await w.until_claim(lambda c: (honored(c) or ("",))[0] == "True")
    status, message = honored(claim) or ("", "")
    assert (status, "None is not honored: Clear applies" in message) == ("False", True)
    assert "configuration (sanitization.policy) requires, unless it has sanitization.optOut: true" in message
    assert "set spec.sanitizationPolicy to Clear" in message
    assert honored(stronger) is not None


async def test_a_servers_label_is_never_undercut() -> None:
    """Also where the site allows claims to opt out."""
    async with world(**ERASE, sanitization_opt_out=True) as w:
        await w.add_server(labels={KINDS.key("sanitization-policy"): "Purge"})
        await w.discover()
        await w.add_claim(sanitizationPolicy="None")
        server = await w.until_true(lambda s: s.status.tenancy.policy != "")
        claim = await w.until_claim(lambda c: honored(c) is not None)
        events = await reasons(w)
    assert server.status.tenancy.policy == "Purge"
    label = f"label {KINDS.key('sanitization-policy')}=Purge of server s1 requires"
    assert label in (honored(claim) or ("", ""))[1]
    assert "WeakerThanRequired" in events


@pytest.mark.behaviour(
    "Cleanup", "A server that a claim left without erasure is tainted data-not-erased until it is erased."
)
async def test_a_server_that_was_not_erased_is_tainted_until_it_is() -> None:
    """Other claims do not bind it; operation=sanitize erases it, and the taint is removed."""
    async with world(**ERASE, sanitization_opt_out=True) as w:
        await opted_out(w)
        server = await w.server()
        await w.add_claim("c2")
        blocked = await w.until_claim(lambda c: bool(c.status.conditions), "c2")
        await w.client.delete(KINDS.claim, "c2", "default")
        await operate(w, "sanitize")
        await begin_erasing(w)
        await w.erase()
        erased = await w.until_true(lambda s: s.status.state == "Available" and not s.spec.taints)
    assert [(taint.key, taint.effect) for taint in server.spec.taints] == [(TAINT, "NoBind")]
    assert TAINT in blocked.status.conditions[0].message
    assert condition(erased, "Sanitized") == ("True", "Clear")
    message = next(c.message for c in server.status.conditions if c.type == "Sanitized")
    assert "operation=sanitize" in message


@pytest.mark.behaviour(
    "Cleanup", "The taint data-not-erased is tolerated only by claims of the namespace whose data is on the drives."
)
async def test_a_claim_of_the_namespace_that_left_the_data_may_tolerate_it() -> None:
    """Its own later erasure ends the taint; the taints that an administrator set stay."""
    async with world(**ERASE, sanitization_opt_out=True) as w:
        await opted_out(w)
        (left,) = (await w.server()).spec.taints
        own = {"key": "rack", "value": "1", "effect": "NoBind"}
        taints = [own, {"key": left.key, "value": left.value, "effect": left.effect}]
        await w.client.patch(KINDS.server, "s1", {"spec": {"taints": taints}})
        await w.add_claim("c2", tolerations=TOLERATIONS)
        await w.boot_claim("c2")
        await w.client.delete(KINDS.claim, "c2", "default")
        await begin_erasing(w)
        await w.erase()
        server = await w.until("Available")
    assert left.value == "default"
    assert [taint.key for taint in server.spec.taints] == ["rack"]


async def test_a_claim_of_another_namespace_is_not_bound_whatever_it_tolerates() -> None:
    """Its condition says why; only an administrator decides that another tenant gets the drives unerased."""
    async with world(**ERASE, sanitization_opt_out=True) as w:
        await opted_out(w)
        await w.client.create(NAMESPACE, {"metadata": {"name": "team-b"}})
        spec = {"image": "i", "ignitionSecretRef": {"name": "ign"}, "power": "On", "tolerations": TOLERATIONS}
        await w.client.create(KINDS.claim, {"metadata": {"name": "c2", "namespace": "team-b"}, "spec": spec})
        await asyncio.sleep(600)
        claim = await w.client.get(KINDS.claim, "c2", "team-b")
        server = await w.server()
    assert server.spec.server_claim_ref is None
    assert "drives with data of another namespace" in claim.status.conditions[0].message


async def test_an_operators_own_policy_none_taints_nothing() -> None:
    """The setting and the label are decisions of administrators, and a claim that was served nothing left nothing."""
    async with world(sanitization_policy="None") as w:
        await released(w)
        await w.until("Available")
        assert (await w.server()).spec.taints == ()
    async with world(**ERASE, sanitization_opt_out=True) as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(power="Off", sanitizationPolicy="None")
        await w.until("Reserved")
        await w.settle()
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until("Available")
    assert (server.status.tenancy.sanitization, server.spec.taints) == ("None", ())


async def test_a_server_in_use_is_not_sanitized_by_an_operation() -> None:
    """An Event says why not."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await operate(w, "sanitize")
        seen = await reasons(w)
        server = await w.server()
    assert ("OperationRefused" in seen, server.status.state) == (True, "Reserved")


@pytest.mark.behaviour(
    "Cleanup", "Once a claim's server has booted, its sanitization policy can be strengthened, not weakened."
)
async def test_the_policy_of_a_tenancy_is_not_lowered() -> None:
    """Neither by the claim nor by a label; a claim that was served nothing may still change its mind."""
    async with world(**ERASE) as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(sanitizationPolicy="Purge")
        await w.until_true(lambda s: s.status.tenancy.policy == "Purge")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"sanitizationPolicy": "Clear"}}, "default")
        await w.until_true(lambda s: s.status.tenancy.policy == "Clear")
        await w.boot_claim()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"sanitizationPolicy": "Purge"}}, "default")
        await w.until_true(lambda s: s.status.tenancy.policy == "Purge")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"sanitizationPolicy": "Clear"}}, "default")
        await asyncio.sleep(300)
        server = await w.server()
    assert server.status.tenancy.policy == "Purge"
