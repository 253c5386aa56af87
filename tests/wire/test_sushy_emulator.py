"""The Redfish client against sushy-tools' emulator over sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from metal.bmc.boot import BootTarget
from metal.bmc.carriers.secure_boot import SecureBootState
from metal.bmc.errors import BMCAuthError, BMCBadRequest, BMCError, BMCNotFound, BMCNotSupported, BMCTLSError
from metal.bmc.pool import BMC, BMCEndpoint
from metal.bmc.power import PowerState, ResetType
from metal.bmc.redfish.pool import RedfishPool
from tests.kube.client.pki import Authority
from tests.wire.emulator import OFF, ON, PASSWORD, USER, Emulator, password_file, running

pytestmark = pytest.mark.wire
SYSTEM_OFF, SYSTEM_ON = f"/redfish/v1/Systems/{OFF}", f"/redfish/v1/Systems/{ON}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with running(tmp_path_factory.mktemp("plain")) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Emulator]:
    """With TLS and basic authentication."""
    folder = tmp_path_factory.mktemp("guarded")
    pair = authority.issue("bmc")
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    options = {
        "SUSHY_EMULATOR_SSL_CERT": str(folder / "tls.crt"),
        "SUSHY_EMULATOR_SSL_KEY": str(folder / "tls.key"),
        "SUSHY_EMULATOR_AUTH_FILE": str(password_file(folder)),
    }
    with running(folder, **options) as emulator:
        yield emulator


@pytest.fixture
async def pool() -> AsyncIterator[RedfishPool]:
    pool = RedfishPool()
    yield pool
    await pool.aclose()


@pytest.fixture
def bmc(pool: RedfishPool, plain: Emulator) -> BMC:
    return pool.get(BMCEndpoint("plain", "127.0.0.1", plain.port, scheme="http"))


@pytest.fixture
def access(guarded: Emulator, authority: Authority) -> BMCEndpoint:
    ca = authority.pem.decode()
    return BMCEndpoint("guarded", "127.0.0.1", guarded.port, username=USER, password=PASSWORD, ca_pem=ca)


async def test_systems_are_listed_with_their_state(bmc: BMC) -> None:
    """Both, with UUID and power."""
    found = {info.uuid: info for info in await bmc.systems()}
    assert set(found) == {OFF, ON}
    assert found[OFF].uri == SYSTEM_OFF
    assert all(info.bootable and info.manufacturer == "Sushy Emulator" for info in found.values())


async def test_the_inventory_of_a_system_is_read(bmc: BMC, pool: RedfishPool) -> None:
    """Storage, drives and NICs in few requests; memory, which this emulator lacks, is a problem and not an error."""
    await bmc.systems()
    before = pool.total_requests
    found = await bmc.inventory(SYSTEM_OFF)
    assert [nic.mac_address for nic in found.network_interfaces] == ["02:00:00:aa:bb:01"]
    (storage,) = found.storages
    assert (storage.name, storage.state, storage.volumes) == ("Local Storage Controller", "Enabled", ())
    assert [(drive.name, drive.capacity_bytes, drive.type) for drive in storage.drives] == [
        ("disk one", 899527000000, "SAS")
    ]
    assert all(problem.startswith("Could not read all memory modules") for problem in found.problems)
    assert pool.total_requests - before <= 10


async def test_observing_costs_one_request(bmc: BMC, pool: RedfishPool) -> None:
    """In steady state."""
    await bmc.system(SYSTEM_ON)
    before = pool.total_requests
    await bmc.system(SYSTEM_ON)
    assert pool.total_requests - before == 1


async def test_power_goes_where_it_is_told(bmc: BMC) -> None:
    """One on, one off; the emulator takes up to 11 s, while each request returns at once."""
    await asyncio.gather(bmc.power_on(SYSTEM_OFF), bmc.power_off(SYSTEM_ON, force=True))
    wanted = {SYSTEM_OFF: PowerState.ON, SYSTEM_ON: PowerState.OFF}
    async with asyncio.timeout(15):
        while any([(await bmc.system(uri)).power_state is not state for uri, state in wanted.items()]):  # noqa: ASYNC110  # the other process tells nobody
            await asyncio.sleep(0.2)
    await bmc.power_on(SYSTEM_OFF)
    await bmc.power_off(SYSTEM_ON)


async def test_resets_are_those_the_emulator_lists(bmc: BMC) -> None:
    """A type that it does not list is rejected by the client, with the list."""
    with pytest.raises(BMCNotSupported, match="it allows On, ForceOff, GracefulShutdown"):
        await bmc.reset(SYSTEM_ON, ResetType.POWER_CYCLE)


async def test_network_boot_is_set_read_back_and_cleared(bmc: BMC) -> None:
    """It ignores Once and does not support Disabled: Continuous is read back, clearing selects the disk."""
    override = await bmc.set_network_boot(SYSTEM_ON)
    assert (override.target, override.enabled, override.is_network) == ("Pxe", "Continuous", True)
    assert (await bmc.system(SYSTEM_ON)).boot == override
    cleared = await bmc.clear_boot_override(SYSTEM_ON)
    assert not cleared.is_network
    assert not (await bmc.system(SYSTEM_ON)).boot.is_network


async def test_uefi_http_without_a_uri_is_accepted(bmc: BMC) -> None:
    """The emulator turns it into Pxe, and that is what is returned."""
    assert (await bmc.set_network_boot(SYSTEM_OFF, BootTarget.UEFI_HTTP)).target == "Pxe"


async def test_the_led_follows(bmc: BMC) -> None:
    """Set and read back."""
    for state in ("Blinking", "Off", "Lit"):
        await bmc.set_indicator_led(SYSTEM_OFF, state)
        assert (await bmc.system(SYSTEM_OFF)).indicator_led == state


async def test_the_manager_is_found(bmc: BMC) -> None:
    """By UUID, or the first; a missing reset action is an error."""
    assert (await bmc.manager(ON.upper())).uuid == ON
    info = await bmc.manager()
    assert (info.firmware_version, info.state, info.power_state) == ("1.00", "Enabled", PowerState.ON)
    with pytest.raises(BMCNotSupported, match="offers no reset"):
        await bmc.reset_manager()


async def test_what_the_emulator_lacks_is_said(bmc: BMC) -> None:
    """No boot order, no BIOS, no such system."""
    assert await bmc.bios_attributes(SYSTEM_OFF) == {}
    with pytest.raises(BMCNotSupported, match="no boot order"):
        await bmc.set_boot_order(SYSTEM_OFF, ("Boot0001",))
    with pytest.raises(BMCNotFound, match="Fake system nobody was not found"):
        await bmc.system("/redfish/v1/Systems/nobody")


async def test_an_alias_is_followed_within_the_bmc(bmc: BMC) -> None:
    """The emulator redirects from a system's name to its UUID."""
    assert (await bmc.system("/redfish/v1/Systems/on")).uuid == ON


