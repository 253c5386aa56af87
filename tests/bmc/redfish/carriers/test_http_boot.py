"""The URL of a UEFI HTTP boot over Redfish: the standard property, and BIOS attributes of Dell and HPE."""

from typing import Any

import pytest
import structlog

from metal.bmc.boot import BootOverride, BootTarget
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCNotSupported
from tests.bmc.redfish.carriers.media import TARGETS, TOKEN
from tests.bmc.redfish.machine import fake, redfish, system
from tests.bmc.test_calls import connect
from tests.redfish.fakes import SYSTEM, FakeBMC, answer, complaint

pytestmark = pytest.mark.looptime
URL = f"http://10.0.0.5:8082/boot/38947555/{TOKEN}/boot.efi"
ENABLED, TARGET = "BootSourceOverrideEnabled", "BootSourceOverrideTarget"
BIOS, SETTINGS = f"{SYSTEM}/Bios", f"{SYSTEM}/Bios/Settings"
DELL = {"HttpDev1EnDis": "Disabled", "HttpDev1Uri": "", "HttpDev1TlsMode": "OneWay", "BootMode": "Uefi"}
HPE = {"UrlBootFile": "", "PreBootNetwork": "Auto"}


def standard(**boot: Any) -> FakeBMC:
    shown = {ENABLED: "Disabled", TARGET: "None", TARGETS: ["None", "Pxe", "UefiHttp"], "HttpBootUri": None}
    return fake(system(Boot={**shown, **boot}))


def with_attributes(attributes: dict[str, Any], maker: str, pending: dict[str, Any] | None = None) -> FakeBMC:
    """A BMC with a settings object; iLO shows HttpBootUri as well."""
    boot = {TARGETS: ["None", "Pxe", "UefiHttp"], "HttpBootUri": "", ENABLED: "Disabled", TARGET: "None"}
    bmc = fake(system(Manufacturer=maker, Boot=boot, Bios={"@odata.id": BIOS}))
    place = {"SettingsObject": {"@odata.id": SETTINGS}, "SupportedApplyTimes": ["OnReset"]}
    bmc.resources[BIOS] = {"@odata.id": BIOS, "Attributes": dict(attributes), "@Redfish.Settings": place}
    bmc.resources[SETTINGS] = {"@odata.id": SETTINGS, "Attributes": dict(pending or {})}
    return bmc


def staged(bmc: FakeBMC) -> list[Any]:
    return [request.body for request in bmc.seen("PATCH", SETTINGS)]


async def test_the_property_is_set_with_a_one_time_override_and_read_back() -> None:
    """Setting the URI alone does not select the target."""
    bmc = standard()
    state = await redfish(bmc).set_http_boot(SYSTEM, URL)
    (request,) = bmc.seen("PATCH")
    assert request.body["Boot"] == {ENABLED: "Once", TARGET: "UefiHttp", "HttpBootUri": URL}
    assert (state.url, state.needs_reset) == (URL, False)
    assert state.override.is_network
    assert TOKEN not in repr(state)


async def test_a_discarded_url_is_seen() -> None:
    """A BMC that answers 204 and keeps the target only: the firmware would ask DHCP."""
    bmc = standard()
    bmc.fault("PATCH", SYSTEM, answer(204))
    bmc.resources[SYSTEM]["Boot"] |= {ENABLED: "Once", TARGET: "UefiHttp"}
    state = await redfish(bmc).set_http_boot(SYSTEM, URL)
    assert (state.url, state.override.target) == ("", "UefiHttp")


@pytest.mark.parametrize("refused", [[], [answer(400)], [answer(204)]])
async def test_clearing_removes_override_and_url(refused: list[Any]) -> None:
    """With null, or an empty text where that is refused or ignored."""
    bmc = standard(**{ENABLED: "Once", TARGET: "UefiHttp", "HttpBootUri": URL})
    bmc.fault("PATCH", SYSTEM, None, *refused)
    state = await redfish(bmc).clear_http_boot(SYSTEM)
    assert (state.url, state.override.is_network) == ("", False)
    assert [request.body["Boot"].get("HttpBootUri", URL) for request in bmc.seen("PATCH")] == [
        URL, None, *[""] * len(refused)
    ]  # fmt: skip


async def test_a_link_to_a_missing_bios_is_no_obstacle() -> None:
    """The property is used."""
    bmc = standard()
    bmc.resources[SYSTEM]["Bios"] = {"@odata.id": BIOS}
    assert (await redfish(bmc).set_http_boot(SYSTEM, URL)).url == URL


async def test_without_the_property_it_is_not_supported() -> None:
    """Nothing is written."""
    bmc = fake()
    with pytest.raises(BMCNotSupported, match="offers no HttpBootUri"):
        await redfish(bmc).set_http_boot(SYSTEM, URL)
    assert not bmc.seen("PATCH")


