"""Redfish error responses (DSP0266, error responses; message registry Base)."""

import msgspec

from metal.redfish.transport import Response

_JSON = {"content-type": "application/json"}


class Refusal(Exception):
    """A response of 4xx or 5xx."""

    def __init__(
        self, status: int, message_id: str, message: str, headers: dict[str, str] | None = None,
        registry: str = "Base.1.18",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status, self.message_id, self.message = status, message_id, message
        self.headers, self.registry = headers or {}, registry

    def response(self) -> Response:
        """The whole answer."""
        info = {
            "@odata.type": "#Message.v1_1_2.Message",
            "MessageId": f"{self.registry}.{self.message_id}",
            "Message": self.message,
            "MessageSeverity": "Warning",
            "Resolution": "None",
        }
        body = {"error": {"code": "Base.1.18.GeneralError", "message": self.message, "@Message.ExtendedInfo": [info]}}
        return Response(self.status, {**_JSON, **self.headers}, msgspec.json.encode(body))


def unauthorized() -> Refusal:
    """401"""
    return Refusal(
        401, "NoValidSession", "There is no valid session established with the implementation.",
        {"www-authenticate": 'Basic realm="Redfish"'},
    )  # fmt: skip


def missing(path: str) -> Refusal:
    """404"""
    return Refusal(404, "ResourceMissingAtURI", f"The resource at the URI {path} was not found.")


def not_offered(method: str, *allowed: str) -> Refusal:
    """405"""
    text = f"The method {method} is not offered for this resource."
    return Refusal(405, "OperationNotAllowed", text, {"allow": ", ".join(allowed)})


def malformed() -> Refusal:
    """400 for a body that is not a JSON object."""
    return Refusal(400, "MalformedJSON", "The request body was not a JSON object.")


def unknown_property(name: str) -> Refusal:
    """400"""
    return Refusal(400, "PropertyUnknown", f"The property {name} is not known or cannot be written.")


def bad_value(name: str, value: object, allowed: object = None) -> Refusal:
    """400"""
    hint = f"; allowed are {', '.join(map(str, allowed))}" if isinstance(allowed, list | tuple) else ""
    return Refusal(400, "PropertyValueNotInList", f"The value {str(value)[:60]!r} for {name} is not allowed{hint}.")


def outdated() -> Refusal:
    """412"""
    return Refusal(412, "PreconditionFailed", "The ETag did not match the one of the resource.")


def busy(text: str) -> Refusal:
    """409"""
    return Refusal(409, "OperationFailed", f"The operation is not possible now: {text}.")


def exists(what: str) -> Refusal:
    """400"""
    return Refusal(400, "ResourceAlreadyExists", f"A resource of the type {what} with these values exists already.")
