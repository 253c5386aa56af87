"""Simulated BMCs that carry boot secrets, as the Redfish client uses them."""

import asyncio
from typing import Any

import pytest

from metal.bmc.carriers.offers import Way
from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from metal.machineapi.http import response as http
from metal.machineapi.http.server import Request, Route
from metal.sim.machine.network import InProcessNetwork
from metal.sim.options import Carrier, Options, carriers
from metal.sim.sites.fleet import Fleet
from tests.sim.bmc.test_redfish_service import OPTIONS, SYSTEM, ask, bmc, message, rack
from tests.sim.machine.efi import iso, uki

pytestmark = pytest.mark.looptime
CD = f"{SYSTEM}/VirtualMedia/Cd"
INSERT = f"{CD}/Actions/VirtualMedia.InsertMedia"
TOKEN = "c2VjcmV0LXRva2VuLW9uY2U"
URL, ISO = f"http://10.0.0.5/boot/x/{TOKEN}/boot.efi", f"http://10.0.0.5/boot/x/{TOKEN}/s1.iso"


def fleet(*offered: str, n: int = 1) -> Fleet:
    """One machine with all of these, or `n` machines that mix them."""
    mixed = tuple(map(carriers, offered)) if n > 1 else (carriers("+".join(offered) or "None"),)
    return rack(n, Options(password=OPTIONS.password, carriers=mixed, medium=5.0))


async def offered(made: Fleet, number: int = 0) -> list[Way]:
    return [offer.way for offer in await bmc(made, number=number).offered_methods(SYSTEM) if offer.offered]


async def test_a_fleet_mixes_what_its_bmcs_offer() -> None:
    """The entries go round."""
    made = fleet("VirtualMedia+AssetTag", "HttpBootUri", "None", "UrlBootFile", n=5)
    assert [await offered(made, number) for number in range(5)] == [
        [Way.VIRTUAL_MEDIA, Way.IPXE, Way.ASSET_TAG],
        [Way.UEFI_HTTP, Way.IPXE],
        [Way.IPXE],
        [Way.UEFI_HTTP, Way.IPXE],
        [Way.VIRTUAL_MEDIA, Way.IPXE, Way.ASSET_TAG],
    ]


def test_an_unknown_carrier_is_an_error() -> None:
    """By its name."""
    with pytest.raises(ValueError, match="Floppy"):
        carriers("VirtualMedia+Floppy")


async def test_a_medium_takes_its_time_and_is_ejected() -> None:
    """Inserted is false at first; the slot that takes no CD has no action."""
    made = fleet("VirtualMedia")
    view = bmc(made)
    assert [slot.takes_cd for slot in await view.media_slots(SYSTEM)] == [True, False]
    assert not (await view.insert_medium(SYSTEM, CD, ISO)).is_ready(ISO)
    await asyncio.sleep(5)
    assert (await view.insert_medium(SYSTEM, CD, ISO)).is_ready(ISO)
    assert (await view.set_medium_boot(SYSTEM)).is_medium
    assert not (await view.eject_medium(SYSTEM, CD)).inserted
    assert made.machines[0].state.medium == ""


async def test_a_medium_that_stays_is_seen() -> None:
    """The BMC accepts the ejection, and shows the medium."""
    made = fleet("VirtualMedia")
    made.machines[0].faults.keeps_medium = True
    view = bmc(made)
    await view.insert_medium(SYSTEM, CD, ISO)
    await asyncio.sleep(5)
    assert (await view.eject_medium(SYSTEM, CD)).inserted
    other = ISO.replace("s1", "s2")
    assert not (await view.insert_medium(SYSTEM, CD, other)).is_ready(other)
    assert made.machines[0].state.medium == ISO


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"Image": "http://x/y.img"}, 400, "PropertyValueNotInList"),
        ({"Image": "nfs://x/y.iso"}, 400, "PropertyValueNotInList"),
        ({"Image": ISO, "MediaType": "CD"}, 400, "PropertyUnknown"),
        ({"Image": ISO, "TransferProtocolType": "CIFS"}, 400, "PropertyValueNotInList"),
    ],
)
async def test_an_insertion_that_is_wrong_is_refused(body: dict[str, Any], status: int, reason: str) -> None:
    """A second one is refused while a medium is inserted."""
    made = fleet("VirtualMedia")
    answer = ask(made, "POST", INSERT, body)
    assert (answer.status, message(answer)) == (status, reason)
    assert ask(made, "POST", INSERT, {"Image": ISO}).status == 204
    assert ask(made, "POST", INSERT, {"Image": ISO}).status == 409


async def test_http_boot_uri_is_set_and_removed() -> None:
    """It stays after the boot that used it, until it is removed."""
    made = fleet("HttpBootUri")
    view = bmc(made)
    state = await view.set_http_boot(SYSTEM, URL)
    assert (state.url, state.override.target, state.needs_reset) == (URL, "UefiHttp", False)
    await view.power_on(SYSTEM)
    await asyncio.sleep(60)
    state = await view.http_boot(SYSTEM)
    assert (state.url, state.override.is_network) == (URL, False)
    assert (await view.clear_http_boot(SYSTEM)).url == ""


