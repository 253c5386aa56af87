"""A BMC in memory behind the Transport protocol, with injectable faults."""

import asyncio
import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from metal.redfish import Limits, Permit, RedfishClient, Response
from metal.redfish.messages import Classify, by_status

USER, PASSWORD = "root", "hunter2-öäü"
ORIGIN = "https://10.0.0.1:443"
SESSIONS = "/redfish/v1/SessionService/Sessions"
SYSTEM = "/redfish/v1/Systems/1"
ROOT: dict[str, Any] = {
    "@odata.id": "/redfish/v1/",
    "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
    "RedfishVersion": "1.5.0",
    "Systems": {"@odata.id": "/redfish/v1/Systems"},
    "Managers": {"@odata.id": "/redfish/v1/Managers"},
    "Links": {"Sessions": {"@odata.id": SESSIONS}},
}


@dataclass(frozen=True)
class Request:
    """One request as the BMC received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Answer = Response | Exception | Callable[[Request], Response] | None
HANG = object()


def answer(status: int, body: object = None, **headers: str) -> Response:
    """A response with a JSON body; underscores in header names stand for dashes."""
    content = b"" if body is None else json.dumps(body).encode()
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def complaint(text: str, identity: str = "Base.1.8.PropertyValueNotInList", **more: str) -> dict[str, Any]:
    """An error body as in DSP0266."""
    return {
        "error": {
            "code": "Base.1.8.GeneralError",
            "message": "A general error has occurred. See ExtendedInfo for more information.",
            "@Message.ExtendedInfo": [{"MessageId": identity, "Message": text, **more}],
        }
    }


@dataclass
class FakeBMC:
    """Serves `resources`, checks the login, and replays `script[(method, path)]` first, one entry for each request."""

    resources: dict[str, Any] = field(default_factory=lambda: {"/redfish/v1/": copy.deepcopy(ROOT)})
    script: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    sessions: bool = True
    basic: bool = True
    open_root: bool = True
    password: str = PASSWORD
    etags: dict[str, str] = field(default_factory=dict)
    latency: float = 0.0
    requests: list[Request] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    in_flight: dict[str, int] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    closed: bool = False
    on_reset: Callable[[str, str], None] | None = None

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None, timeout: float
    ) -> Response:
        """See Transport."""
        request = Request(method, path, dict(headers), None if body is None else json.loads(body))
        self.requests.append(request)
        kind = "read" if method == "GET" else "write"
        self.in_flight[kind] = self.in_flight.get(kind, 0) + 1
        self.peak[kind] = max(self.peak.get(kind, 0), self.in_flight[kind])
        try:
            await asyncio.sleep(self.latency)
            return await self._answer(request)
        finally:
            self.in_flight[kind] -= 1

    async def aclose(self) -> None:
        """See Transport."""
        self.closed = True

    def fault(self, method: str, path: str, *answers: Any) -> None:
        """Replay these before normal answers."""
        self.script.setdefault((method, path), []).extend(answers)

    def seen(self, method: str, path: str = "") -> list[Request]:
        """Requests of this method, and this path if given."""
        return [r for r in self.requests if r.method == method and path in ("", r.path)]

    async def _answer(self, request: Request) -> Response:
        queue = self.script.get((request.method, request.path))
        if queue:
            scripted = queue.pop(0)
            if scripted is HANG:
                await asyncio.Event().wait()
            if isinstance(scripted, Exception):
                raise scripted
            if isinstance(scripted, Response):
                return scripted
        if request.method == "POST" and request.path == SESSIONS:
            return self._login(request)
        if not self._admitted(request):
            return answer(401, complaint("No valid session.", "Base.1.8.NoValidSession"))
        return self._serve(request)

    def _login(self, request: Request) -> Response:
        if not self.sessions:
            return answer(404)
        if request.body != {"UserName": USER, "Password": self.password}:
            return answer(401, complaint("Invalid credentials."))
        token = f"token-{len(self.seen('POST', SESSIONS))}"
        self.tokens.add(token)
        return answer(201, {}, x_auth_token=token, location=f"https://bmc.example{SESSIONS}/{token}")

    def _admitted(self, request: Request) -> bool:
        if request.path == "/redfish/v1/" and self.open_root:
            return True
        if request.headers.get("x-auth-token") in self.tokens:
            return True
        return self.basic and request.headers.get("authorization") == _basic(self.password)

    def _serve(self, request: Request) -> Response:
        path = request.path
        if request.method == "DELETE":
            self.tokens.discard(path.rpartition("/")[2])
            return answer(204)
        if request.method == "POST":
            return self._act(request)
        if path not in self.resources:
            return answer(404, complaint(f"The resource {path} was not found.", "Base.1.8.ResourceMissingAtURI"))
        etag = self.etags.get(path, "")
        if request.method == "GET":
            return answer(200, self.resources[path], **({"etag": etag} if etag else {}))
        if etag and request.headers.get("if-match", etag) != etag:
            return answer(412)
        _merge(self.resources[path], request.body)
        return answer(204)

    def _act(self, request: Request) -> Response:
        if self.on_reset is not None:
            self.on_reset(request.path, request.body["ResetType"])
        return answer(204)


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


def _basic(password: str) -> str:
    import base64

    return "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()


def client_of(
    bmc: FakeBMC, *, password: str = PASSWORD, limits: Limits | None = None, permit: Permit = lambda: None,
    classify: Classify = by_status,
) -> RedfishClient:  # fmt: skip
    """A client of this BMC."""
    return RedfishClient(
        bmc, origin=ORIGIN, username=USER, password=password, limits=limits, permit=permit, classify=classify
    )
