"""Error responses, with the reasons and messages of kube-apiserver, because clients match on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metal.apiserver.machinery.causes import MOST, Cause


@dataclass(frozen=True)
class Who:
    """The object or resource that a Status is about."""

    group: str = ""
    plural: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""

    @property
    def qualified(self) -> str:
        """`plural.group`, or the bare plural in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass
class StatusError(Exception):
    """A request was refused; `body` is the metav1.Status with the reason."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def body(self) -> dict[str, Any]:
        """The metav1.Status object."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": dict(self.metadata)}
        status: dict[str, Any] = {**head, "status": "Failure", "message": self.message}
        if self.reason:
            status["reason"] = self.reason
        # kube-apiserver includes details in these even when they are about a path and no object.
        if self.details or self.code in (403, 404, 405):
            status["details"] = dict(self.details)
        return {**status, "code": self.code}


def _details(who: Who, *, kind: str = "", causes: Sequence[Cause] = ()) -> dict[str, Any]:
    listed = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    parts = {"name": who.name, "group": who.group, "kind": kind or who.plural, "uid": who.uid, "causes": listed}
    return {key: value for key, value in parts.items() if value}


def success(who: Who) -> dict[str, Any]:
    """The Status in response to a completed delete."""
    base = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**base, "details": _details(who)}


def not_found(who: Who) -> StatusError:
    """404: no such object."""
    return StatusError(404, "NotFound", f'{who.qualified} "{who.name}" not found', _details(who))


class NoSuchPathError(StatusError):
    """404: the path is not served; over HTTP the response may be plain text in place of a Status."""


def no_such_path() -> NoSuchPathError:
    """404: no such path or resource."""
    return NoSuchPathError(404, "NotFound", "the server could not find the requested resource")


def already_exists(who: Who, *, deleting: bool = False) -> StatusError:
    """409: the name is taken; deleting: by an object that is being deleted."""
    message = f'{"object is being deleted: " if deleting else ""}{who.qualified} "{who.name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(who))


def conflict(who: Who, why: str) -> StatusError:
    """409: a precondition failed."""
    message = f'Operation cannot be fulfilled on {who.qualified} "{who.name}": {why}'
    return StatusError(409, "Conflict", message, _details(who))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def apply_conflict(message: str, causes: Sequence[Mapping[str, str]]) -> StatusError:
    """409: other managers own fields that an apply wants to change. At most MOST of them are listed."""
    return StatusError(409, "Conflict", message, {"causes": list(causes[:MOST])})


def invalid(who: Who, causes: Sequence[Cause]) -> StatusError:
    """422: the object breaks rules; each cause names a field. At most MOST causes are listed."""
    cut = len(causes) > MOST
    causes = causes[:MOST]
    distinct = list(dict.fromkeys(str(cause) for cause in causes))
    if cut:
        distinct.append("further causes are not listed")
    text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    subject = f"{who.kind}.{who.group}" if who.group else who.kind
    message = f'{subject} "{who.name}" is invalid: {text}'
    return StatusError(422, "Invalid", message, _details(who, kind=who.kind, causes=causes))


def forbidden(who: Who, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    """403: understood and refused."""
    message = f'{who.qualified} "{who.name}" is forbidden: {why}' if who.name else why
    return StatusError(403, "Forbidden", message, _details(who, causes=causes))


def name_taken(who: Who) -> StatusError:
    """409: a name that was generated, or given beside generateName, is taken."""
    message = (
        f'{who.qualified} "{who.name}" already exists, the server was not able to generate a unique name for the object'
    )
    return StatusError(409, "AlreadyExists", message, {**_details(who), "retryAfterSeconds": 1})


def rejected() -> StatusError:
    """422: a patch does not fit the object. kube-apiserver gives no further detail."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request")


def unspecified_error(message: str) -> StatusError:
    """500 without a reason, as kube-apiserver answers unexpected errors."""
    return StatusError(500, "", message)


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: no or unknown credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def not_supported(who: Who, verb: str) -> StatusError:
    """405: the subresource of a custom resource has no such verb."""
    message = f'{verb} is not supported on resources of kind "{who.qualified}"'
    return StatusError(405, "MethodNotAllowed", message, _details(Who(who.group, who.plural)))


def method_not_allowed() -> StatusError:
    """405: the resource has no such verb."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_acceptable(types: Sequence[str]) -> StatusError:
    """406: the client accepts none of the formats that the server offers."""
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(types)}")


def too_large(why: str = "limit is 3145728") -> StatusError:
    """413: the body exceeds the limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def unsupported_media_type(types: Sequence[str]) -> StatusError:
    """415: the format of the body is not supported."""
    listed = ", ".join(types)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str) -> StatusError:
    """410: too old; list again."""
    return StatusError(410, "Expired", message)


def expired_page(following: str) -> StatusError:
    """410: the history for the next page is gone; the token `following` continues at the newest version."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return StatusError(410, "Expired", message, metadata={"continue": following})


def future_version(asked: int, current: int) -> StatusError:
    """504: the resourceVersion is newer than the store."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def request_timeout() -> StatusError:
    """408: the body did not arrive in time."""
    return StatusError(408, "Timeout", "the body of the request did not arrive in time")


def too_many_requests(message: str, seconds: int = 1) -> StatusError:
    """429: the same request may succeed after some seconds."""
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": seconds})


def unavailable(message: str) -> StatusError:
    """503: unavailable until an administrator removes the cause, such as a full disk."""
    return StatusError(503, "ServiceUnavailable", message)


def internal(message: str) -> StatusError:
    """500: an internal error."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")
