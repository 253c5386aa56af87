"""The virtual media of a simulated BMC: a CD and a USB drive of the system."""

from typing import Any

from metal.sim.bmc import redfish_errors as errors
from metal.sim.bmc import redfish_tree as tree
from metal.sim.machine.machine import Machine
from metal.sim.options import Carrier

COLLECTION = f"{tree.SYSTEM}/VirtualMedia"
_CD, _USB = f"{COLLECTION}/Cd", f"{COLLECTION}/Usb"
_INSERT, _EJECT = "Actions/VirtualMedia.InsertMedia", "Actions/VirtualMedia.EjectMedia"
_PROTOCOLS = ("HTTP", "HTTPS")
_KNOWN = frozenset({"Image", "Inserted", "WriteProtected", "TransferProtocolType", "TransferMethod"})


def find(machine: Machine, path: str, *, expand: bool) -> tree.JSON:
    """The resource at a path below the collection. Raises Refusal."""
    slots = {_CD: _slot(machine, _CD, ("CD", "DVD")), _USB: _slot(machine, _USB, ("USBStick",))}
    if Carrier.VIRTUAL_MEDIA not in machine.carriers or path not in (COLLECTION, *slots):
        raise errors.missing(path)
    if path == COLLECTION:
        return tree.collection(path, "VirtualMedia", list(slots.values()), expand=expand)
    return slots[path]


def act(machine: Machine, path: str, body: dict[str, Any]) -> None:
    """An action of the CD; the USB drive has none. Raises Refusal."""
    if Carrier.VIRTUAL_MEDIA not in machine.carriers:
        raise errors.missing(path)
    if path == f"{_CD}/{_INSERT}":
        _insert(machine, body)
    elif path == f"{_CD}/{_EJECT}":
        machine.eject_medium()
    else:
        raise errors.missing(path)


def _insert(machine: Machine, body: dict[str, Any]) -> None:
    for name in body:
        if name not in _KNOWN:
            raise errors.unknown_property(name)
    image = body.get("Image")
    if not isinstance(image, str) or not image.startswith(("http://", "https://")) or not image.endswith(".iso"):
        raise errors.bad_value("Image", image)
    if body.get("TransferProtocolType", "HTTP") not in _PROTOCOLS:
        raise errors.bad_value("TransferProtocolType", body["TransferProtocolType"], _PROTOCOLS)
    if machine.state.medium:
        raise errors.busy("a medium is inserted already")
    machine.insert_medium(image)


def _slot(machine: Machine, path: str, types: tuple[str, ...]) -> tree.JSON:
    is_cd = path == _CD
    image = machine.state.medium if is_cd else ""
    inserted = is_cd and machine.has_medium
    actions = {
        "#VirtualMedia.InsertMedia": {
            "target": f"{path}/{_INSERT}",
            "TransferProtocolType@Redfish.AllowableValues": list(_PROTOCOLS),
        },
        "#VirtualMedia.EjectMedia": {"target": f"{path}/{_EJECT}"},
    }
    return {
        "@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia", "@odata.id": path, "Id": path.rpartition("/")[2],
        "Name": "Virtual drive", "MediaTypes": list(types), "Image": image or None,
        "ImageName": image.rpartition("/")[2] or None, "Inserted": inserted, "WriteProtected": True,
        "ConnectedVia": "URI" if inserted else "NotConnected", "Status": tree.OK,
        **({"Actions": actions} if is_cd else {}),
    }  # fmt: skip
