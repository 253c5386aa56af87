"""Virtual media over Redfish, in the shapes of different vendors."""

import asyncio
from typing import Any

import pytest
import structlog

from metal.bmc.boot import BootOverride
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCNotSupported, BMCServerError
from tests.bmc.redfish.carriers.media import OTHER, TARGETS, TOKEN, URL, MediaBMC, refusal, slot, with_media
from tests.bmc.redfish.machine import MANAGER, redfish
from tests.bmc.test_calls import connect
from tests.redfish.fakes import SYSTEM, answer, complaint

pytestmark = pytest.mark.looptime
CD = f"{SYSTEM}/VirtualMedia/Cd"
OF_MANAGER = f"{MANAGER}/VirtualMedia"
INSERT, EJECT = f"{CD}/Actions/VirtualMedia.InsertMedia", f"{CD}/Actions/VirtualMedia.EjectMedia"
TASK = "/redfish/v1/TaskService/Tasks/7"


def bodies(bmc: MediaBMC, path: str = INSERT) -> list[object]:
    return [request.body for request in bmc.seen("POST", path)]


async def test_slots_of_the_system_are_found_those_with_a_cd_first() -> None:
    """sushy-tools and OpenBMC: /Systems/ID/VirtualMedia."""
    bmc = with_media(slot(f"{SYSTEM}/VirtualMedia/Floppy", ("Floppy", "USBStick")), slot(CD))
    slots = await redfish(bmc).media_slots(SYSTEM)
    assert [(each.uri, each.takes_cd) for each in slots] == [(CD, True), (f"{SYSTEM}/VirtualMedia/Floppy", False)]


async def test_slots_of_the_manager_are_found() -> None:
    """iLO, XCC and older iDRACs: /Managers/ID/VirtualMedia."""
    bmc = with_media(slot(f"{OF_MANAGER}/1", ("Floppy", "USBStick")), slot(f"{OF_MANAGER}/2"), of_manager=True)
    assert [each.uri for each in await redfish(bmc).media_slots(SYSTEM)] == [f"{OF_MANAGER}/2", f"{OF_MANAGER}/1"]


async def test_a_bmc_without_media_has_no_slots() -> None:
    """Neither the system nor the manager links any."""
    bmc = with_media()
    del bmc.resources[SYSTEM]["VirtualMedia"]
    assert await redfish(bmc).media_slots(SYSTEM) == ()


async def test_a_medium_is_inserted_with_the_image_alone_and_read_back() -> None:
    """Supermicro X11 refuses Inserted and WriteProtected, whose defaults are what is wanted."""
    bmc = with_media(slot(CD))
    held = await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert bodies(bmc) == [{"Image": URL}]
    assert held.is_ready(URL)
    assert TOKEN not in repr(held)


@pytest.mark.parametrize(
    ("insert", "sent"),
    [
        ({"TransferProtocolType@Redfish.AllowableValues": ["CIFS", "HTTP"]}, {"TransferProtocolType": "HTTP"}),
        ({"TransferMethod@Redfish.AllowableValues": ["Stream", "Upload"]}, {"TransferMethod": "Stream"}),
        ({"MediaType@Redfish.AllowableValues": ["USBStick", "DVD"]}, {"MediaType": "DVD"}),
        ({"@Redfish.ActionInfo": "/redfish/v1/info"}, {"TransferProtocolType": "HTTP"}),
    ],
)
async def test_parameters_whose_values_are_listed_are_sent(insert: dict[str, object], sent: dict[str, str]) -> None:
    """On the action itself, or in its ActionInfo."""
    bmc = with_media(slot(CD, insert=insert))
    listed = {"Name": "TransferProtocolType", "AllowableValues": ["HTTP", "HTTPS"]}
    bmc.resources["/redfish/v1/info"] = {"Parameters": [listed]}
    await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert bodies(bmc) == [{"Image": URL, **sent}]


