"""Event subscriptions, as BMCs accept and reject them."""

from typing import Any

import pytest

from metal.bmc.errors import BMCBadRequest, BMCError, BMCNotSupported, BMCServerError, BMCUnreachable
from metal.bmc.events import Subscription
from tests.bmc.redfish.machine import collection, fake, redfish
from tests.redfish.fakes import FakeBMC, answer, complaint

pytestmark = pytest.mark.looptime
SERVICE = "/redfish/v1/EventService"
LIST = f"{SERVICE}/Subscriptions"
TEST = f"{SERVICE}/Actions/EventService.SubmitTestEvent"
HERE, OURS = "http://192.0.2.1:10001/events/b1/token", "metal-operator uid-1"
EXISTS = "Base.1.8.ResourceAlreadyExists"


def destination(number: int, where: str = HERE, context: str = OURS) -> dict[str, Any]:
    """An event destination."""
    return {"@odata.id": f"{LIST}/{number}", "Id": str(number), "Destination": where, "Context": context}


def bmc(*held: dict[str, Any], **service: Any) -> FakeBMC:
    """A BMC with an EventService that holds these."""
    made = fake()
    made.resources["/redfish/v1/"]["EventService"] = {"@odata.id": SERVICE}
    made.resources[SERVICE] = {
        "@odata.id": SERVICE,
        "Subscriptions": {"@odata.id": LIST},
        "Actions": {"#EventService.SubmitTestEvent": {"target": TEST}},
        **service,
    }
    made.resources |= collection(LIST, *held)
    return made


@pytest.mark.behaviour("BMC", "A new event subscription keeps the Location that the BMC returned.")
async def test_a_subscription_is_asked_for_and_its_location_is_kept() -> None:
    """For all events, with RetryForever."""
    made = bmc()
    made.fault("POST", LIST, answer(201, None, location=f"https://bmc.example{LIST}/7"))
    assert await redfish(made).subscribe(HERE, OURS) == f"{LIST}/7"
    (request,) = made.seen("POST", LIST)
    assert request.body["Destination"] == HERE
    assert request.body["Context"] == OURS
    assert request.body["Protocol"] == "Redfish"
    assert request.body["DeliveryRetryPolicy"] == "RetryForever"


async def test_a_bmc_that_refuses_the_newer_way_is_asked_in_the_older_one() -> None:
    """HPE rejects some properties; of the event types, those that the BMC lists are used."""
    made = bmc(EventTypesForSubscription=["Alert", "StatusChange", "MetricReport"])
    refusal = complaint("DeliveryRetryPolicy is not known", "Base.1.8.PropertyUnknown")
    made.fault("POST", LIST, answer(400, refusal), answer(201, destination(3)))
    assert await redfish(made).subscribe(HERE, OURS) == f"{LIST}/3"
    again = made.seen("POST", LIST)[1].body
    assert again == {
        "Destination": HERE,
        "Context": OURS,
        "Protocol": "Redfish",
        "EventTypes": ["StatusChange", "Alert"],
    }


@pytest.mark.behaviour(
    "BMC", "An existing event subscription is found by destination and context, also when the BMC rejects a duplicate."
)
@pytest.mark.parametrize("identity", [EXISTS, "IDRAC.2.8.PropertyValueModified"])
async def test_one_that_exists_is_found_again(identity: str) -> None:
    """By destination and context, among many, for every error by which a BMC reports the duplicate."""
    others = (destination(1, context="somebody"), destination(2, where="http://192.0.2.1/else"), destination(3))
    made = bmc(*others)
    made.fault("POST", LIST, answer(400, complaint("there already", identity)))
    assert await redfish(made).subscribe(HERE, OURS) == f"{LIST}/3"
    assert len(made.seen("POST", LIST)) == 1