@pytest.mark.parametrize(
    ("maker", "attributes", "written"),
    [
        ("Dell Inc.", DELL, {"HttpDev1EnDis": "Enabled", "HttpDev1TlsMode": "None", "HttpDev1Uri": URL}),
        ("Dell Inc.", {"HttpDev1EnDis": "Disabled", "HttpDev1Uri": ""}, {
            "HttpDev1EnDis": "Enabled", "HttpDev1Uri": URL}),
        ("HPE", HPE, {"UrlBootFile": URL}),
    ],
)  # fmt: skip
async def test_the_attributes_of_dell_and_hpe_take_the_url_and_a_reset(
    maker: str, attributes: dict[str, Any], written: dict[str, str]
) -> None:
    """One PATCH of the settings object; the URL is read back as pending, and the override is set without it."""
    bmc = with_attributes(attributes, maker)
    state = await redfish(bmc).set_http_boot(SYSTEM, URL)
    assert staged(bmc) == [{"Attributes": written, "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}]
    assert (state.url, state.needs_reset, state.override) == (URL, True, BootOverride("Once", "UefiHttp"))


async def test_a_url_with_tls_needs_no_tls_mode() -> None:
    """The mode of the site is left alone."""
    bmc = with_attributes(DELL, "Dell Inc.")
    await redfish(bmc).set_http_boot(SYSTEM, "https://boot.example/x.efi")
    assert "HttpDev1TlsMode" not in staged(bmc)[0]["Attributes"]


async def test_a_url_that_is_pending_is_not_written_again() -> None:
    """iDRAC refuses a second change while the job of the first one waits."""
    bmc = with_attributes(HPE, "HPE", pending={"UrlBootFile": URL})
    assert (await redfish(bmc).set_http_boot(SYSTEM, URL)).needs_reset
    assert not staged(bmc)


async def test_after_the_reset_the_url_is_in_use() -> None:
    """The current attributes have it, and the settings object shows no change."""
    state = await redfish(with_attributes({"UrlBootFile": URL}, "HPE")).http_boot(SYSTEM)
    assert (state.url, state.needs_reset) == (URL, False)


async def test_an_override_that_such_a_bmc_refuses_is_no_error() -> None:
    """iLO 6 refuses any override (libredfish#76); the result shows that none is set."""
    bmc = with_attributes(HPE, "HPE")
    bmc.fault("PATCH", SYSTEM, answer(400, complaint("Not supported.", "iLO.2.14.UnsupportedOperation")))
    state = await redfish(bmc).set_http_boot(SYSTEM, URL)
    assert (state.url, state.override.is_network) == (URL, False)
    bmc.fault("PATCH", SYSTEM, answer(503))
    with pytest.raises(BMCBusy):
        await redfish(bmc).set_http_boot(SYSTEM, URL)


async def test_an_attribute_that_is_locked_is_the_bmcs_error() -> None:
    """Some iDRACs show HttpDev1Uri as read-only; the sentence does not repeat the URL."""
    bmc = with_attributes(DELL, "Dell Inc.")
    bmc.fault("PATCH", SETTINGS, answer(400, complaint(f"HttpDev1Uri {URL} is read-only.", "IDRAC.2.8.SYS410")))
    with pytest.raises(BMCBadRequest, match="is read-only") as error:
        await redfish(bmc).set_http_boot(SYSTEM, URL)
    assert TOKEN not in str(error.value)


async def test_clearing_attributes_takes_a_reset_too() -> None:
    """Until then the firmware still has the URL, whose token is spent."""
    bmc = with_attributes({**DELL, "HttpDev1Uri": URL, "HttpDev1EnDis": "Enabled"}, "Dell Inc.")
    state = await redfish(bmc).clear_http_boot(SYSTEM)
    assert staged(bmc)[0]["Attributes"] == {"HttpDev1EnDis": "Disabled", "HttpDev1Uri": ""}
    assert (state.url, state.needs_reset) == ("", True)


@pytest.mark.behaviour(
    "BMC", "The URL of a UEFI HTTP boot is in no log line, and in no error of the BMC that quotes it."
)
async def test_the_url_is_not_logged() -> None:
    """Neither as an argument nor in the BMC's words."""
    bmc = standard()
    bmc.fault("PATCH", SYSTEM, answer(400, complaint(f"{URL} is wrong, {TOKEN} too.")))
    with structlog.testing.capture_logs() as logs:
        with pytest.raises(BMCBadRequest):
            await connect(bmc).set_http_boot(SYSTEM, URL)
        await connect(bmc).set_http_boot(SYSTEM, URL)
    assert [line["operation"] for line in logs if line["event"] == "BMC write"] == ["set_http_boot"] * 2
    assert TOKEN not in repr(logs)


def test_an_override_shows_no_url_in_its_repr() -> None:
    """Overrides are parts of systems, which assertions and debug lines show."""
    assert TOKEN not in repr(BootOverride("Once", BootTarget.UEFI_HTTP, "UEFI", URL))
