"""Errors of a Kubernetes API, one class for each reason that callers distinguish (metav1.Status)."""

from collections.abc import Mapping
from typing import Any, ClassVar


class ApiError(Exception):
    """The API refused a request, or could not be reached.

    Attributes: code (HTTP status, 0 when no answer came), reason (metav1.StatusReason), message, details
    (metav1.StatusDetails as a mapping), retry_after (seconds, from the answer, else None).
    """

    default_code: ClassVar[int] = 0
    default_reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.reason = self.default_reason if reason is None else reason
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400: the API cannot read the request."""

    default_code, default_reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """401: the credentials are missing or wrong."""

    default_code, default_reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """403: not allowed."""

    default_code, default_reason = 403, "Forbidden"


class NotFound(ApiError):
    """404: no such object or kind."""

    default_code, default_reason = 404, "NotFound"


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""

    default_code, default_reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """409: resourceVersion or uid precondition failed, or another field manager owns the field."""

    default_code, default_reason = 409, "Conflict"


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""

    default_code, default_reason = 410, "Expired"


class Invalid(ApiError):
    """422: validation failed; details.causes names the fields."""

    default_code, default_reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """429: slow down; retry_after may say for how long."""

    default_code, default_reason = 429, "TooManyRequests"


class ServerError(ApiError):
    """5xx: the API failed."""

    default_code, default_reason = 500, "InternalError"


class Unavailable(ApiError):
    """No answer: connection refused, cut or timed out. Whether a write happened is unknown."""

    default_code, default_reason = 0, "ServiceUnavailable"


class Malformed(ApiError):
    """An answer arrived, but it is not what the kind's struct describes, or not JSON at all."""

    default_code, default_reason = 0, "Malformed"


_BY_REASON: dict[str, type[ApiError]] = {
    cls.default_reason: cls
    for cls in (
        BadRequest, Unauthorized, Forbidden, NotFound, AlreadyExists, Conflict, Expired, Invalid, TooManyRequests,
    )
}  # fmt: skip
_BY_REASON["Gone"] = Expired
_BY_CODE: dict[int, type[ApiError]] = {
    cls.default_code: cls
    for cls in (BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Expired, Invalid, TooManyRequests)
}


def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> ApiError:
    """The exception for a metav1.Status (a mapping with code, reason, message and details)."""
    code = int(status.get("code") or 0)
    reason = str(status.get("reason") or "")
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
    details = status.get("details") or {}
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    message = str(status.get("message") or reason or f"HTTP {code}")
    return cls(message, code=code, reason=reason or None, details=details, retry_after=retry_after)
