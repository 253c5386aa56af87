"""Certificates that are trusted on first use."""

import asyncio
from typing import Any

import pytest

from metal.bmc.errors import BMCUnreachable
from metal.controllers.shared.bmc_endpoint import BMCEndpointDefaults
from tests.controllers.rack import KINDS, Rack, condition, rack, ready, soon

pytestmark = pytest.mark.looptime
FIRST, SECOND, THIRD = "ab" * 32, "cd" * 32, "ef" * 32
TOFU = {"trustOnFirstUse": True}


async def until(r: Rack, status: str, reason: str, *, within: float = 75.0, name: str = "b1") -> Any:
    """Wait in virtual time for this state and reason."""

    async def check() -> Any:
        found = await r.bmc(name) if await r.exists(KINDS.bmc, name) else None
        return found if found and found.status.conditions and ready(found) == (status, reason) else None

    return await soon(check, within=within)


@pytest.mark.behaviour("BMC", "With `tls.trustOnFirstUse` the certificate is pinned before any credentials are sent.")
async def test_the_first_certificate_is_pinned_before_any_credentials_are_sent() -> None:
    """Status holds its SHA-256 when the first request is sent, and each request accepts only this certificate."""
    async with rack() as r:
        bmc = r.plug(1)
        held: list[str] = []
        ask = bmc.ask

        async def watched(what: str) -> None:
            certificate = (await r.bmc()).status.certificate
            held.append(f"{bmc.held_to} {certificate.sha256 if certificate else ''}")
            await ask(what)

        bmc.ask = watched  # type: ignore[method-assign]  # what was pinned when it was asked
        await r.add_bmc(1, tls=TOFU)
        pinned = await until(r, "True", "Connected")
        await asyncio.sleep(300)
        events = await r.events()
    assert set(held) == {f"{FIRST} {FIRST}"}
    assert pinned.status.certificate.since is not None
    assert r.pool.looks == ["192.0.2.1:443"]
    assert events.count(("b1", "CertificatePinned")) == 1


@pytest.mark.behaviour(
    "BMC", "A changed certificate is refused until `operation=accept-certificate`; the message names both fingerprints."
)
async def test_a_changed_certificate_is_refused_until_a_person_accepts_it() -> None:
    """The condition has both fingerprints and the way out; nothing is sent to the device with the other certificate."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        bmc.certificate = SECOND
        refused = await until(r, "False", "CertificateChanged")
        await asyncio.sleep(3600)
        await r.restart()
        await asyncio.sleep(60)
        still: Any = await r.bmc()
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        back = await until(r, "True", "Connected")
        events = await r.events()
    message = condition(refused).message
    assert FIRST in message
    assert SECOND in message
    assert f"kubectl annotate bmcs b1 {KINDS.key('operation')}=accept-certificate" in message
    assert (still.status.certificate.sha256, still.status.certificate.refused) == (FIRST, SECOND)
    assert (back.status.certificate.sha256, back.status.certificate.refused) == (SECOND, "")
    assert KINDS.key("operation") not in back.metadata.annotations
    assert ("b1", "CertificateAccepted") in events


async def test_what_is_accepted_is_the_certificate_that_was_told() -> None:
    """The fingerprint in the status is accepted: a third certificate is refused again."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        bmc.certificate = SECOND
        await until(r, "False", "CertificateChanged")
        bmc.certificate = THIRD
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        await asyncio.sleep(5)
        after: Any = await r.bmc()
    assert ready(after) == ("False", "CertificateChanged")
    assert (after.status.certificate.sha256, after.status.certificate.refused) == (SECOND, THIRD)


async def test_an_acceptance_of_nothing_is_said_and_removed() -> None:
    """The annotation does not apply to a certificate that is presented later."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        await asyncio.sleep(2)
        removed, events = await r.bmc(), await r.events()
        bmc.certificate = SECOND
        await until(r, "False", "CertificateChanged")
    assert KINDS.key("operation") not in removed.metadata.annotations
    assert ("b1", "NothingToAccept") in events


async def test_a_bmc_that_shows_no_certificate_is_an_ordinary_failure() -> None:
    """It is reported with its reason, retried, and the certificate is pinned when it is presented."""
    async with rack() as r:
        bmc = r.plug(1)
        bmc.failure = BMCUnreachable("connection refused")
        await r.add_bmc(1, tls=TOFU)
        failed = await until(r, "False", "ConnectionFailed")
        bmc.failure = None
        back = await until(r, "True", "Connected")
    assert failed.status.state == "Error"
    assert back.status.certificate.sha256 == FIRST


async def test_plain_http_has_no_certificate_to_pin() -> None:
    """http was configured explicitly."""
    async with rack() as r:
        r.plug(1)
        protocol = {"name": "Redfish", "port": 80, "scheme": "http"}
        await r.add_bmc(1, tls=TOFU, protocol=protocol)
        bmc = await until(r, "True", "Connected")
    assert (r.pool.looks, bmc.status.certificate) == ([], None)


async def test_who_asks_for_an_authority_again_is_held_to_no_pin() -> None:
    """The old pin is removed: a later return to trust on first use pins again."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"tls": {"trustOnFirstUse": None}}})
        await asyncio.sleep(5)
        assert (await r.bmc()).status.certificate is None


@pytest.mark.parametrize(("tls", "pinned"), [(None, FIRST), ({}, ""), ({"insecureSkipVerify": True}, "")])
async def test_the_setting_holds_for_those_that_say_nothing(tls: dict[str, Any] | None, pinned: str) -> None:
    """spec.tls of the BMC overrides it, even an empty one."""
    async with rack(started=False) as r:
        r.defaults = BMCEndpointDefaults(trust_on_first_use=True)
        await r.start()
        r.plug(1)
        more: dict[str, Any] = {} if tls is None else {"tls": tls}
        await r.add_bmc(1, **more)
        bmc = await until(r, "True", "Connected")
    assert (bmc.status.certificate.sha256 if bmc.status.certificate else "") == pinned


async def test_a_bmc_found_by_dhcp_is_held_to_the_certificate_that_its_factory_password_went_to() -> None:
    """It is pinned before the first password is sent, and stored in the BMC that is created."""
    async with rack(started=False) as r:
        r.defaults = BMCEndpointDefaults(trust_on_first_use=True)
        await r.start()
        bmc = r.plug(1, password="pw-integrator")
        held: list[str] = []
        ask = bmc.ask

        async def watched(what: str) -> None:
            held.append(bmc.held_to)
            await ask(what)

        bmc.ask = watched  # type: ignore[method-assign]  # what it was held to
        await r.lease(1)
        made = await until(r, "True", "Connected", name="e1")
    assert set(held) == {FIRST}
    assert made.status.certificate.sha256 == FIRST
    assert r.pool.looks == ["192.0.2.1:8443"]


async def test_a_pin_in_the_spec_names_the_spec_as_the_way_out() -> None:
    """The annotation accepts no other certificate there: the spec must be changed."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls={"fingerprint": FIRST})
        await until(r, "True", "Connected")
        bmc.certificate = SECOND
        refused = await until(r, "False", "CertificateChanged")
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        await asyncio.sleep(60)
        still = await r.bmc()
    assert "tls.fingerprint" in condition(refused).message
    assert ready(still) == ("False", "CertificateChanged")
