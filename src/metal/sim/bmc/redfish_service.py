"""A simulated BMC: takes Redfish requests and returns responses, without sockets.

`handle` checks the injected faults and the login, builds the requested resource from the machine's present state, or
applies a change to it. Transports are `in_process` and `http`.
"""

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from metal.redfish.transport import Response
from metal.sim.bmc import bios, changes, virtual_media
from metal.sim.bmc import redfish_errors as errors
from metal.sim.bmc import redfish_tree as tree
from metal.sim.bmc.events import SimEvents
from metal.sim.bmc.latency import Latency
from metal.sim.bmc.load import Load
from metal.sim.bmc.redfish_errors import Refusal
from metal.sim.bmc.sessions import Full, Sessions
from metal.sim.machine.identity import Board
from metal.sim.machine.machine import RESETS, Busy, Machine

_HEADERS = {"content-type": "application/json", "odata-version": "4.0", "cache-control": "no-cache"}
_CHANGES = {tree.SYSTEM: changes.of_system, tree.CHASSIS: changes.of_chassis, tree.BIOS_SETTINGS: bios.apply_settings}
_ACTIONS = {tree.SYSTEM_RESET: RESETS, tree.MANAGER_RESET: tree.MANAGER_RESETS}

IN_POST = Refusal(
    400, "UnableToModifyDuringSystemPOST", "The value cannot be changed while the computer system BIOS is in POST.",
    registry="iLO.2.37",
)  # fmt: skip
"""The answer of an iLO while the host is in POST."""


