"""A pin outlives a BMC of an older backup: its BMCSecret has a copy."""

import asyncio
from typing import Any

import pytest

from metal.controllers.shared.access import pins
from tests.controllers.bmc.test_trust import FIRST, SECOND, TOFU, until
from tests.controllers.rack import KINDS, Rack, rack, soon

pytestmark = pytest.mark.looptime
PINNED = KINDS.key("pinned-certificate")


async def _kept(r: Rack, name: str = "b1", secret: str = "b1") -> str:
    return pins.kept_in(await r.secret(secret), KINDS, "certificate", name)


async def _unpin(r: Rack) -> None:
    """The BMC is that from before its pin."""
    await r.user.patch(KINDS.bmc, "b1", {"metadata": {"annotations": {PINNED: None}}})
    await r.user.patch_status(KINDS.bmc, "b1", {"status": {"certificate": None}})


async def _recreate(r: Rack) -> None:
    """The BMC is deleted, and created from its first manifest."""
    await r.user.patch(KINDS.bmc_secret, "b1", {"allowedBMCs": ["b1"]})
    spec: dict[str, Any] = {
        "access": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:01"}, "bmcSecretRef": {"name": "b1"},
        "protocol": {"name": "Redfish", "port": 443}, "tls": TOFU,
    }  # fmt: skip
    await r.user.delete(KINDS.bmc, "b1")

    async def gone() -> bool:
        return not await r.exists(KINDS.bmc, "b1")

    await soon(gone, within=60)
    await r.user.create(KINDS.bmc, {"metadata": {"name": "b1"}, "spec": spec})


@pytest.mark.behaviour(
    "BMC", "A BMC that is restored as it was before its pin pins no other certificate: its BMCSecret has the pin."
)
@pytest.mark.parametrize("restore", [_unpin, _recreate])
async def test_a_bmc_restored_as_before_its_pin_sends_no_password_to_another_device(restore: Any) -> None:
    """Another device has the address; only an administrator accepts its certificate."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        bmc.certificate = SECOND
        await restore(r)
        refused = await until(r, "False", "CertificateChanged", within=300)
        looks = list(r.pool.looks)
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        await until(r, "True", "Connected")
        kept = await _kept(r)
    assert (refused.status.certificate.sha256, refused.status.certificate.refused) == (FIRST, SECOND)
    assert looks == ["192.0.2.1:443"]
    assert kept == SECOND


async def test_another_verification_removes_the_pin_also_from_the_bmc_secret() -> None:
    """And it does not come back from there."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        before = await _kept(r)
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"tls": {"trustOnFirstUse": False, "fingerprint": FIRST}}})
        await asyncio.sleep(300)
        found, kept, events = await r.bmc(), await _kept(r), await r.events()
    assert (before, kept, found.status.certificate) == (FIRST, "", None)
    assert ("b1", "PinRestored") not in events


async def test_the_pin_of_a_bmc_causes_no_pass_over_another_one_with_its_secret() -> None:
    """A thousand BMCs with one BMCSecret would have a million passes."""
    async with rack(interval=3600.0) as r:
        first = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        await r.user.patch(KINDS.bmc_secret, "b1", {"allowedBMCs": ["b1", "b2"]})
        await asyncio.sleep(60)
        calls = len(first.calls)
        note = pins.in_secret(KINDS, {"certificate": SECOND}, "b2")
        await r.user.patch(KINDS.bmc_secret, "b1", {"metadata": {"annotations": note}})
        await asyncio.sleep(60)
        later = len(first.calls)
        kept = await _kept(r), await _kept(r, "b2")
    assert later == calls
    assert kept == (FIRST, SECOND)


async def test_a_bmc_secret_with_very_many_annotations_gets_no_more_pins() -> None:
    """An object has 256 KiB of annotations at most, and a pass must not fail for ever."""
    async with rack(started=False) as r:
        await r.add_secret("b1", "pw-factory")
        many = {f"example.com/n{number}": "" for number in range(1000)}
        await r.user.patch(KINDS.bmc_secret, "b1", {"metadata": {"annotations": many}})
        secret = await r.secret()
    assert pins.change_secret(KINDS, secret, {"certificate": FIRST}, "b1") == {}
