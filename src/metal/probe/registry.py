"""Client of the registry: POST /register and /sanitization with the boot's report token."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from typing import Any

REFUSED = {
    401: "the registry does not know this token",
    403: "the registry does not accept this token for this server",
    410: "this boot's token was used before, or has expired",
}
MALFORMED = (400, 413, 422)
MAX_ANSWER = 4096
"""Bytes read of a response."""


class Refused(Exception):
    """The registry refused the token; a retry fails again."""


class Malformed(Exception):
    """The registry rejected the report; a retry fails again."""


class NotAccepted(Exception):
    """The report was not accepted; a retry may succeed."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotAllowed(NotAccepted):
    """The registry has the report and has not allowed the erasure yet; it is asked again."""


class Registry:
    """The registry at one address.

    No proxy is used and no redirect followed, so that the token is sent to the registry only.

    Raises:
        ValueError: the URL, the UUID or the token cannot be used; the text says which and why.
    """

    def __init__(self, url: str, uuid: str, token: str, *, timeout: float = 5.0, ca_file: str | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--registry-url {url!r} must be http://HOST:PORT or https://HOST:PORT")
        if not token.isascii() or not token.isprintable() or not token or " " in token:
            raise ValueError("--token must be printable ASCII without spaces, and not empty")
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._uuid, self._token, self._timeout = uuid, token, timeout
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None

    def register(self, data: dict[str, Any]) -> None:
        """Send a hardware report; raises as `sanitized` does."""
        self._send("/register", data)

    def sanitized(self, data: dict[str, Any]) -> None:
        """Send the progress or result of an erasure.

        Raises:
            NotAllowed: with status 202, which only a question gets.
            Refused: with status 401, 403 or 410.
            Malformed: with status 400, 413 or 422.
            NotAccepted: with any other, or when the registry cannot be reached in time.
        """
        self._send("/sanitization", data)

    def _send(self, path: str, data: dict[str, Any]) -> None:
        body = json.dumps({"systemUUID": self._uuid, "data": data}).encode()
        try:
            status, message, retry_after = self._post(path, body)
        except (OSError, http.client.HTTPException) as failure:
            raise NotAccepted(f"the registry cannot be reached: {str(failure) or type(failure).__name__}") from failure
        if status in REFUSED:
            raise Refused(f"{REFUSED[status]} ({status})")
        if status in MALFORMED:
            raise Malformed(f"the registry rejected the report ({status}): {message}")
        if status == http.HTTPStatus.ACCEPTED:
            raise NotAllowed(f"the registry has not allowed the erasure yet: {message}", retry_after)
        if not 200 <= status < 300:
            raise NotAccepted(f"the registry answered {status}: {message}", retry_after)

    def _post(self, path: str, body: bytes) -> tuple[int, str, float]:
        connection = self._connect()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        try:
            connection.request("POST", self._path + path, body, headers)
            answer = connection.getresponse()
            message = answer.read(MAX_ANSWER).decode("utf-8", "replace").strip()
            wait = answer.headers.get("Retry-After") or ""
            return answer.status, message, float(wait) if wait.isdecimal() else 0.0
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
