"""A request to the registry. Only UUID and token are decoded; the report is decoded after the token was verified."""

import msgspec

from metal.machine.boot_window import TokenMissing
from metal.machineapi.registry.limits import Limits, Malformed, read

_NOTHING = msgspec.Raw(b"")


class _Envelope(msgspec.Struct, rename={"uuid": "systemUUID"}):
    uuid: str
    token: str | None = None
    data: msgspec.Raw = _NOTHING
    booted: msgspec.Raw = _NOTHING


class Message:
    """A well-formed request: the claimed UUID, the token and the raw report. Its repr has neither token nor report."""

    def __init__(self, uuid: str, token: str, data: bytes, *, booted: bool) -> None:
        self.uuid, self.token, self.data, self.booted = uuid, token, data, booted

    def __repr__(self) -> str:
        return f"<Message of {self.uuid[:36]!r}, {len(self.data)} bytes>"

    def report(self, limits: Limits) -> bytes:
        """The report in compact JSON. Raises Malformed."""
        if not self.data.startswith(b"{"):
            raise Malformed("data must be an object")
        return msgspec.json.encode(read(self.data, limits), order="deterministic")


def parse(authorization: str, body: bytes) -> Message:
    """Parse a request, cheaply for any body. Raises Malformed, or TokenMissing."""
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed("the body must be a JSON object with the text systemUUID") from None
    return Message(
        envelope.uuid,
        _token(authorization, envelope.token),
        bytes(envelope.data),
        booted=bytes(envelope.booted) == b"true",
    )


def _token(authorization: str, in_body: str | None) -> str:
    scheme, _, token = authorization.strip().partition(" ")
    token = (token if scheme.lower() == "bearer" else in_body or "").strip()
    if not token:
        raise TokenMissing
    return token