@pytest.mark.parametrize(
    ("required", "unknown", "last"),
    [
        (("TransferProtocolType",), (), {"Image": URL, "TransferProtocolType": "HTTP"}),
        (("TransferProtocolType", "TransferMethod"), (), {
            "Image": URL, "TransferProtocolType": "HTTP", "TransferMethod": "Stream"}),
        (("UserName", "Password"), (), {"Image": URL, "UserName": "none", "Password": "none"}),
        ((), ("TransferMethod",), {"Image": URL}),
    ],
)  # fmt: skip
async def test_parameters_follow_the_refusal(
    required: tuple[str, ...], unknown: tuple[str, ...], last: dict[str, str]
) -> None:
    """What it names and was not sent is added, and what was sent is left out: one request for each refusal."""
    insert = {"TransferMethod@Redfish.AllowableValues": ["Stream"]} if unknown else {}
    bmc = with_media(slot(CD, insert=insert))
    bmc.required, bmc.unknown = required, unknown
    assert (await redfish(bmc).insert_medium(SYSTEM, CD, URL)).inserted
    assert bodies(bmc)[-1] == last
    assert len(bodies(bmc)) == 1 + len(required) + len(unknown)


async def test_a_refusal_that_names_no_parameter_is_the_error() -> None:
    """One request; the words of the BMC without the path of the URL that they quote."""
    bmc = with_media(slot(CD))
    bmc.fault("POST", INSERT, refusal("ActionParameterValueFormatError", f"The value '{URL}' for Image is wrong."))
    with pytest.raises(BMCBadRequest, match=r"The value 'http://10.0.0.5:8082/\*\*\*' for Image is wrong") as error:
        await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert TOKEN not in str(error.value)
    assert len(bodies(bmc)) == 1


async def test_contradicting_refusals_end() -> None:
    """A BMC that wants a parameter and refuses it is not asked without end."""
    bmc = with_media(slot(CD))
    bmc.required, bmc.unknown = ("TransferMethod",), ("TransferMethod",)
    with pytest.raises(BMCBadRequest, match="TransferMethod"):
        await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert len(bodies(bmc)) == 2


async def test_a_busy_bmc_is_not_asked_with_other_parameters() -> None:
    """503 means later, whatever it names."""
    bmc = with_media(slot(CD))
    bmc.fault("POST", INSERT, answer(503, complaint("TransferMethod is busy.")))
    with pytest.raises(BMCBusy):
        await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert len(bodies(bmc)) == 1


async def test_without_an_action_the_slot_is_patched() -> None:
    """Lenovo XCC: no action; Inserted is required there. Ejecting writes null."""
    bmc = with_media(slot(CD, actions=False))
    view = redfish(bmc)
    assert (await view.insert_medium(SYSTEM, CD, URL)).inserted
    await view.eject_medium(SYSTEM, CD)
    assert [request.body for request in bmc.seen("PATCH", CD)] == [
        {"Image": URL, "Inserted": True, "WriteProtected": True},
        {"Image": None, "Inserted": False},
    ]


async def test_a_stale_medium_is_ejected_first() -> None:
    """Another image, of a former boot or of somebody else: it would boot again."""
    bmc = with_media(slot(CD, Image=OTHER, Inserted=True, ConnectedVia="URI"))
    held = await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert [request.path for request in bmc.seen("POST")][1:] == [EJECT, INSERT]
    assert held.is_ready(URL)


async def test_nothing_is_inserted_while_a_stale_medium_stays() -> None:
    """A BMC that accepts the ejection and does nothing: the slot comes back as it is."""
    bmc = with_media(slot(CD, Image=OTHER, Inserted=True, ConnectedVia="URI"))
    bmc.fault("POST", EJECT, answer(204))
    held = await redfish(bmc).insert_medium(SYSTEM, CD, URL)
    assert held.inserted
    assert not held.is_ready(URL)
    assert not bodies(bmc)


async def test_an_image_that_is_inserted_already_is_not_inserted_again() -> None:
    """A manager that was killed after the request repeats it."""
    bmc = with_media(slot(CD, Image=URL, Inserted=True, ConnectedVia="URI"))
    assert (await redfish(bmc).insert_medium(SYSTEM, CD, URL)).is_ready(URL)
    assert not bodies(bmc)