@pytest.mark.parametrize("carrier", [Carrier.HTTP_DEV1_URI, Carrier.URL_BOOT_FILE])
async def test_a_bios_attribute_takes_the_url_over_at_the_next_start(carrier: Carrier) -> None:
    """Pending before, in effect afterwards; the same to remove it."""
    made = fleet(carrier)
    view, machine = bmc(made), made.machines[0]
    assert (await view.set_http_boot(SYSTEM, URL)).needs_reset
    assert machine.http_url == ""
    await view.power_on(SYSTEM)
    await asyncio.sleep(60)
    state = await view.http_boot(SYSTEM)
    assert (state.url, state.needs_reset, machine.http_url) == (URL, False, URL)
    assert (await view.clear_http_boot(SYSTEM)).needs_reset


@pytest.mark.parametrize("carrier", [Carrier.ASSET_TAG, Carrier.CHASSIS_ASSET_TAG])
async def test_an_asset_tag_is_written(carrier: Carrier) -> None:
    """At the system or the chassis; one that is too long is refused."""
    made = fleet(carrier)
    view = bmc(made)
    (tag,) = await view.asset_tags(SYSTEM)
    assert ("Chassis" in tag.place) is (carrier is Carrier.CHASSIS_ASSET_TAG)
    assert (await view.set_asset_tag(SYSTEM, tag.place, "n" * 32)).value == "n" * 32
    assert made.machines[0].state.asset_tag == "n" * 32
    with pytest.raises(BMCBadRequest):
        await view.set_asset_tag(SYSTEM, tag.place, "n" * 33)


async def test_a_bmc_without_carriers_refuses_what_it_does_not_offer() -> None:
    """As an unknown property, or a missing resource."""
    made = fleet()
    assert message(ask(made, "PATCH", SYSTEM, {"Boot": {"HttpBootUri": URL}})) == "PropertyUnknown"
    assert message(ask(made, "PATCH", SYSTEM, {"AssetTag": "x"})) == "PropertyUnknown"
    assert message(ask(made, "PATCH", "/redfish/v1/Chassis/1", {"AssetTag": "x"})) == "PropertyUnknown"
    assert ask(made, "GET", CD).status == 404
    assert ask(made, "POST", INSERT, {"Image": ISO}).status == 404
    with pytest.raises(BMCNotSupported):
        await bmc(made).set_http_boot(SYSTEM, URL)


async def test_secure_boot_is_shown() -> None:
    """In SetupMode while it is off."""
    made = fleet()
    first = await bmc(made).secure_boot(SYSTEM)
    made.machines[0].state.secure_boot = True
    second = await bmc(made).secure_boot(SYSTEM)
    assert first is not None
    assert second is not None
    assert (first.enforces, second.enforces) == (False, True)


def served(made: Fleet, image: bytes) -> list[tuple[str, str]]:
    """Serve this at every URL of 10.0.0.5; the result gets method and source of each request."""
    asked: list[tuple[str, str]] = []

    async def send(request: Request) -> http.Response:
        asked.append((request.method, request.client))
        return http.Response(200, image, "application/octet-stream")

    network = made.settings.network
    assert isinstance(network, InProcessNetwork)
    network.mount("http://10.0.0.5", [Route("file", "/boot/x/{token}/{name}", ("GET", "HEAD"), send)])
    return asked


async def test_a_machine_boots_from_the_medium_that_was_inserted() -> None:
    """Inserted, chosen once and switched on by the Redfish client; the BMC reads it, and it is ejected afterwards."""
    made = fleet("VirtualMedia")
    view, machine, asked = bmc(made), made.machines[0], served(made, iso(uki("quiet")))
    await view.insert_medium(SYSTEM, CD, ISO)
    await asyncio.sleep(5)
    assert (await view.insert_medium(SYSTEM, CD, ISO)).is_ready(ISO)
    await view.set_medium_boot(SYSTEM)
    await view.power_on(SYSTEM)
    await asyncio.sleep(60)
    assert asked == [("HEAD", machine.identity.bmc_ip), ("GET", machine.identity.bmc_ip)]
    assert machine.state.os is not None
    assert not (await view.eject_medium(SYSTEM, CD)).inserted
    assert not (await view.system(SYSTEM)).boot.is_medium


@pytest.mark.parametrize("carrier", [Carrier.HTTP_BOOT_URI, Carrier.HTTP_DEV1_URI, Carrier.URL_BOOT_FILE])
async def test_a_machine_boots_from_the_url_of_its_bmc(carrier: Carrier) -> None:
    """At the next start; with a BIOS attribute, too: it is applied before the boot of that start."""
    made = fleet(carrier)
    view, machine, asked = bmc(made), made.machines[0], served(made, uki("quiet"))
    await view.set_http_boot(SYSTEM, URL)
    await view.power_on(SYSTEM)
    await asyncio.sleep(60)
    assert asked == [("HEAD", machine.identity.host_ip), ("GET", machine.identity.host_ip)]
    assert machine.state.os is not None
    assert TOKEN in machine.secrets
