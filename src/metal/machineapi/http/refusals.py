"""Refused requests: each is counted, logged and reported as an Event on the Server, without secrets."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from prometheus_client import CollectorRegistry

from metal.api.server import Server
from metal.kube.meta.clock import Clock
from metal.machineapi import metrics
from metal.machineapi.http.response import Response, text

EventSink = Callable[[Server, str, str, str], None]
"""Takes (server, type, reason, message) without waiting."""

_log = structlog.get_logger(__name__)
_EVENT_INTERVAL = timedelta(minutes=1)
_MAX_REMEMBERED = 4096
_PER_SERVER = 12
_STATUS = {"UnknownMachine": 404, "DuplicateSystem": 404, "IdentityAmbiguous": 404, "Malformed": 400, "TooLarge": 413}
_BODY = {400: "bad request", 401: "a token is needed", 404: "not found", 413: "too large"}


class Refusals:
    """Shared by boot server and registry: one counter, at most one Event a minute for (server, reason, client)."""

    def __init__(
        self, clock: Clock, *, event: EventSink | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        self._clock, self._event = clock, event
        self._told: OrderedDict[tuple[str, ...], datetime] = OrderedDict()
        self._counter = metrics.refusals(registry or CollectorRegistry())

    def refuse(
        self, endpoint: str, reason: str, client: str, message: str, server: Server | None = None, *, status: int = 0
    ) -> Response:
        """Record a refusal and return the response. Its body is the same for every reason of a status.

        The status follows from the reason (403 by default) unless it is given.
        """
        self.note(endpoint, reason, client, message, server)
        status = status or _STATUS.get(reason, 403)
        return text(status, _BODY.get(status, "forbidden"))

    def note(self, endpoint: str, reason: str, client: str, message: str, server: Server | None = None) -> None:
        """Count, log and report a problem without creating a response."""
        self._counter.labels(endpoint, reason).inc()
        name = server.metadata.name if server else None
        if self._fresh(name or "", reason, client):
            _log.warning("refused", endpoint=endpoint, reason=reason, client=client, server=name, detail=message)
            if server is not None and self._event is not None:
                self._event(server, "Warning", reason, f"{endpoint} refused to {client}: {message}")

    def _fresh(self, server: str, reason: str, client: str) -> bool:
        now = self._clock()
        key = (server, reason, client)
        last = self._told.get(key)
        if last is not None and now - last < _EVENT_INTERVAL:
            return False
        if self._recent(server, now) >= _PER_SERVER:
            return False
        self._told[key] = now
        self._told.move_to_end(key)
        while len(self._told) > _MAX_REMEMBERED:
            self._told.popitem(last=False)
        return True

    def _recent(self, server: str, now: datetime) -> int:
        """Events about this server in the last minute; bounds the Events that many client addresses can cause."""
        count = 0
        for key, at in reversed(self._told.items()):
            if now - at >= _EVENT_INTERVAL:
                break
            count += key[0] == server
        return count
