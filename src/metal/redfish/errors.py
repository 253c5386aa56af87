"""Errors of a BMC. The HTTP library's errors are mapped to these once, in the transport."""

from typing import ClassVar


class BMCError(Exception):
    """Something a BMC did, or did not do. str() is a sentence for people and never holds a secret.

    Attributes: reason (CamelCase, fit for a condition), permanent (trying again without a change will not help) and
    message_ids (the last part of each MessageId that the BMC sent).
    """

    reason: ClassVar[str] = "UnknownError"
    permanent: ClassVar[bool] = False
    message_ids: tuple[str, ...] = ()


class BMCUnreachable(BMCError):
    """No TCP connection, or it broke."""

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
    """404: the resource is gone."""

    reason = "NotFound"


class BMCNotSupported(BMCError):
    """This BMC cannot do that (405, 501, or a value it does not list as allowable)."""

    reason = "NotSupported"
    permanent = True


class BMCConflict(BMCError):
    """409 or 412: another change is under way; try again later."""

    reason = "Conflict"


class BMCBadRequest(BMCError):
    """Another 4xx: the BMC did not accept the values; the sentence holds its own message."""

    reason = "BadRequest"
    permanent = True


class BMCServerError(BMCError):
    """5xx: the BMC is ill."""

    reason = "InternalServerError"


class BMCBusy(BMCServerError):
    """503: temporarily unavailable. `retry_after` holds the seconds the BMC asked for, when it did."""

    reason = "ServiceUnavailable"
    retry_after: float | None = None


class BMCProtocolError(BMCError):
    """The answer makes no sense: not JSON, no Redfish service root, a redirect to elsewhere."""

    reason = "ProtocolError"
