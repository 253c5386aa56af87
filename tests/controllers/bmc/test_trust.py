"""Certificates that are trusted on first use."""

import asyncio
from typing import Any

import pytest

from metal.bmc.errors import BMCUnreachable
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.kube.client.errors import Invalid
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


async def wiped(r: Rack, certificate: str) -> Any:
    """Another client drops the pin from the status while no manager runs, and another device has the address."""
    await r.runtime.stop(grace=0.0)
    await r.client.patch_status(KINDS.bmc, "b1", {"status": {"certificate": None, "sshHostKey": None}})
    bmc = r.pool.bmcs["192.0.2.1"]
    bmc.certificate = certificate
    bmc.logins.clear()
    bmc.calls.clear()
    await r.start(seed=2)
    return bmc


@pytest.mark.behaviour(
    "BMC", "A pin outlives a status that another client wiped: another certificate is refused, not pinned."
)
async def test_a_wiped_status_does_not_pin_another_certificate() -> None:
    """The pin comes back from the annotation; only an administrator accepts the other certificate."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        await wiped(r, SECOND)
        refused = await until(r, "False", "CertificateChanged")
        looks, events = list(r.pool.looks), await r.events()
        await r.operate(KINDS.bmc, "b1", "accept-certificate")
        await until(r, "True", "Connected")
        await wiped(r, SECOND)
        back = await until(r, "True", "Connected")
    assert (refused.status.certificate.sha256, refused.status.certificate.refused) == (FIRST, SECOND)
    assert looks == ["192.0.2.1:443"]
    assert ("b1", "PinRestored") in events
    assert back.metadata.annotations[KINDS.key("pinned-certificate")] == SECOND


async def test_a_refused_certificate_stays_refused_when_the_status_is_wiped() -> None:
    """A wipe while the certificate is refused is no acceptance."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        await until(r, "True", "Connected")
        bmc.certificate = SECOND
        await until(r, "False", "CertificateChanged")
        await wiped(r, SECOND)
        await asyncio.sleep(600)
        still: Any = await r.bmc()
    assert ready(still) == ("False", "CertificateChanged")
    assert (still.status.certificate.sha256, bmc.logins) == (FIRST, [])


async def test_a_pin_that_only_the_status_has_is_kept_from_then_on() -> None:
    """An earlier version wrote no annotation; `metalctl console` writes the host key to the status only."""
    async with rack(started=False) as r:
        bmc = r.plug(1)
        await r.add_bmc(1, tls=TOFU)
        pinned = {"certificate": {"sha256": FIRST}, "sshHostKey": {"sha256": "SHA256:first"}}
        await r.client.patch_status(KINDS.bmc, "b1", {"status": pinned})
        bmc.certificate = SECOND
        await r.start()
        found = await until(r, "False", "CertificateChanged")
    kept = [found.metadata.annotations[KINDS.key(name)] for name in ("pinned-certificate", "pinned-ssh-host-key")]
    assert kept == [FIRST, "SHA256:first"]


async def test_a_pin_made_after_the_status_was_wiped_counts_as_refused() -> None:
    """A console that connected in between pinned another key: the first one still applies."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "True", "Connected")
        await r.client.patch_status(KINDS.bmc, "b1", {"status": {"sshHostKey": {"sha256": "SHA256:first"}}})
        await soon(lambda: _host_key(r, "SHA256:first", ""))
        await r.client.patch_status(KINDS.bmc, "b1", {"status": {"sshHostKey": {"sha256": "SHA256:other"}}})
        await soon(lambda: _host_key(r, "SHA256:first", "SHA256:other"))


async def _host_key(r: Rack, pinned: str, refused: str) -> Any:
    bmc = await r.bmc()
    pin, kept = bmc.status.ssh_host_key, bmc.metadata.annotations.get(KINDS.key("pinned-ssh-host-key"))
    return bmc if pin is not None and (pin.sha256, pin.refused, kept) == (pinned, refused, "SHA256:first") else None


@pytest.mark.parametrize("tls", [TOFU, {"fingerprint": FIRST}])
async def test_an_update_that_drops_tls_is_refused(tls: dict[str, Any]) -> None:
    """The API answers 422: a client whose types lack the field cannot remove the pin."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, tls=tls)
        await until(r, "True", "Connected")
        with pytest.raises(Invalid, match="tls cannot be removed"):
            await r.user.patch(KINDS.bmc, "b1", {"spec": {"tls": None}})


async def test_a_pin_is_removed_only_by_an_explicit_policy() -> None:
    """Without spec.tls a changed default verifies otherwise, but the pin is there when the default returns."""
    async with rack(started=False) as r:
        r.defaults = BMCEndpointDefaults(trust_on_first_use=True)
        await r.start()
        bmc = r.plug(1)
        await r.add_bmc(1)
        await until(r, "True", "Connected")
        await _use_defaults(r, BMCEndpointDefaults())
        bmc.certificate = SECOND
        await _use_defaults(r, BMCEndpointDefaults(trust_on_first_use=True))
        await until(r, "False", "CertificateChanged")
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"tls": {}}})
        await soon(lambda: _unpinned(r))


async def _use_defaults(r: Rack, defaults: BMCEndpointDefaults) -> None:
    r.defaults = defaults
    await r.restart()
    await asyncio.sleep(60)


async def _unpinned(r: Rack) -> Any:
    bmc = await r.bmc()
    kept = KINDS.key("pinned-certificate") in bmc.metadata.annotations
    return bmc if bmc.status.certificate is None and not kept else None
