"""A BMC with virtual media, as different vendors show it."""

from typing import Any

from metal.redfish import Response
from tests.bmc.redfish.machine import MANAGER, manager, system
from tests.redfish.fakes import SYSTEM, FakeBMC, Request, answer

URL = "http://10.0.0.5:8082/boot/38947555/c2VjcmV0LXRva2VuLW9uY2U/s1-1.iso"
OTHER = "http://10.0.0.5:8082/boot/38947555/YW5vdGhlci10b2tlbi1vbGQ/s1-0.iso"
TOKEN = "c2VjcmV0LXRva2VuLW9uY2U"
TARGETS = "BootSourceOverrideTarget@Redfish.AllowableValues"


def slot(path: str, types: tuple[str, ...] = ("CD", "DVD"), *, actions: bool = True, **more: Any) -> dict[str, Any]:
    """An empty slot; keys of `more` are properties, or `insert` with more of the action."""
    insert = {"target": f"{path}/Actions/VirtualMedia.InsertMedia", **more.pop("insert", {})}
    offered = {
        "#VirtualMedia.InsertMedia": insert,
        "#VirtualMedia.EjectMedia": {"target": f"{path}/Actions/VirtualMedia.EjectMedia"},
    }
    return {
        "@odata.id": path, "Id": path.rpartition("/")[2], "MediaTypes": list(types), "Image": None, "ImageName": None,
        "Inserted": False, "ConnectedVia": "NotConnected", **({"Actions": offered} if actions else {}), **more,
    }  # fmt: skip


class MediaBMC(FakeBMC):
    """Inserts and ejects. `required` and `unknown` are parameters; `late` reads pass until an image is inserted."""

    required: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    late = 0
    keeps_image = False
    task: dict[str, Any] | None = None
    _coming: dict[str, str] | None = None

    def _act(self, request: Request) -> Response:
        path, _, action = request.path.partition("/Actions/VirtualMedia.")
        if action == "EjectMedia":
            self.resources[path] |= {"Inserted": False, "ConnectedVia": "NotConnected"}
            if not self.keeps_image:
                self.resources[path] |= {"Image": None}
            return answer(204)
        if action != "InsertMedia":
            return super()._act(request)
        return self._insert(path, request.body)

    def _insert(self, path: str, body: dict[str, Any]) -> Response:
        for name in self.required:
            if name not in body:
                return refusal("ActionParameterMissing", f"The action needs the parameter {name}.")
        for name in self.unknown:
            if name in body:
                return refusal("ActionParameterUnknown", f"The action has no parameter {name}.")
        self._coming = {"path": path, "url": body["Image"]}
        if self.task is not None:
            self.resources["/redfish/v1/TaskService/Tasks/7"] = self.task
            return answer(202, self.task, location="/redfish/v1/TaskService/Tasks/7/Monitor")
        self._progress()
        return answer(204)

    def _serve(self, request: Request) -> Response:
        if request.method == "GET" and self._coming is not None and request.path == self._coming["path"]:
            self._progress()
        if request.method == "PATCH" and "Inserted" in request.body:
            self.resources[request.path]["ConnectedVia"] = "URI" if request.body["Inserted"] else "NotConnected"
        return super()._serve(request)

    def _progress(self) -> None:
        if self._coming is None or self.late > 0:
            self.late -= 1
            return
        path, url = self._coming["path"], self._coming["url"]
        self.resources[path] |= {"Image": url, "Inserted": True, "ConnectedVia": "URI"}
        self._coming = None


def refusal(name: str, text: str) -> Response:
    """400 with one message."""
    info = {"MessageId": f"Base.1.12.{name}", "Message": text}
    return answer(400, {"error": {"code": "Base.1.12.GeneralError", "message": "", "@Message.ExtendedInfo": [info]}})


def with_media(*slots: dict[str, Any], of_manager: bool = False, **changes: Any) -> MediaBMC:
    """A BMC with these slots, at the system or at its manager."""
    bmc = MediaBMC(latency=0.01)
    base = MANAGER if of_manager else SYSTEM
    link = {"VirtualMedia": {"@odata.id": f"{base}/VirtualMedia"}}
    boot = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", TARGETS: ["None", "Pxe", "Cd"]}
    own = {} if of_manager else link
    bmc.resources[SYSTEM] = system(Links={"ManagedBy": [{"@odata.id": MANAGER}]}, **{"Boot": boot, **own, **changes})
    bmc.resources[MANAGER] = manager(**(link if of_manager else {}))
    members = [{"@odata.id": each["@odata.id"]} for each in slots]
    bmc.resources[f"{base}/VirtualMedia"] = {"@odata.id": f"{base}/VirtualMedia", "Members": members}
    bmc.resources |= {each["@odata.id"]: each for each in slots}
    return bmc