@pytest.mark.behaviour(
    "BMC", "A subscription that the BMC reports as existing, and that cannot be found, is an error of the BMC."
)
async def test_one_that_is_said_to_exist_and_is_not_found_is_the_bmcs_error() -> None:
    """A subscription with another context is a different one."""
    made = bmc(destination(1, context="somebody"))
    made.fault("POST", LIST, answer(400, complaint("there already", EXISTS)))
    with pytest.raises(BMCBadRequest, match="there already"):
        await redfish(made).subscribe(HERE, OURS)


@pytest.mark.behaviour("BMC", "Unreadable subscriptions do not hide the others, nor the BMC's own error.")
async def test_members_that_fail_do_not_hide_the_others() -> None:
    """A collection that cannot be read does not hide the BMC's first error."""
    made = bmc(destination(1), destination(2))
    made.fault("GET", f"{LIST}/1", answer(500))
    assert await redfish(made).subscriptions() == (Subscription(f"{LIST}/2", HERE, OURS),)
    made.fault("POST", LIST, answer(400, complaint("there already", EXISTS)))
    made.fault("GET", LIST, answer(500))
    with pytest.raises(BMCBadRequest, match="there already"):
        await redfish(made).subscribe(HERE, OURS)


@pytest.mark.behaviour("BMC", "Other errors of a subscription request are raised unchanged.")
@pytest.mark.parametrize(
    ("failure", "kind"), [(answer(500), BMCServerError), (BMCUnreachable("no connection"), BMCUnreachable)]
)
async def test_other_errors_are_raised_as_they_are(failure: Any, kind: type[BMCError]) -> None:
    """No search and no repetition."""
    made = bmc(destination(1))
    made.fault("POST", LIST, failure)
    with pytest.raises(kind):
        await redfish(made).subscribe(HERE, OURS)
    assert len(made.seen("POST", LIST)) == 1


async def test_a_subscription_that_is_gone_is_none_and_needs_no_removal() -> None:
    """404 is a valid answer in both cases."""
    made = bmc(destination(1))
    view = redfish(made)
    assert await view.subscription(f"{LIST}/1") == Subscription(f"{LIST}/1", HERE, OURS)
    assert await view.subscription(f"{LIST}/9") is None
    made.fault("DELETE", f"{LIST}/9", answer(404))
    await view.unsubscribe(f"{LIST}/9")


async def test_a_test_event_is_asked_for_with_as_little_as_it_takes() -> None:
    """A BMC that accepts only a MessageId gets a minimal body."""
    made = bmc()
    made.fault("POST", TEST, answer(400, complaint("too much", "Base.1.8.ActionParameterUnknown")), answer(204))
    await redfish(made).send_test_event()
    assert list(made.seen("POST", TEST)[1].body) == ["MessageId"]


@pytest.mark.parametrize("service", [None, {"ServiceEnabled": False}, {"Subscriptions": None}])
async def test_a_bmc_without_subscriptions_says_so(service: dict[str, Any] | None) -> None:
    """No EventService, a disabled one, one without a collection."""
    made = fake() if service is None else bmc(**service)
    with pytest.raises(BMCNotSupported, match="offers no event subscriptions"):
        await redfish(made).subscribe(HERE, OURS)


def test_the_secret_part_of_a_destination_is_in_no_repr() -> None:
    """Subscriptions are logged and shown in assertions."""
    assert "token" not in repr(Subscription(f"{LIST}/1", HERE, OURS))


async def test_an_error_that_quotes_the_destination_does_not_contain_its_token() -> None:
    """The message becomes a condition, an Event and a log line, and whoever has the token can send events."""
    made = bmc()
    refusal = complaint(f"{HERE}-T0KEN is not reachable", "Oem.1.0.NotReachable")
    made.fault("POST", LIST, answer(500, refusal))
    with pytest.raises(BMCServerError) as caught:
        await redfish(made).subscribe(f"{HERE}-T0KEN", OURS)
    assert "T0KEN" not in str(caught.value)
    assert "http://192.0.2.1:10001/*** is not reachable" in str(caught.value)