@pytest.mark.parametrize("in_task", [True, False])
async def test_an_insertion_that_takes_time_is_not_ready_yet(in_task: bool) -> None:
    """The BMC shows the image after some reads, in a task or without one; until then there is one request."""
    bmc = with_media(slot(CD))
    bmc.late, bmc.task = 5, {"@odata.id": TASK, "Id": "7", "TaskState": "Running"} if in_task else None
    view = redfish(bmc)
    assert not (await view.insert_medium(SYSTEM, CD, URL)).is_ready(URL)
    assert not (await view.insert_medium(SYSTEM, CD, URL)).is_ready(URL)
    if bmc.task is not None:
        bmc.task["TaskState"] = "Completed"
    while not (held := await view.insert_medium(SYSTEM, CD, URL)).is_ready(URL):
        pass
    assert held.inserted
    assert len(bodies(bmc)) == 1


async def test_an_image_that_never_appears_is_requested_again_after_a_minute() -> None:
    """A BMC that restarted has forgotten the request."""
    bmc = with_media(slot(CD))
    bmc.late = 99
    view = redfish(bmc)
    for _ in range(3):
        await view.insert_medium(SYSTEM, CD, URL)
        await asyncio.sleep(45)
    assert len(bodies(bmc)) == 2


@pytest.mark.parametrize("change", [{"Inserted": False}, {"Inserted": True, "ConnectedVia": "NotConnected"}])
async def test_a_slot_that_names_the_image_and_is_not_connected_is_not_ready(change: dict[str, Any]) -> None:
    """Nothing is sent: the BMC is still fetching."""
    bmc = with_media(slot(CD, Image=URL, **change))
    assert not (await redfish(bmc).insert_medium(SYSTEM, CD, URL)).is_ready(URL)
    assert not bodies(bmc)


async def test_the_failure_of_a_task_is_reported_once_and_then_tried_again() -> None:
    """With the BMC's words, without the URL."""
    bmc = with_media(slot(CD))
    words = f"Cannot read {URL}: 404."
    bmc.late, bmc.task = 99, {"@odata.id": TASK, "TaskState": "Running", "Messages": [{"Message": words}]}
    view = redfish(bmc)
    await view.insert_medium(SYSTEM, CD, URL)
    bmc.task["TaskState"] = "Exception"
    with pytest.raises(BMCServerError, match=r"did not insert the medium: Cannot read http://10.0.0.5:8082/\*\*\*"):
        await view.insert_medium(SYSTEM, CD, URL)
    bmc.task, bmc.late = None, 0
    assert (await view.insert_medium(SYSTEM, CD, URL)).is_ready(URL)


async def test_a_task_that_is_gone_has_ended() -> None:
    """OpenBMC removes it at once; the slot says what became of it."""
    bmc = with_media(slot(CD))
    bmc.task = {"@odata.id": TASK, "TaskState": "Running"}
    view = redfish(bmc)
    await view.insert_medium(SYSTEM, CD, URL)
    del bmc.resources[TASK]
    assert (await view.insert_medium(SYSTEM, CD, URL)).is_ready(URL)
    assert len(bodies(bmc)) == 1


async def test_an_image_without_the_suffix_iso_is_an_error_of_the_caller() -> None:
    """Nothing is sent; iDRAC and XCC refuse such an image."""
    bmc = with_media(slot(CD))
    with pytest.raises(ValueError, match="iso"):
        await redfish(bmc).insert_medium(SYSTEM, CD, f"{URL}?x=1")
    assert not bmc.requests


async def test_ejecting_is_read_back() -> None:
    """Supermicro keeps the name of the image in an empty slot."""
    bmc = with_media(slot(CD, Image=URL, Inserted=True, ConnectedVia="URI"))
    bmc.keeps_image = True
    held = await redfish(bmc).eject_medium(SYSTEM, CD)
    assert not held.inserted
    assert not held.is_ready(URL)
    assert (await redfish(bmc).insert_medium(SYSTEM, CD, OTHER)).is_ready(OTHER)


