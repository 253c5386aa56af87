"""Errors of a BMC. The transport maps the HTTP library's errors to these."""

from typing import ClassVar


class BMCError(Exception):
    """A failed operation on a BMC. str() is a sentence without secrets.

    Attributes: reason (CamelCase, used in conditions), permanent (a retry without a change fails again),
    message_ids (the last part of each MessageId that the BMC sent) and operation (what failed, as status names it;
    set by the controller that called).
    """

    reason: ClassVar[str] = "UnknownError"
    permanent: ClassVar[bool] = False
    message_ids: tuple[str, ...] = ()
    operation: str = ""


class BMCUnreachable(BMCError):
    """No TCP connection, or a broken one."""

    reason = "ConnectionFailed"


class BMCTimeout(BMCError):
    """No answer within the deadline."""

    reason = "Timeout"


class BMCTLSError(BMCError):
    """The certificate is not trusted, or not the pinned one."""

    reason = "TLSFailed"
    permanent = True


class BMCCertificateChanged(BMCTLSError):
    """The certificate is not the pinned one; `pinned` and `seen` are their SHA-256 in hexadecimal."""

    reason = "CertificateChanged"

    def __init__(self, name: str, pinned: str, seen: str) -> None:
        super().__init__(f"The certificate of {name} is not the pinned one: its SHA-256 is {seen} and not {pinned}.")
        self.pinned, self.seen = pinned, seen


class BMCAuthError(BMCError):
    """Wrong user name or password (401, or 403 at login)."""

    reason = "AuthenticationFailed"
    permanent = True


class BMCForbidden(BMCError):
    """403: the account lacks the privilege."""

    reason = "Forbidden"
    permanent = True


class BMCNotFound(BMCError):
    """404: the resource does not exist."""

    reason = "NotFound"


class BMCNotSupported(BMCError):
    """The BMC does not support the operation (405, 501, or a value that it does not list as allowable)."""

    reason = "NotSupported"
    permanent = True


class BMCConflict(BMCError):
    """409 or 412: another change is in progress."""

    reason = "Conflict"


class BMCBadRequest(BMCError):
    """Another 4xx: the BMC did not accept the values; the text holds its own message."""

    reason = "BadRequest"
    permanent = True


class BMCServerError(BMCError):
    """5xx: the BMC failed internally."""

    reason = "InternalServerError"


class BMCBusy(BMCServerError):
    """503, or a message that says so: temporarily unavailable. `retry_after` is the header Retry-After in seconds."""

    reason = "ServiceUnavailable"
    retry_after: float | None = None


class BMCProtocolError(BMCError):
    """The answer is not valid: not JSON, no Redfish service root, or a redirect to another host."""

    reason = "ProtocolError"