class SimBMC:
    """A management controller of one machine. `requests` counts requests by method.

    `machine` may be changed at run time: the address then leads to another machine. `board` identifies the controller;
    unless given, it is the machine's first one.
    """

    def __init__(self, machine: Machine, board: Board | None = None) -> None:
        self.machine = machine
        first = machine.identity
        self.board = board or Board(first.bmc_uuid, first.bmc_mac, first.bmc_ip)
        self.unplugged = False
        """Whether nothing answers at its address."""
        self._is_first = board is None
        self.sessions = Sessions(machine.site.options, machine.rng)
        self.events = SimEvents(machine)
        self.requests: Counter[str] = Counter()
        self.load = Load()
        self.unavailable = 0
        """Requests answered with 503."""
        self.certificate = hashlib.sha256(self.board.mac.encode()).hexdigest()
        """SHA-256 of the certificate that the in-process transport presents."""
        self.post = IN_POST
        """Answer to changes of the boot override with the fault in_post."""
        self._away_until = float("-inf")

    def __repr__(self) -> str:
        return f"<SimBMC {self.board.ip} {self.requests.total()} requests {self.machine!r}>"

    @property
    def unreachable(self) -> bool:
        """Whether connections are dropped: unplugged, dead, or restarting."""
        return self.unplugged or self.machine.faults.dead or asyncio.get_running_loop().time() < self._away_until

    def restart(self) -> None:
        """Become unreachable for a while, and lose all sessions."""
        self.sessions.clear()
        self._away_until = asyncio.get_running_loop().time() + self.machine.site.options.bmc_reset

    def delay(self) -> float:
        """Seconds that the next answer takes."""
        options = self.machine.site.options
        slow = options.slow if self.machine.faults.slow else 0.0
        return slow + Latency(options.latency, options.latency_spread).sample(self.machine.rng)

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """The response to one request. Header names are in lower case; `path` may have a query."""
        self.requests[method] += 1
        self.load.count(method, self.machine.site.history.now())
        parts = urlsplit(path)
        place = parts.path.rstrip("/") or "/"
        try:
            self._fail_sometimes()
            if place == "/redfish":
                return _answer(200, {"v1": "/redfish/v1/"})
            if place == tree.SESSIONS and method == "POST":
                return self._login(_object(body))
            if place != tree.ROOT:
                self._authenticate(headers)
            self._reject_write(method, place)
            return self._dispatch(method, place, "$expand" in parts.query, headers, body)
        except Refusal as refusal:
            self.unavailable += refusal.status == 503
            return refusal.response()

    def _fail_sometimes(self) -> None:
        machine = self.machine
        if machine.faults.http_500:
            raise Refusal(500, "InternalError", "The service failed internally.")
        if machine.faults.http_503:
            raise Refusal(503, "ServiceTemporarilyUnavailable", "The service failed internally.", {"retry-after": "30"})
        if machine.faults.http_5xx and machine.rng.random() < machine.site.options.error_rate:
            status = machine.rng.choice((500, 503))
            raise Refusal(
                status, "InternalError", "The service failed internally.", {"retry-after": "1"} if status == 503 else {}
            )

    def _reject_write(self, method: str, path: str) -> None:
        if method in ("GET", "HEAD") or not path.startswith(tree.SYSTEM):
            return
        if self.machine.faults.rejects_writes:
            self.machine.note("rejected", request=f"{method} {path}", status=500)
            raise Refusal(500, "InternalError", "The service failed internally.")
        if self.machine.faults.in_post and method == "PATCH":
            self.machine.note("rejected", request=f"{method} {path}", status=self.post.status)
            raise self.post.with_traceback(None)

    def _authenticate(self, headers: Mapping[str, str]) -> None:
        if self.machine.faults.http_401:
            self.sessions.clear()
        if self.machine.faults.wrong_password or not self.sessions.allows(headers):
            raise errors.unauthorized()

    def _login(self, body: dict[str, Any]) -> Response:
        try:
            wrong = self.machine.faults.wrong_password
            session = None if wrong else self.sessions.login(body.get("UserName"), body.get("Password"))
        except Full:
            raise Refusal(
                503, "SessionLimitExceeded", "The maximum number of simultaneous sessions is reached."
            ) from None
        if session is None:
            raise Refusal(401, "ResourceAtUriUnauthorized", "The user name or password is not correct.")
        resource = tree.session(session.id, session.user)
        return _answer(201, resource, location=resource["@odata.id"], x_auth_token=session.token)

    def _dispatch(
        self, method: str, path: str, expand: bool, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if path in _ACTIONS or path == tree.RESET_BIOS:
            if method != "POST":
                raise errors.not_offered(method, "POST")
            return self._act(path, _object(body))
        if path == tree.SESSIONS or path.startswith(f"{tree.SESSIONS}/"):
            return self._session(method, path)
        if path == tree.TEST_EVENT or path == tree.SUBSCRIPTIONS or path.startswith(f"{tree.SUBSCRIPTIONS}/"):
            return self._events(method, path, expand, body)
        if path.startswith(virtual_media.COLLECTION):
            return self._media(method, path, expand, body)
        resource = tree.find(self.machine, path, expand=expand and self.machine.site.options.expand)
        if resource is None:
            raise errors.missing(path)
        if not self._is_first:
            resource = _with(resource, self.machine.identity.bmc_uuid, self.board.uuid)
        if method in ("GET", "HEAD"):
            return _read(resource, headers)
        return self._change(method, path, resource, headers, body)

    def _change(
        self, method: str, path: str, resource: dict[str, Any], headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        change = _CHANGES.get(path)
        if method != "PATCH" or change is None:
            raise errors.not_offered(method, "GET", "HEAD", *(["PATCH"] if change is not None else []))
        if path == tree.SYSTEM and headers.get("if-match", "*") not in ("*", _etag(resource)):
            raise errors.outdated()
        change(self.machine, _object(body))
        return _read(tree.find(self.machine, path) or {}, {})

    def _media(self, method: str, path: str, expand: bool, body: bytes | None) -> Response:
        if method == "POST":
            virtual_media.act(self.machine, path, _object(body))
            return Response(204)
        resource = virtual_media.find(self.machine, path, expand=expand)
        if method not in ("GET", "HEAD"):
            raise errors.not_offered(method, "GET", "HEAD")
        return _read(resource, {})

    def _session(self, method: str, path: str) -> Response:
        identifier = path.rpartition("/")[2]
        if path == tree.SESSIONS and method == "GET":
            members = [tree.session(known, self.machine.site.options.username) for known in self.sessions.ids]
            return _answer(200, tree.collection(path, "Session", members, expand=False))
        if method == "DELETE" and self.sessions.logout(identifier):
            return Response(204)
        found = self.sessions.find(identifier)
        if found is None:
            raise errors.missing(path)
        if method != "GET":
            raise errors.not_offered(method, "GET", "DELETE")
        return _answer(200, tree.session(found.id, found.user))

    def _events(self, method: str, path: str, expand: bool, body: bytes | None) -> Response:
        if path == tree.TEST_EVENT and method == "POST":
            self.events.send("TestMessage", str(_object(body).get("Message", "")))
            return Response(204)
        if path == tree.SUBSCRIPTIONS and method == "POST":
            made = self.events.add(_object(body))
            return _answer(201, made, location=made["@odata.id"])
        if path == tree.SUBSCRIPTIONS and method == "GET":
            return _answer(200, tree.collection(path, "EventDestination", self.events.all(), expand=expand))
        found = self.events.find(path.rpartition("/")[2])
        if found is None:
            raise errors.missing(path)
        if method == "DELETE":
            self.events.remove(found["Id"])
            return Response(204)
        if method != "GET":
            raise errors.not_offered(method, "GET", "DELETE")
        return _answer(200, found)

    def _act(self, path: str, body: dict[str, Any]) -> Response:
        if path == tree.RESET_BIOS:
            bios.reset_to_defaults(self.machine)
            return Response(204)
        kind = body.get("ResetType")
        if kind not in _ACTIONS[path]:
            raise errors.bad_value("ResetType", kind, _ACTIONS[path])
        if path == tree.MANAGER_RESET:
            self.machine.note("bmc_reset", type=kind)
            self.restart()
            return Response(204)
        faults = self.machine.faults
        if not faults.restarts_first:
            self._reset(kind)
        if faults.restarts or faults.restarts_first:
            self.restart()
        return Response(204)

    def _reset(self, kind: str) -> None:
        try:
            self.machine.reset(kind)
        except Busy as reason:
            raise errors.busy(str(reason)) from None


def _with(value: Any, old: str, new: str) -> Any:
    """The same JSON with another text in the place of one."""
    if isinstance(value, dict):
        return {name: _with(held, old, new) for name, held in value.items()}
    if isinstance(value, list):
        return [_with(held, old, new) for held in value]
    return new if value == old else value


def _object(body: bytes | None) -> dict[str, Any]:
    try:
        value: Any = msgspec.json.decode(body or b"")
    except msgspec.DecodeError:
        value = None
    if not isinstance(value, dict):
        raise errors.malformed()
    return value


def _etag(resource: dict[str, Any]) -> str:
    return f'"{zlib.crc32(msgspec.json.encode(resource)):08x}"'


def _read(resource: dict[str, Any], headers: Mapping[str, str]) -> Response:
    tag = _etag(resource)
    if headers.get("if-none-match") == tag:
        return Response(304, {"etag": tag})
    return _answer(200, resource, etag=tag)


def _answer(status: int, resource: dict[str, Any], **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {**_HEADERS, **named}, msgspec.json.encode(resource))
