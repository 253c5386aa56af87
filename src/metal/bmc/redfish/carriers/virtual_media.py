"""Virtual media over Redfish (VirtualMedia, DSP0268).

Slots are those of the system, or of its managers where the system has none that takes a CD. A medium is inserted and
ejected by the actions, or by PATCH where the BMC has none. Which parameters InsertMedia takes differs: those whose
values the BMC lists are sent, then those that its refusal asks for, without those that it refuses. Every write is
read back. A BMC may take seconds until it shows what it has accepted, and may answer 202 and work on it in a task:
`_accepted` keeps that, so that it is not requested twice and its failure is reported. A manager that restarts forgets
it, and at worst requests the insertion again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from metal.bmc.carriers.virtual_media import MediaSlot
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCError, BMCNotFound, BMCProtocolError, BMCServerError
from metal.bmc.redfish.capability import Capability, machine_of
from metal.bmc.vendors import takes_image_url
from metal.redfish import RedfishClient, Reply, Resource, members
from metal.redfish.client import JSON
from metal.redfish.paths import local_path
from metal.redfish.resources import InsertAction, Manager, System, VirtualMedia
from metal.redfish.tasks import ENDED, Task

_SCHEMES = ("http", "https")
_MOST_TRIES = 5
_SETTLE = 60.0
"""Seconds that a BMC may take to show an image that it has accepted."""
_TASK_FAILED = ENDED - {"Completed"}
_ON_REQUEST: Mapping[str, Any] = {
    "TransferMethod": "Stream", "MediaType": "CD", "Inserted": True, "WriteProtected": True, "UserName": "none",
    "Password": "none",
}  # fmt: skip
"""Parameters that some BMCs require, and their values; NVIDIA DGX wants credentials that no server asks for."""


@dataclass(frozen=True)
class _Accepted:
    """An insertion that the BMC has accepted, at this time of the loop."""

    url: str = field(repr=False)
    at: float
    task: Task | None


class RedfishVirtualMedia(Capability):
    """Slots, insertion and ejection."""

    def __init__(self, client: RedfishClient) -> None:
        super().__init__(client)
        self._accepted: dict[str, _Accepted] = {}

    async def media_slots(self, uri: str) -> tuple[MediaSlot, ...]:
        """A slot that cannot be read is left out, unless none can be read."""
        _, system = await self._read_system(uri)
        return await self._slots_of(system)

    async def insert_medium(self, uri: str, slot: str, url: str) -> MediaSlot:
        """Two to five requests."""
        if not url.endswith(".iso"):
            raise ValueError("the URL of a medium ends with .iso, because many BMCs refuse any other")
        self.client.redact.add(url)
        held = await self._slot(slot)
        if held.names(url) or await self._in_progress(slot, url):
            return held
        if held.inserted or held.image:
            held = await self.eject_medium(uri, slot)
        if held.inserted:
            return held
        reply = await self._insert(await self.client.get(slot), url)
        self._accepted[slot] = _Accepted(url, asyncio.get_running_loop().time(), reply.task)
        return await self._slot(slot)

    async def eject_medium(self, uri: str, slot: str) -> MediaSlot:
        """Nothing is sent for an empty slot; a refusal is no error where the slot is empty afterwards."""
        self._accepted.pop(slot, None)
        resource = await self.client.get(slot)
        medium = resource.decode(VirtualMedia)
        if not (_is_inserted(medium) or medium.image):
            return self._convert(resource)
        try:
            if medium.actions.eject.target:
                await self.client.post(local_path(medium.actions.eject.target), {})
            else:
                await self.client.patch(slot, {"Image": None, "Inserted": False}, etag=resource.etag)
        except BMCError:
            after = await self._slot(slot)
            if after.inserted:
                raise
            return after
        return await self._slot(slot)

    async def _slots_of(self, system: System) -> tuple[MediaSlot, ...]:
        found: list[MediaSlot] = []
        if system.virtual_media.odata_id:
            found = await self._collection(system.virtual_media.odata_id)
        if not any(slot.takes_cd for slot in found):
            for ref in system.links.managed_by:
                manager = (await self.client.get(local_path(ref.odata_id))).decode(Manager)
                found += await self._collection(manager.virtual_media.odata_id)
        names = [_name(slot) for slot in found]
        machine = machine_of(system)
        judged = [replace(slot, takes_url=takes_image_url(machine, _name(slot), names)) for slot in found]
        return tuple(sorted(judged, key=lambda slot: not slot.is_usable))

    async def _collection(self, path: str) -> list[MediaSlot]:
        if not path:
            return []
        read = await members(self.client, local_path(path))
        slots = [self._convert(each) for each in read if isinstance(each, Resource)]
        for each in read:
            if isinstance(each, BMCError) and not slots:
                raise each
        return slots

    async def _slot(self, slot: str) -> MediaSlot:
        return self._convert(await self.client.get(slot))

    def _convert(self, resource: Resource) -> MediaSlot:
        medium = resource.decode(VirtualMedia)
        self.client.redact.add(medium.image)
        listed = {value.lower() for value in medium.actions.insert.protocols}
        return MediaSlot(
            uri=resource.path,
            media_types=medium.media_types,
            inserted=_is_inserted(medium),
            image=medium.image,
            image_name=medium.image_name,
            connected_via=medium.connected_via,
            schemes=tuple(scheme for scheme in _SCHEMES if not listed or scheme in listed),
        )

    async def _in_progress(self, slot: str, url: str) -> bool:
        """Whether the BMC still works on this insertion. Raises BMCServerError with its reason when that failed."""
        known = self._accepted.get(slot)
        if known is None or known.url != url:
            return False
        data = await self._task(known.task) if known.task is not None else {}
        state = data.get("TaskState")
        if state in _TASK_FAILED:
            del self._accepted[slot]
            raise BMCServerError(self.client.redact(f"{self.client.name} did not insert the medium: {_words(data)}"))
        return (state is not None and state not in ENDED) or asyncio.get_running_loop().time() - known.at < _SETTLE

    async def _task(self, task: Task) -> JSON:
        """The task now; empty once it is gone, because some BMCs remove tasks that have ended."""
        try:
            return (await self.client.get(task.uri or task.monitor)).data
        except (BMCNotFound, BMCProtocolError):
            return {}

    async def _insert(self, resource: Resource, url: str) -> Reply:
        """Send the insertion, with the parameters that this BMC wants. Raises the refusal of the last body."""
        action = resource.decode(VirtualMedia).actions.insert
        body = await self._body(action, url)
        tried: list[JSON] = []
        while True:
            tried.append(body)
            try:
                if action.target:
                    return await self.client.post(local_path(action.target), body)
                return await self.client.patch(resource.path, body, etag=resource.etag)
            except (BMCBadRequest, BMCServerError) as error:
                body = _corrected(body, str(error), url)
                if isinstance(error, BMCBusy) or body in tried or len(tried) == _MOST_TRIES:
                    raise

    async def _body(self, action: InsertAction, url: str) -> JSON:
        if not action.target:
            return {"Image": url, "Inserted": True, "WriteProtected": True}
        listed = await self._listed_values(action.action_info)
        body: JSON = {"Image": url}
        protocol = urlsplit(url).scheme.upper()
        if protocol in (action.protocols or listed.get("TransferProtocolType", ())):
            body["TransferProtocolType"] = protocol
        if "Stream" in (action.methods or listed.get("TransferMethod", ())):
            body["TransferMethod"] = "Stream"
        types = action.media_types or listed.get("MediaType", ())
        if kind := next((kind for kind in ("CD", "DVD") if kind in types), ""):
            body["MediaType"] = kind
        return body


def _name(slot: MediaSlot) -> str:
    return slot.uri.rstrip("/").rpartition("/")[2]


def _is_inserted(medium: VirtualMedia) -> bool:
    if medium.inserted is not None:
        return medium.inserted
    return medium.connected_via in ("URI", "Applet", "Oem")


def _corrected(body: JSON, refusal: str, url: str) -> JSON:
    """The body with the parameters that the refusal names, if it lacks them, and without those that it has."""
    optional = {**_ON_REQUEST, "TransferProtocolType": urlsplit(url).scheme.upper()}
    named = {name: value for name, value in optional.items() if name in refusal}
    kept = {name: value for name, value in body.items() if name not in named}
    return kept | {name: value for name, value in named.items() if name not in body}


def _words(task: JSON) -> str:
    listed = task.get("Messages")
    texts = [each.get("Message") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return " ".join(text for text in texts if isinstance(text, str)) or "no message."
