"""Event subscriptions over Redfish (EventService and EventDestination, DSP0268)."""

from typing import Any

from metal.bmc.errors import BMCBadRequest, BMCError, BMCNotFound, BMCNotSupported
from metal.bmc.events import Subscription
from metal.bmc.redfish.capability import Capability
from metal.redfish import Reply, Resource, members
from metal.redfish.paths import local_path
from metal.redfish.resources import EventDestination, EventService

_EXISTS = frozenset({"ResourceAlreadyExists", "PropertyValueModified"})
"""MessageIds for a duplicate subscription; the second one is Dell's."""
_WANTED = ("StatusChange", "ResourceUpdated", "Alert")
"""Event types that cover power and health, used with BMCs that support only EventTypes, as far as they list them."""
_TEST = {
    "EventType": "Alert", "EventId": "metal-operator", "Severity": "OK", "MessageArgs": [],
    "MessageId": "ResourceEvent.1.0.TestMessage", "Message": "metal-operator checks that events arrive",
    "OriginOfCondition": "/redfish/v1/EventService",
}  # fmt: skip


class RedfishEvents(Capability):
    """Makes, finds and removes event destinations."""

    async def subscriptions(self) -> tuple[Subscription, ...]:
        """Subscriptions that cannot be read are left out."""
        found = await members(self.client, local_path((await self._service()).subscriptions.odata_id))
        return tuple(_subscription(member) for member in found if isinstance(member, Resource))

    async def subscription(self, uri: str) -> Subscription | None:
        """None when the BMC answers 404."""
        try:
            return _subscription(await self.client.get(uri))
        except BMCNotFound:
            return None

    async def subscribe(self, destination: str, context: str) -> str:
        """An existing one is found by destination and context; any other error is raised unchanged."""
        service = await self._service()
        self.client.redact.add(destination)
        try:
            reply = await self._create(service, {"Destination": destination, "Context": context})
        except BMCError as exc:
            uri = "" if _EXISTS.isdisjoint(exc.message_ids) else await self._find(destination, context)
            if not uri:
                raise
            return uri
        uri = reply.location or await self._find(destination, context)
        if not uri:
            raise BMCNotFound(f"{self.client.name} took an event subscription and does not list it.")
        return uri

    async def unsubscribe(self, uri: str) -> None:
        """Deletes the subscription; one that does not exist counts as removed."""
        try:
            await self.client.delete(uri)
        except BMCNotFound:
            return

    async def send_test_event(self) -> None:
        """Sends a minimal body where the BMC rejects the full one."""
        target = (await self._service()).actions.test.target
        if not target:
            raise BMCNotSupported(f"{self.client.name} sends no test events.")
        try:
            await self.client.post(local_path(target), _TEST)
        except BMCBadRequest:
            await self.client.post(local_path(target), {"MessageId": _TEST["MessageId"]})

    async def _service(self) -> EventService:
        root = await self.client.root()
        service = EventService(service_enabled=False)
        if root.event_service.odata_id:
            service = (await self.client.get(local_path(root.event_service.odata_id))).decode(EventService)
        if not service.service_enabled or not service.subscriptions.odata_id:
            raise BMCNotSupported(f"{self.client.name} offers no event subscriptions.")
        return service

    async def _create(self, service: EventService, who: dict[str, str]) -> Reply:
        """All events, with RetryForever; where the BMC rejects that, by EventTypes."""
        path = local_path(service.subscriptions.odata_id)
        body = {**who, "Protocol": "Redfish"}
        newer = {"SubscriptionType": "RedfishEvent", "EventFormatType": "Event", "DeliveryRetryPolicy": "RetryForever"}
        try:
            return await self.client.post(path, {**body, **newer})
        except BMCBadRequest as exc:
            if not _EXISTS.isdisjoint(exc.message_ids):
                raise
        offered = service.event_types_for_subscription
        older: dict[str, Any] = {"EventTypes": [kind for kind in _WANTED if kind in offered] or ["Alert"]}
        return await self.client.post(path, {**body, **older})

    async def _find(self, destination: str, context: str) -> str:
        """Empty where there is none, or where the BMC does not list its subscriptions."""
        try:
            found = await self.subscriptions()
        except BMCError:
            return ""
        return next((s.uri for s in found if (s.destination, s.context) == (destination, context)), "")


def _subscription(resource: Resource) -> Subscription:
    data = resource.decode(EventDestination)
    return Subscription(local_path(resource.path), data.destination, data.context)