async def test_an_empty_slot_is_not_ejected() -> None:
    """One read."""
    bmc = with_media(slot(CD))
    assert not (await redfish(bmc).eject_medium(SYSTEM, CD)).inserted
    assert not bodies(bmc, EJECT)


async def test_a_refused_ejection_counts_only_while_the_medium_is_there() -> None:
    """iLO answers 400 where nothing is inserted."""
    bmc = with_media(slot(CD, Image=OTHER, Inserted=True, ConnectedVia="URI"))
    bmc.fault("POST", EJECT, answer(400))
    with pytest.raises(BMCBadRequest):
        await redfish(bmc).eject_medium(SYSTEM, CD)
    bmc.resources[CD]["Inserted"] = False
    bmc.fault("POST", EJECT, answer(400))
    assert not (await redfish(bmc).eject_medium(SYSTEM, CD)).inserted


async def test_schemes_are_those_that_the_bmc_lists() -> None:
    """Both where it lists none; none for a BMC that knows CIFS and NFS only."""
    values = {"TransferProtocolType@Redfish.AllowableValues": ["CIFS", "NFS"]}
    bmc = with_media(slot(CD), slot(f"{CD}2", insert=values))
    assert [each.schemes for each in await redfish(bmc).media_slots(SYSTEM)] == [("http", "https"), ()]


async def test_a_medium_boot_is_once_and_read_back() -> None:
    """The target Cd; clearing removes it like a network boot."""
    bmc = with_media(slot(CD))
    view = redfish(bmc)
    override = await view.set_medium_boot(SYSTEM)
    assert override == BootOverride("Once", "Cd")
    assert override.is_medium
    assert not override.is_network
    assert not (await view.clear_boot_override(SYSTEM)).is_medium


@pytest.mark.parametrize(
    ("manufacturer", "model", "targets", "chosen"),
    [
        ("Supermicro", "SYS-620P", ["Pxe", "Cd", "UsbCd"], "UsbCd"),
        ("Supermicro", "ARS-111GL-NHR", ["Pxe", "Cd", "UsbCd"], "Cd"),
        ("Supermicro", "SYS-1029U", ["Pxe", "Cd"], "Cd"),
        ("Contoso", "3500", ["Pxe", "Cd", "UsbCd"], "Cd"),
        ("Contoso", "3500", ["Pxe", "UsbCd"], "UsbCd"),
    ],
)
async def test_the_target_of_a_medium_boot_follows_vendor_and_list(
    manufacturer: str, model: str, targets: list[str], chosen: str
) -> None:
    """Supermicro boards list Cd and boot by UsbCd."""
    bmc = with_media(slot(CD), Manufacturer=manufacturer, Model=model, Boot={TARGETS: targets})
    assert (await redfish(bmc).set_medium_boot(SYSTEM)).target == chosen


async def test_a_bmc_that_lists_no_cd_does_not_boot_media() -> None:
    """Nothing is written."""
    bmc = with_media(slot(CD), Boot={TARGETS: ["Pxe"]})
    with pytest.raises(BMCNotSupported, match="cannot boot from Cd"):
        await redfish(bmc).set_medium_boot(SYSTEM)


@pytest.mark.behaviour(
    "BMC", "The URL of a virtual medium is in no log line, and in no error of the BMC that quotes it."
)
async def test_the_url_of_a_medium_is_not_logged() -> None:
    """Neither as an argument nor in the BMC's words."""
    bmc = with_media(slot(CD))
    bmc.fault("POST", INSERT, refusal("ResourceAtUriInUnknownFormat", f"{URL} has an unknown format, or {TOKEN} has."))
    with structlog.testing.capture_logs() as logs:
        with pytest.raises(BMCBadRequest):
            await connect(bmc).insert_medium(SYSTEM, CD, URL)
        await connect(bmc).insert_medium(SYSTEM, CD, URL)
    written = [line for line in logs if line["event"] == "BMC write"]
    assert [(line["operation"], line["slot"]) for line in written] == [("insert_medium", CD)] * 2
    assert TOKEN not in repr(logs)
