"""The EventService of a simulated BMC: subscriptions, and deliveries when the machine's power changes (DSP0266)."""

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from metal.sim.bmc import redfish_errors as errors
from metal.sim.bmc import redfish_tree as tree
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import Unreachable

_MOST = 8
"""Subscriptions that one BMC accepts."""
_TRIES, _PAUSE = 3, 5.0
"""Attempts for each delivery, and the seconds between them."""
_KNOWN = frozenset(
    {"Destination", "Context", "Protocol", "SubscriptionType", "EventFormatType", "DeliveryRetryPolicy", "EventTypes"}
)


class SimEvents:
    """The event subscriptions of one BMC, kept in memory: a restart of the simulator removes them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._held: dict[str, dict[str, Any]] = {}
        self._count = 0
        self._sending: set[asyncio.Task[None]] = set()
        machine.on_power.append(lambda power: self.send("ResourceChanged", f"The power state is {power}."))

    def __repr__(self) -> str:
        return f"<SimEvents {len(self._held)} subscriptions>"

    def all(self) -> list[dict[str, Any]]:
        """Every subscription as a resource."""
        return [tree.subscription(identifier, held) for identifier, held in self._held.items()]

    def find(self, identifier: str) -> dict[str, Any] | None:
        """One subscription by its id."""
        held = self._held.get(identifier)
        return tree.subscription(identifier, held) if held is not None else None

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        """Subscribe. Raises Refusal with 400 for an invalid destination or an existing subscription."""
        for name in body:
            if name not in _KNOWN:
                raise errors.unknown_property(name)
        destination = body.get("Destination")
        if not isinstance(destination, str) or urlsplit(destination).scheme not in ("http", "https"):
            raise errors.bad_value("Destination", destination)
        same = [held for held in self._held.values() if held["Destination"] == destination]
        if same or len(self._held) >= _MOST:
            raise errors.exists("EventDestination")
        self._count += 1
        self._held[str(self._count)] = {"Context": "", "Protocol": "Redfish", **body}
        return tree.subscription(str(self._count), self._held[str(self._count)])

    def remove(self, identifier: str) -> None:
        """Remove a subscription, if it exists."""
        self._held.pop(identifier, None)

    def clear(self) -> None:
        """Remove all subscriptions, as a factory reset does."""
        self._held.clear()

    def send(self, message_id: str, message: str) -> None:
        """Deliver an event to every subscriber in the background."""
        if self._machine.faults.loses_events or self._machine.faults.dead:
            return
        for held in self._held.values():
            task = asyncio.get_running_loop().create_task(self._deliver(held, message_id, message))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def stop(self) -> None:
        """Cancel pending deliveries."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _deliver(self, held: dict[str, Any], message_id: str, message: str) -> None:
        body = msgspec.json.encode(_event(held, message_id, message))
        source = self._machine.identity.bmc_ip
        for _ in range(_TRIES):
            with suppress(Unreachable):
                status, _, _ = await self._machine.site.network.request(
                    "POST", held["Destination"], headers={"content-type": "application/json"}, body=body,
                    source_ip=source,
                )  # fmt: skip
                if status < 500:
                    return
            await asyncio.sleep(_PAUSE)


def _event(held: dict[str, Any], message_id: str, message: str) -> dict[str, Any]:
    record = {
        "MemberId": "1",
        "EventId": "1",
        "EventType": "StatusChange",
        "Severity": "OK",
        "MessageId": f"ResourceEvent.1.3.{message_id}",
        "Message": message,
        "OriginOfCondition": {"@odata.id": tree.SYSTEM},
    }
    return {
        "@odata.type": "#Event.v1_7_0.Event", "Id": "1", "Name": "Event", "Context": held["Context"],
        "Events": [record],
    }  # fmt: skip