async def test_over_verified_tls_with_basic_authentication(pool: RedfishPool, access: BMCEndpoint) -> None:
    """The emulator has no session service; reads and writes work with basic authentication."""
    bmc = pool.get(access)
    assert len(await bmc.systems()) == 2
    assert (await bmc.set_network_boot(SYSTEM_OFF)).is_network


async def test_a_wrong_password_is_refused_and_not_repeated(pool: RedfishPool, access: BMCEndpoint) -> None:
    """The second request is not sent to the emulator."""
    bmc = pool.get(replace(access, password="wrong"))
    with pytest.raises(BMCAuthError, match="refused the user name or password"):
        await bmc.systems()
    before = pool.total_requests
    with pytest.raises(BMCAuthError, match="no more often than"):
        await bmc.systems()
    assert pool.total_requests == before


async def test_a_certificate_of_another_ca_is_refused(pool: RedfishPool, access: BMCEndpoint) -> None:
    """Before any credentials are sent; unverified only when configured."""
    with pytest.raises(BMCTLSError, match="is not trusted"):
        await pool.get(replace(access, ca_pem=Authority().pem.decode())).systems()
    assert len(await pool.get(replace(access, ca_pem="", verify=False)).systems()) == 2


@pytest.fixture
async def medium(tmp_path: Path) -> AsyncIterator[str]:
    """The URL of an image, on a server of its own; the emulator downloads it when it is inserted."""

    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=b"an ISO", content_type="application/octet-stream")

    app = web.Application()
    app.router.add_get("/boot/{token}/s1.iso", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    yield f"http://127.0.0.1:{port}/boot/one-time-token-of-this-boot/s1.iso"
    await runner.cleanup()


async def test_a_medium_is_inserted_booted_and_ejected(bmc: BMC, medium: str) -> None:
    """The emulator has a CD and a floppy at the system; it ignores Once, and clearing selects the disk."""
    slots = await bmc.media_slots(SYSTEM_OFF)
    assert [slot.takes_cd for slot in slots] == [True, False]
    held = await bmc.insert_medium(SYSTEM_OFF, slots[0].uri, medium)
    assert held.is_ready(medium)
    assert (await bmc.set_medium_boot(SYSTEM_OFF)).is_medium
    assert not (await bmc.clear_boot_override(SYSTEM_OFF)).is_medium
    assert not (await bmc.eject_medium(SYSTEM_OFF, slots[0].uri)).inserted
    assert not any(slot.inserted for slot in await bmc.media_slots(SYSTEM_OFF))


async def test_a_medium_that_cannot_be_read_is_an_error_without_its_url(bmc: BMC, medium: str) -> None:
    """The emulator answers the insertion with the error of its download."""
    slot = (await bmc.media_slots(SYSTEM_ON))[0].uri
    missing = medium.replace("/boot/", "/none/")
    with pytest.raises(BMCError) as error:
        await bmc.insert_medium(SYSTEM_ON, slot, missing)
    assert "one-time-token" not in str(error.value)
    assert not (await bmc.eject_medium(SYSTEM_ON, slot)).inserted


async def test_an_offer_is_worth_what_a_try_shows(bmc: BMC, medium: str) -> None:
    """The emulator shows HttpBootUri (as the word None) and AssetTag, and refuses both: its fake driver has neither."""
    assert all(offer.offered for offer in await bmc.offered_methods(SYSTEM_OFF))
    with pytest.raises(BMCBadRequest):
        await bmc.set_http_boot(SYSTEM_OFF, medium)
    places = [tag.place for tag in await bmc.asset_tags(SYSTEM_OFF)]
    for place in places:
        with pytest.raises(BMCError, match="PATCH"):
            await bmc.set_asset_tag(SYSTEM_OFF, place, "nonce-of-this-boot")
    assert places
    assert not (await bmc.http_boot(SYSTEM_OFF)).url


async def test_secure_boot_is_read(bmc: BMC) -> None:
    """Off, in the mode that the emulator always shows."""
    assert await bmc.secure_boot(SYSTEM_OFF) == SecureBootState(False, False, "DeployedMode")
